#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge::yaml {

/// A stretch of a document's root mapping: from a line that begins a key in the first column to
/// the next such line.
struct Section {
  enum class Position { first, inner, last };

  size_t begin = 0;       ///< offset in the text
  int line = 0;           ///< 0-based line of `begin`
  std::string_view text;  ///< without the comments and empty lines at its end, but of the last
  Position position = Position::inner;
};

/// Cuts a document into its sections, two or more, or gives nothing where that cannot be done
/// safely: before the first section there may only be comments, and no line may be a directive or a
/// document's mark. Whether each line found is really a key (and not, say, a part of a quoted text)
/// is for the parser to say.
std::optional<std::vector<Section>> cut_sections(std::string_view text);

}  // namespace forge::yaml
