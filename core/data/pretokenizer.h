#pragma once

#include <cstddef>
#include <string_view>

namespace forge::data {

/// Length in bytes of the piece that begins at `position` (< text.size()) when GPT-2's pattern
///     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// splits the text; \s is Unicode's White_Space. The pieces together are the whole text: a byte
/// that is not part of well-formed UTF-8 counts as a character that is none of the three.
size_t piece_length(std::string_view text, size_t position);

/// First place at or after `from` where a text can be cut so that its two parts split into the
/// same pieces as the whole: ASCII white space after something that is not white. text.size() when
/// there is none.
size_t next_safe_cut(std::string_view text, size_t from);

}  // namespace forge::data
