#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forge::data {

enum class CharacterKind : uint8_t { letter, number, space, other };

struct Character {
  CharacterKind kind;
  uint8_t length;  ///< in bytes
};

/// Kind and length of the character at `position` (< text.size()): one Unicode scalar value, or a
/// byte that is not part of well-formed UTF-8, which is of the kind `other`.
Character character_at(std::string_view text, size_t position);

/// Length in bytes of the character that ends at `position` (> 0). The text need not be read from
/// its start: every byte that does not continue a character begins one.
size_t length_before(std::string_view text, size_t position);

/// Where the run of characters of `kind` that begins at `position` ends.
size_t run_end(std::string_view text, size_t position, CharacterKind kind);

/// Whether a character is part of a word in the sense of \w: a letter, mark, digit, letter number
/// or connecting punctuation.
bool is_word_character(std::string_view text, size_t position);

}  // namespace forge::data
