#pragma once

#include <string_view>
#include <vector>

/// The words of the generated stories, in their base forms and grouped by what a sentence may do
/// with them. The first quarter of a list is used more often than the rest.
namespace forge::data::stories {

enum class WordKind {
  noun,
  verb,  ///< or a verb phrase: its first word inflects
  adjective,
  plain,  ///< one form
  woman,  ///< a person's name or title, with the pronouns that go with it
  man,
};

struct WordList {
  std::string_view name;  ///< under which rules pick from it; two lists of one name are one list
  WordKind kind;
  std::vector<std::string_view> words;
};

const std::vector<WordList>& people();     // words_people.cpp
const std::vector<WordList>& objects();    // words_objects.cpp
const std::vector<WordList>& nature();     // words_nature.cpp
const std::vector<WordList>& actions();    // words_actions.cpp
const std::vector<WordList>& qualities();  // words_qualities.cpp
const std::vector<WordList>& settings();   // words_settings.cpp

}  // namespace forge::data::stories
