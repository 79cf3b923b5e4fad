#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "core/data/common.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {

/// Gives one document after another; false when there are no more.
using NextDocument = std::function<bool(std::string& document)>;

/// How often each piece occurs in the documents, a space put before each of them, as GPT-2's
/// pattern splits them. On all cores; `next_document` is called on this thread alone. At most some
/// tens of megabytes of documents are held at a time.
std::unordered_map<std::string, int64_t> count_words(const NextDocument& next_document);

/// Trains byte-level BPE as Hugging Face's trainer does with min_frequency 0: the most frequent
/// pair of neighbours within the pieces of the text becomes a token, of equally frequent ones the
/// pair with the smaller ids, until there are `vocab_size` entries, special tokens included.
/// Throws Error when the text has no more pairs before that.
Tokenizer train_byte_level_bpe(const NextDocument& next_document,
                               int vocab_size,
                               const Progress& progress);

}  // namespace forge::data
