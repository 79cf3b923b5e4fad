#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/data/common.h"
#include "core/data/rows/evaluation_text.h"

namespace forge::data {

/// Rows of a token file (token_file.h).
struct PreparedRows {
  std::string name;  ///< of the source in a mixture, "" where it is alone
  double weight = 1;
  std::filesystem::path tokens;  ///< "" where a task has ids of its own
  int64_t rows = 0;              ///< to be used
  int64_t first_row = 0;         ///< they begin with this one of the file, or of the task
};

/// What a run trains on, ready on the disk.
struct PreparedData {
  std::filesystem::path tokenizer;  ///< tokenizer.json; "" where a task has ids of its own
  /// Of each source, of generated text as many rows as the run needs.
  std::vector<PreparedRows> train;
  std::vector<PreparedRows> evaluation;   ///< at most train.eval_rows of all
  std::vector<PreparedRows> validation;   ///< train.validation_rows behind them
  std::optional<int32_t> document_start;  ///< id that begins a document: with train.document_mask
  std::optional<int32_t> pad_id;          ///< id behind a document: with data.rows padded
  std::string data_fingerprint;           ///< of the text and its split
  std::string tokenizer_fingerprint;      ///< of vocabulary, merges and settings; "" without one
  std::vector<std::string> warnings;      ///< on the text, a sentence each
  EvaluationText evaluation_text;         ///< of one source of text; of others nothing is known
  nlohmann::json task = nlohmann::json::object();  ///< tasks/task_spec.h; {} where there is no task
};

/// What of a run's data is part of its identity.
struct DataFingerprints {
  std::string data;
  std::string tokenizer;
  std::vector<std::string> warnings = {};  ///< on the text, a sentence each
};

/// Makes the tokenizer and the token files of an experiment, or finds them in the cache:
///
///     cache_dir/data/<source>-<data fingerprint>/<tokenizer>/tokenizer.json
///                                                            tokenizer.hash
///                                                            train.tokens
///                                                            evaluation.tokens
///                                                            evaluation_text.json
///                                                            made_from.json
///                                                            lock
///
/// train.tokens.partial* beside them is interrupted work. It is resumed.
///
/// The files of generated text grow when a run needs more than is there; the shorter file is the
/// beginning of the longer one, so a run that uses it is not disturbed. Any number of processes may
/// prepare the same data at once: one does, the others wait. A cache that this user may only read
/// is used as far as it goes. Each file appears whole or not at all;
/// a damaged one is rebuilt. `verify_hashes` reads every byte for that of large
/// files too, not only headers and sizes, and a user's text even where cache_dir/surveys has its
/// hash from an earlier time and the times of its files are the same. `known` is what the data was
/// before, of a run that began: where its text or tokenizer is gone, what the cache has of them is
/// used. Throws Error where the text is missing, not text, or too small, and where
/// train.document_mask asks for documents that the tokenizer does not mark.
PreparedData prepare(const config::Experiment& experiment,
                     const std::filesystem::path& cache_dir,
                     const Progress& progress,
                     bool verify_hashes = false,
                     const DataFingerprints& known = {});

/// The fingerprints that `prepare` would give, without writing anything. None where the tokenizer
/// is to be trained first. A user's text is read if cache_dir/surveys does not know its hash.
std::optional<DataFingerprints> find_fingerprints(const config::Experiment& experiment,
                                                  const std::filesystem::path& cache_dir,
                                                  const Progress& progress,
                                                  const DataFingerprints& known = {});

/// The fingerprints of what a config names now, to compare runs with. `tokenizer` is that of
/// tokenizer.path, and "" where it is trained: it then follows from the text and the settings. A
/// text that cache_dir/surveys does not know is read once and known from then on.
DataFingerprints current_fingerprints(const config::Experiment& experiment,
                                      const std::filesystem::path& cache_dir,
                                      const Progress& progress);

/// What a run on a task with ids of its own needs: nothing on the disk, for its rows are made as
/// they are read. Throws Error where the task's ids or texts do not fit the model or train.seq_len.
PreparedData prepare_task(const config::Experiment& experiment);

}  // namespace forge::data
