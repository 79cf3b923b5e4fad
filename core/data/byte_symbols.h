#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forge::data {

/// GPT-2's reversible map from bytes to printable characters, in which byte-level vocabularies are
/// written: printable Latin-1 bytes stand for themselves, the others for U+0100, U+0101, … in turn.
/// Element b is the code point of byte b.
const std::array<uint16_t, 256>& byte_symbols();

/// The 256 bytes in the order of their symbols' code points.
const std::array<uint8_t, 256>& bytes_by_symbol();

/// Bytes as their symbols in UTF-8, and back; nothing where a character is no byte's symbol.
std::string to_symbols(std::string_view bytes);
std::optional<std::string> from_symbols(std::string_view symbols);

}  // namespace forge::data
