#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge::yaml {

/// A word at the end of a line that can be any other of its sort without a change to what stands
/// around it: a text in double quotes that needs no interpretation, a plain number or bool, or the
/// tag of what stands in the lines below.
struct Leaf {
  int line = 0;    ///< 0-based, from the section's beginning
  int column = 0;  ///< 0-based, of the text (behind a quote or '!')
  std::string_view text;
};

/// A stretch of a document's root mapping: from a line that begins a key in the first column to
/// the next such line.
struct Section {
  enum class Position { first, inner, last };

  int line = 0;  ///< 0-based, in the document
  Position position = Position::inner;
  /// The text with `0` or `""` for its leaves, without what comments say, and the comments and
  /// empty lines at its end.
  std::string outline;
  std::vector<Leaf> leaves;
};

/// A document in sections.
struct SectionedText {
  std::vector<Section> sections;
  size_t size = 0;
  std::vector<size_t> line_starts;  ///< offsets of the document's lines, also of an empty last one
};

/// What stands for the text of every comment within an outline.
constexpr std::string_view comment_stand_in = "#@comment@";

/// Cuts a document into its sections, two or more, or gives nothing where that cannot be done
/// safely: before the first section there may only be comments, and no line may be a directive or
/// a document's mark. Whether each line found is really a key, and each leaf a value (and not, say,
/// a part of a longer text), is for the parser to say. `text` outlives the result.
std::optional<SectionedText> cut_sections(std::string_view text);

}  // namespace forge::yaml
