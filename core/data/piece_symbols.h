#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forge::data {

// The notation of vocabularies of characters, SentencePiece's: a space is U+2581, a byte "<0x0A>".

constexpr std::string_view space_symbol = "\u2581";

/// "▁the" -> " the", and back.
std::string with_spaces(std::string_view text);
std::string with_space_symbols(std::string_view text);

/// "<0x0A>" for byte 10, and back; nothing where a name is not of that form.
std::string name_of_byte(uint8_t byte);
std::optional<uint8_t> byte_of_name(std::string_view name);

}  // namespace forge::data
