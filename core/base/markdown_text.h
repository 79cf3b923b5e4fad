#pragma once

#include <string>
#include <string_view>

namespace forge::tables {

/// A name or message on one line of Markdown, shown as it stands: what would be a tag, an entity, a
/// link, an image, code, emphasis or the border of a cell is escaped. Signs that do nothing, as the
/// underscores within a name or a footnote's mark "[1]", stay as they are.
std::string markdown_text(std::string_view text);
/// The same for the beginning of a line or list item, where it is no heading, rule or list either.
std::string markdown_line(std::string_view text);
/// The file as the target of a link, for the parentheses behind its text.
std::string markdown_target(std::string_view file);

}  // namespace forge::tables
