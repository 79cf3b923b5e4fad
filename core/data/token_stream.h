#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/data/bpe_trainer.h"
#include "core/data/corpus/sample.h"
#include "core/data/corpus/text_files.h"
#include "core/data/progress.h"
#include "core/data/token_file_writer.h"
#include "core/data/tokenizer.h"

namespace forge::data {

/// How much is to be written of a text without an end: at least so much of both.
struct TokenAmount {
  int64_t tokens = 0;
  int64_t documents = 0;
};

/// Writers that are kept save their work after so many tokens: about a second's work of two cores.
constexpr int64_t tokens_between_saves = int64_t{8} << 20;

/// Text `index` of an endless sequence. Any number of threads may call one.
using GeneratedText = std::function<std::string(uint64_t index)>;

/// Appends the tokens of whole generated texts, from text 0 on or from where the writer goes on,
/// until the amount is there. Runs on all cores. Reports the phase "writing tokens".
void write_generated(const GeneratedText& text_of,
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
NextDocument generated_sample(const GeneratedText& text_of, int64_t bytes = tokenizer_sample_bytes);

}  // namespace forge::data
