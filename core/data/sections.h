#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forge::data {

/// Words, sentences or rules under a title, as the program's own texts list them:
///
///     # a comment
///     [title]
///     apple, pear, quince
///     - a sentence, which may continue
///       in lines that begin with two spaces
///
/// A line that begins with "- " is one item, and "-" alone is an empty one. Any other line holds
/// items that commas separate.
struct Section {
  std::string title;
  std::vector<std::string> items;
};

/// Throws Error for an item in front of all titles.
std::vector<Section> read_sections(std::string_view text);

/// Files that are part of the program.
std::string_view story_words_text();      ///< core/data/stories/words.txt
std::string_view story_rules_text();      ///< core/data/stories/rules.txt
std::string_view irregular_words_text();  ///< core/data/stories/irregular.txt
std::string_view capo_text();             ///< core/data/tasks/capo.txt

}  // namespace forge::data
