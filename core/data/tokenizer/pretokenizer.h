#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace forge::data {

/// Unicode normalisation form (UAX #15) that a text is brought into.
enum class UnicodeForm { none, nfc, nfd, nfkc, nfkd };

/// "NFC"; "" of none.
std::string_view name_of(UnicodeForm form);

/// The text in that form. Bytes that are no well-formed UTF-8 stay as they are. A text in parts
/// that are cut before ASCII characters has the forms of its parts.
std::string normalized(std::string_view text, UnicodeForm form);

/// How a text is divided into the pieces within which tokens are merged. The pieces together are
/// the whole text: a byte that is not part of well-formed UTF-8 counts as a character that is
/// neither letter, number nor white.
enum class TextSplit : uint8_t {
  gpt2,    ///< by GPT-2's pattern
  llama3,  ///< by Llama 3's
  qwen2,   ///< by Llama 3's, but each digit is a piece
  spaces,  ///< every space begins a piece
  /// Every run of spaces begins a piece. The tokens are those of `whole` if no token has a space
  /// behind another character.
  space_runs,
  whole,  ///< a text is one piece
};

/// The pattern of a split in the notation of tokenizer.json, where \s is Unicode's White_Space; ""
/// of splits without one.
std::string_view pattern_of(TextSplit split);

/// Length in bytes of the piece that begins at `position` (< text.size()), where a piece ended.
size_t piece_length(TextSplit split, std::string_view text, size_t position);

/// First place at or after `from` where a text can be cut so that its two parts split into the
/// same pieces as the whole: ASCII white space, of some splits only a space, after something that
/// is not white. text.size() when there is none.
size_t next_safe_cut(TextSplit split, std::string_view text, size_t from);

/// Length of the white space that a text begins or ends with.
size_t leading_white_space(std::string_view text);
size_t trailing_white_space(std::string_view text);

/// Whether a text begins or ends with a character of a word, as \w.
bool begins_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace forge::data
