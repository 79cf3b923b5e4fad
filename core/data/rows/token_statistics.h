#pragma once

#include <cstdint>
#include <vector>

#include "core/data/common.h"
#include "core/data/rows/token_file.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {

/// Bytes of text that the first `targets` targets of a token file stand for, that is all its tokens
/// from the second on. Special tokens stand for none, and neither does the space that a tokenizer
/// puts before each document, which BOS tells. Throws Error for an id outside the vocabulary.
int64_t scored_bytes(const TokenFile& file, int64_t targets, const Tokenizer& tokenizer);

/// The same of padded rows: of the first `rows` documents, of each the ids 1 … seq_len - 1.
int64_t scored_bytes_of_documents(const TokenFile& file,
                                  int64_t rows,
                                  int seq_len,
                                  const Tokenizer& tokenizer);

/// How often a token occurs.
struct TokenCount {
  int32_t id = 0;
  int64_t count = 0;
};

/// What a token file holds.
struct TokenStatistics {
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;  ///< that the tokens stand for
  int64_t shortest = 0;    ///< of the documents, in tokens, BOS included
  int64_t longest = 0;
  double mean_length = 0;
  /// Of the lengths: 5, 25, 50, 75 and 95 percent of the documents are no longer.
  std::vector<int64_t> quantiles;
  /// Documents of fewer than 2, 4, 8, … tokens that are in no earlier class.
  std::vector<int64_t> length_classes;
  std::vector<TokenCount> top;  ///< the most frequent ones first
  int64_t unused_entries = 0;   ///< of the vocabulary
};

/// Reads all of a token file. Throws Error where it was damaged, and for an id outside the
/// vocabulary.
TokenStatistics statistics_of(const TokenFile& file,
                              const Tokenizer& tokenizer,
                              int top,
                              const Progress& progress);

}  // namespace forge::data
