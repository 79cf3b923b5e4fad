#pragma once

#include <optional>
#include <string_view>

namespace forge::yaml {

/// Of an anchor's name in ASCII.
bool is_anchor_character(char c);

// Facts that yaml-cpp's events do not give, scanned from the text.

/// Offset of the first tab where YAML allows none (all but quoted and block scalars and comments),
/// or nothing. yaml-cpp lets such tabs pass, PyYAML does not.
std::optional<size_t> find_invalid_tab(std::string_view text);

/// Offset behind the properties (`&anchor`, `!tag`) of the node at `position`.
size_t skip_properties(std::string_view text, size_t position);

/// Offset behind the quoted scalar that begins at `position`, or nothing where it never ends.
std::optional<size_t> quoted_scalar_end(std::string_view text, size_t position);

/// Offset behind the block scalar (`|` or `>`) whose header stands at `position`: of the next line
/// that is no part of it, or the text's size.
size_t block_scalar_end(std::string_view text, size_t position);

}  // namespace forge::yaml
