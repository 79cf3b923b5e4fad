#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/bpe_merger.h"
#include "core/data/vocabulary.h"

namespace forge::data {

/// What the name of a special token within a text becomes.
enum class SpecialTokens {
  as_text,  ///< the ids of its characters: no text can reach a special id
  as_ids,   ///< its id, as Hugging Face's tokenizers does
};

/// Byte-level BPE (Sennrich et al. 2016 over bytes, as in GPT-2). decode(encode(text)) == text for
/// every string of bytes. That is why no Unicode normalisation is done, which would lose how a
/// character was spelt, and why the prefix space, which lets a first word share the tokens of
/// later ones, is put before every text and not only where none is yet. Immutable: any number of
/// threads may use one.
class Tokenizer {
 public:
  /// `vocabulary` holds every byte as a token and merges between ids within it.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return vocabulary_.size(); }
  int32_t bos_id() const { return vocabulary_.bos_id; }
  int32_t pad_id() const { return vocabulary_.pad_id; }
  int32_t eos_id() const { return vocabulary_.eos_id; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Hash of vocabulary, merges and settings: equal ones give equal ids for every text.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Ids of a text, without BOS. An empty text has none.
  std::vector<int32_t> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::as_text) const;
  /// BOS, where the vocabulary has one, and the ids of the text. No EOS: the next BOS ends it.
  std::vector<int32_t> encode_document(std::string_view text) const;

  /// The same, appended to `ids`.
  void append_document(std::string_view text, std::vector<int32_t>& ids) const;
  /// Appends the ids of a later part of a text, one that begins at a safe cut (pretokenizer.h).
  void append_continuation(std::string_view text, std::vector<int32_t>& ids) const;

  /// The text that ids stand for, special tokens left out and one prefix space removed. Throws
  /// Error for an id outside the vocabulary.
  std::string decode(const std::vector<int32_t>& ids) const;
  /// As decode, for ids that go on after others: a space in front is text.
  std::string decode_continuation(const std::vector<int32_t>& ids) const;

 private:
  void append_text(std::string_view text, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  BpeMerger merger_;
  std::array<int32_t, 256> byte_ids_{};
  std::string fingerprint_;
};

}  // namespace forge::data
