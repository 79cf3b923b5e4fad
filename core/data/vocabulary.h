#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forge::data {

/// Two neighbouring tokens that become one. Its rank is its place in Vocabulary::merges.
struct Merge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

/// What a byte-level BPE tokenizer is made of. Ids index `tokens`.
struct Vocabulary {
  std::vector<std::string> tokens;  ///< bytes that an id stands for; of a special token its name
  std::vector<char> special;        ///< per id: not 0 where it is a special token
  std::vector<Merge> merges;        ///< earlier ones are applied first
  bool prefix_space = true;         ///< a space is put before every text
  int32_t bos_id = -1;              ///< -1: the vocabulary has none
  int32_t pad_id = -1;
  int32_t eos_id = -1;
  int32_t unk_id = -1;

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
};

/// Special tokens in the order of their ids, 0 … 5, in the vocabularies that forge trains.
const std::vector<std::string>& special_token_names();

/// Sets bos_id, pad_id, eos_id and unk_id to the special tokens of those names.
void find_special_ids(Vocabulary& vocabulary);

/// The vocabulary before any merge: the special tokens, then the 256 bytes in the order of their
/// symbols.
Vocabulary initial_vocabulary();

}  // namespace forge::data
