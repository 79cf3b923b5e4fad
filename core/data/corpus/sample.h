#pragma once

#include "core/data/bpe_trainer.h"
#include "core/data/corpus/text_files.h"

namespace forge::data {

/// The text of a range that a tokenizer is trained on: all of it up to four megabytes, of more so
/// much in slices spread evenly over it. The same for the same text, compressed or not.
NextDocument sample_of(const TextRange& range);

}  // namespace forge::data
