#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/pretokenizer.h"

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

// The notation of vocabularies of characters, SentencePiece's: a space is U+2581, a byte "<0x0A>".

constexpr std::string_view space_symbol = "\u2581";

/// "▁the" -> " the", and back.
std::string with_spaces(std::string_view text);
std::string with_space_symbols(std::string_view text);

/// "<0x0A>" for byte 10, and back; nothing where a name is not of that form.
std::string name_of_byte(uint8_t byte);
std::optional<uint8_t> byte_of_name(std::string_view name);

/// Two neighbouring tokens that become one. Its rank is its place in Vocabulary::merges.
struct Merge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

/// What merging begins with.
enum class Alphabet {
  bytes,       ///< each byte is a token (GPT-2, Llama 3)
  characters,  ///< each character that the vocabulary has, of others its bytes (Llama 2)
};

/// Where a space is put in front of a text, so that its first word has the tokens of later words.
/// With special tokens in a text, each part between them counts as a text.
enum class PrefixSpace {
  none,
  every_text,        ///< also one that begins with a space: only this can be undone for every text
  unless_there,      ///< but for a text that begins with a space
  first_of_several,  ///< the same, and only where no special token comes before
};

/// A token that is found in a text before anything is merged. As of Hugging Face's
/// tokenizers; special ones are found only where that is asked for.
struct AddedToken {
  int32_t id = 0;
  bool normalized = false;   ///< sought in the normalised text, not in the text as given
  bool single_word = false;  ///< not within a word
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and that behind it
};

/// What a BPE tokenizer is made of. Ids index `tokens`.
struct Vocabulary {
  std::vector<std::string> tokens;  ///< bytes that an id stands for; of a special token its name
  std::vector<char> special;        ///< per id: not 0 where it is a special token
  std::vector<AddedToken> added;    ///< special tokens and others that are found before merging
  std::vector<Merge> merges;        ///< earlier ones are applied first
  /// Merges that make the same token are equally early, so the leftmost is applied: tiktoken's and
  /// SentencePiece's rule, where Hugging Face's tokenizers go by the order of merges alone.
  bool ranked_by_token = false;
  /// A piece that is a token becomes it even if no merges lead there.
  bool whole_pieces_first = false;
  Alphabet alphabet = Alphabet::bytes;
  std::array<int32_t, 256> byte_ids{};  ///< the token of each byte

  UnicodeForm unicode_form = UnicodeForm::none;
  PrefixSpace prefix_space = PrefixSpace::every_text;
  TextSplit split = TextSplit::gpt2;

  std::vector<int32_t> before_text;  ///< special tokens that a document begins with
  std::vector<int32_t> after_text;   ///< and ends with
  int32_t bos_id = -1;               ///< first of before_text; -1: the vocabulary has none
  int32_t pad_id = -1;
  int32_t eos_id = -1;
  int32_t unk_id = -1;

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
  /// Whether an id is the token of a byte; a character's token may consist of the same byte.
  bool is_byte(int32_t id) const;
};

/// Special tokens in the order of their ids, 0 … 5, in the vocabularies that forge trains.
const std::vector<std::string>& special_token_names();

/// Appends a special token that no text reaches unasked, and returns its id.
int32_t add_special_token(Vocabulary& vocabulary, const std::string& name);

/// Sets pad_id, eos_id and unk_id to the special tokens with a usual name of theirs, and bos_id to
/// the first of before_text.
void find_special_ids(Vocabulary& vocabulary);

/// Sets byte_ids to the tokens of one byte. Throws Error naming a byte that has none.
void find_byte_ids(Vocabulary& vocabulary);

/// The vocabulary before any merge: the special tokens, then the 256 bytes in the order of their
/// symbols. Documents begin with BOS.
Vocabulary initial_vocabulary();

/// Hash of a vocabulary, its merges and settings. What only some vocabularies have is part of it
/// only there, so that a new kind of setting changes no fingerprint that was recorded before.
std::string fingerprint_of(const Vocabulary& vocabulary);

}  // namespace forge::data
