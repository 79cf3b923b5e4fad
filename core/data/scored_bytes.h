#pragma once

#include <cstdint>

#include "core/data/token_file.h"
#include "core/data/tokenizer.h"

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

}  // namespace forge::data
