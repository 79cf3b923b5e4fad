#pragma once

#include <cstdint>

#include "core/data/bpe_trainer.h"
#include "core/data/corpus/sample.h"
#include "core/data/corpus/text_files.h"
#include "core/data/progress.h"
#include "core/data/token_file_writer.h"
#include "core/data/tokenizer.h"
#include "core/data/toy_stories.h"

namespace forge::data {

/// How much is to be written of a text without an end: at least so much of both.
struct TokenAmount {
  int64_t tokens = 0;
  int64_t documents = 0;
};

/// Writers that are kept save their work after so many tokens: about a second's work of two cores.
constexpr int64_t tokens_between_saves = int64_t{8} << 20;

/// Appends the tokens of whole generated stories, from story 0 on or from where the writer goes on,
/// until the amount is there. Runs on all cores. Reports the phase "writing tokens".
void write_toy_stories(uint64_t seed,
                       Split split,
                       TokenAmount amount,
                       const Tokenizer& tokenizer,
                       const Progress& progress,
                       TokenFileWriter& writer,
                       int64_t save_every = tokens_between_saves);

/// Appends the tokens of the documents of a range, each with BOS in front, from where the writer
/// goes on. Text is read as it is needed and encoded on all cores, long documents in parts; the ids
/// are those of the whole.
void write_text(const TextRange& range,
                const Tokenizer& tokenizer,
                const Progress& progress,
                TokenFileWriter& writer,
                int64_t save_every = tokens_between_saves);

/// Text that a tokenizer is trained on, so many bytes: the same whatever a run needs.
NextDocument toy_stories_sample(uint64_t seed, int64_t bytes = tokenizer_sample_bytes);

}  // namespace forge::data
