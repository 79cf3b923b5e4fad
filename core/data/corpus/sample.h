#pragma once

#include <cstdint>

#include "core/data/bpe_trainer.h"
#include "core/data/corpus/text_files.h"

namespace forge::data {

/// What a tokenizer is trained on. Changing it changes every trained tokenizer.
constexpr int64_t tokenizer_sample_bytes = int64_t{4} << 20;

/// Text of a range to train a tokenizer on: all of it up to so many bytes, of more about so much in
/// slices spread evenly over it. The same for the same text, compressed or not.
NextDocument sample_of(const TextRange& range, int64_t bytes = tokenizer_sample_bytes);

}  // namespace forge::data
