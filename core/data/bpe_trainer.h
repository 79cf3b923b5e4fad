#pragma once

#include "core/data/progress.h"
#include "core/data/tokenizer.h"
#include "core/data/word_counts.h"

namespace forge::data {

/// Trains byte-level BPE as Hugging Face's trainer does with min_frequency 0: the most frequent
/// pair of neighbours within the pieces of the text becomes a token, of equally frequent ones the
/// pair with the smaller ids, until there are `vocab_size` entries, special tokens included.
/// Throws Error when the text has no more pairs before that.
Tokenizer train_byte_level_bpe(const NextDocument& next_document,
                               int vocab_size,
                               const Progress& progress);

}  // namespace forge::data
