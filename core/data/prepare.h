#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/config/experiment.h"
#include "core/data/progress.h"

namespace forge::data {

/// What a run trains on, ready on the disk.
struct PreparedData {
  std::filesystem::path tokenizer;     ///< tokenizer.json; "" where a task has ids of its own
  std::filesystem::path train_tokens;  ///< token files, see token_file.h; "" likewise
  std::filesystem::path evaluation_tokens;
  int64_t train_rows = 0;       ///< to be used; of generated text as many as the run needs
  int64_t evaluation_rows = 0;  ///< to be used; at most train.eval_rows
  std::optional<int32_t> document_start;  ///< id that begins a document: with train.document_mask
  std::optional<int32_t> pad_id;          ///< id behind a document: with data.rows padded
  std::string data_fingerprint;           ///< of the text and its split
  std::string tokenizer_fingerprint;      ///< of vocabulary, merges and settings; "" without one
  nlohmann::json task = nlohmann::json::object();  ///< tasks/spec.h; {} where there is no task
};

/// Makes the tokenizer and the token files of an experiment, or finds them in the cache:
///
///     cache_dir/data/<source>-<data fingerprint>/<tokenizer>/tokenizer.json
///                                                            tokenizer.hash
///                                                            train.tokens
///                                                            evaluation.tokens
///                                                            made_from.json
///                                                            lock
///
/// beside which train.tokens.partial* is work that was broken off: it is gone on with.
///
/// The files of generated text grow when a run needs more than is there; the shorter file is the
/// beginning of the longer one, so a run that uses it is not disturbed. Any number of processes may
/// prepare the same data at once: one does, the others wait. Each file appears whole or not at all;
/// one that turns out damaged is made anew. `check_content` reads every byte for that, not only
/// headers and sizes.
/// Throws Error where the text is missing, not text, or too small, and where train.document_mask
/// asks for documents that the tokenizer does not mark.
PreparedData prepare(const config::Experiment& experiment,
                     const std::filesystem::path& cache_dir,
                     const Progress& progress,
                     bool check_content = false);

}  // namespace forge::data
