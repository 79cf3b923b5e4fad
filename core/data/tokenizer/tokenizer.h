#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/bpe_merger.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {

/// What the name of a special token within a text becomes.
enum class SpecialTokens {
  as_text,  ///< the ids of its characters: no text can reach a special id
  as_ids,   ///< its id, as Hugging Face's tokenizers does
};

/// A token that was found in a text, with the white space that it takes along.
struct FoundToken {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = 0;
};

/// Finds added tokens in a text: the first one, at the same place the longest. Immutable.
class AddedTokens {
 public:
  /// Those of a vocabulary that are sought in the text as given, or in the normalised one, where
  /// their names are normalised like it.
  AddedTokens(const Vocabulary& vocabulary, bool normalized);

  bool empty() const { return names_.empty(); }
  /// Whether a text can be cut before white space without missing a token, if special tokens are
  /// text.
  bool can_be_cut_around() const { return can_be_cut_around_; }

  /// The next one at or after `from`.
  std::optional<FoundToken> find(std::string_view text, size_t from, SpecialTokens special) const;

 private:
  struct Name {
    std::string text;
    AddedToken token;
    bool special;
  };
  const Name* longest_at(std::string_view text, size_t place, SpecialTokens special) const;

  std::vector<Name> names_;                    ///< by first byte, then the longest first
  std::array<uint32_t, 257> first_of_byte_{};  ///< index of the first name that begins with it
  bool can_be_cut_around_ = true;
};

/// BPE (Sennrich et al. 2016) over bytes, as in GPT-2, or over characters with bytes for those
/// that the vocabulary lacks, as in Llama 2. decode(encode(text)) == text for every string of
/// bytes, but for what the vocabulary's form of text leaves out: the spelling of characters that a
/// Unicode form unifies; a first space with PrefixSpace::unless_there; U+2581, which stands for a
/// space, with Alphabet::characters. The tokenizers that forge trains have none of these.
/// Immutable: any number of threads may use one.
class Tokenizer {
 public:
  /// `vocabulary` has byte_ids, and merges between ids within it.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return vocabulary_.size(); }
  int32_t bos_id() const { return vocabulary_.bos_id; }
  int32_t pad_id() const { return vocabulary_.pad_id; }
  int32_t eos_id() const { return vocabulary_.eos_id; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Hash of vocabulary, merges and settings: equal ones give equal ids for every text.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Ids of a text, without those that a document begins and ends with. An empty text has none.
  std::vector<int32_t> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::as_text) const;
  /// The ids of the text between those that a document begins and ends with: BOS in front, where
  /// the vocabulary has one, and of tokenizers that forge trains no EOS: the next BOS ends it.
  std::vector<int32_t> encode_document(std::string_view text) const;

  /// The same, appended to `ids`.
  void append_document(std::string_view text, std::vector<int32_t>& ids) const;

  /// A document in parts: its first part, further ones that begin at a safe cut, and its end.
  void append_beginning(std::string_view text, std::vector<int32_t>& ids) const;
  void append_continuation(std::string_view text, std::vector<int32_t>& ids) const;
  void append_end(std::vector<int32_t>& ids) const;
  /// First place at or after `from` where a text can be cut into such parts; text.size() when
  /// there is none.
  size_t next_safe_cut(std::string_view text, size_t from) const;

  /// The text that ids stand for, special tokens left out and one prefix space removed. Throws
  /// Error for an id outside the vocabulary.
  std::string decode(const std::vector<int32_t>& ids) const;
  /// As decode, for ids that continue others: a space in front is text.
  std::string decode_continuation(const std::vector<int32_t>& ids) const;

 private:
  /// Where a part of a text lies, which decides on its prefix space.
  enum class Place { start, behind_token, continuation };
  struct Output;

  bool takes_prefix(Place place) const;
  void append_text(std::string_view text, Place place, SpecialTokens special, Output& out) const;
  void append_raw(std::string_view text, Place place, SpecialTokens special, Output& out) const;
  void append_normalized(std::string_view text, Place place, Output& out) const;
  void append_pieces(std::string_view text, Output& out) const;
  void append_prefixed(std::string_view text, Output& out) const;
  void append_piece(std::string_view piece, std::vector<int32_t>& ids) const;
  void append_characters(std::string_view piece, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  TextSplit split_;  ///< the vocabulary's, or one with the same merges in smaller pieces
  BpeMerger merger_;
  AddedTokens raw_tokens_;
  AddedTokens normalized_tokens_;
  std::unordered_map<uint32_t, int32_t> character_ids_;    ///< by the character's bytes
  std::unordered_map<std::string, int32_t> whole_pieces_;  ///< with whole_pieces_first
  PieceCaches caches_;
  std::string fingerprint_;
};

}  // namespace forge::data
