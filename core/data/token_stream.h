#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/data/bpe_trainer.h"
#include "core/data/progress.h"
#include "core/data/text_corpus.h"
#include "core/data/token_file.h"
#include "core/data/tokenizer.h"
#include "core/data/toy_stories.h"

namespace forge::data {

/// Appends the tokens of whole generated stories, from story 0 on, until at least `tokens` are
/// there. Runs on all cores. Reports the phase "writing tokens".
void write_toy_stories(uint64_t seed,
                       Split split,
                       int64_t tokens,
                       const Tokenizer& tokenizer,
                       const Progress& progress,
                       TokenFileWriter& writer);

/// Appends the tokens of documents, each with BOS in front. Long documents are encoded in parts on
/// all cores; the ids are those of the whole.
void write_documents(const std::vector<std::string_view>& documents,
                     const Tokenizer& tokenizer,
                     const Progress& progress,
                     TokenFileWriter& writer);

/// The text that a tokenizer is trained on: a few megabytes, the same whatever a run needs. Of
/// documents, slices spread evenly over all of them.
NextDocument toy_stories_sample(uint64_t seed);
NextDocument documents_sample(const std::vector<std::string_view>& documents);

}  // namespace forge::data
