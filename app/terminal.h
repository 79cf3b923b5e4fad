#pragma once

#include <string>
#include <vector>

namespace forge::app {

/// Whether the descriptor is a terminal that can move its cursor.
bool is_terminal(int fd);

/// Whether to colour what goes to the descriptor: a terminal, and NO_COLOR is not set.
bool use_colour(int fd);

/// Columns of the terminal, 80 where it is none.
int terminal_width(int fd);

enum class Style { plain, bold, dim, red, green, yellow };
/// The text in a style, as it is where `colour` is false.
std::string styled(const std::string& text, Style style, bool colour);

/// Lines of cells in columns, two blanks apart, each column as wide as its widest cell; the last is
/// not padded. `right` names the columns that are aligned right.
std::string aligned(const std::vector<std::vector<std::string>>& lines,
                    const std::vector<size_t>& right = {});

}  // namespace forge::app
