#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/data/progress.h"
#include "core/protocol/messages.h"
#include "core/run/run_model.h"

namespace forge::run {

/// Token ids that a model is evaluated on, in its own vocabulary.
struct EvaluationData {
  std::string name;                           ///< what to call it
  std::vector<protocol::TokenSource> tokens;  ///< of the model's train.seq_len
  std::shared_ptr<const void> keeps_tokens;   ///< removes a token file that was made for this alone

  int64_t rows() const;
};

/// The held-out rows that the run itself was evaluated on. Throws Error where the model was not
/// trained here, or where its text is no longer what it was.
EvaluationData own_evaluation_data(const RunModel& model,
                                   const std::filesystem::path& cache_dir,
                                   const data::Progress& progress);

/// The held-out rows of another experiment, whose tokenizer must be the model's.
EvaluationData evaluation_data_of(const RunModel& model,
                                  const config::Experiment& experiment,
                                  const std::string& name,
                                  const std::filesystem::path& cache_dir,
                                  const data::Progress& progress);

/// All of a token file, or of the file evaluation.tokens of a folder, or all text of a file (of
/// JSON lines in the field "text") or of a folder's .txt files, which becomes tokens in `cache_dir`
/// for this one time.
EvaluationData evaluation_data_at(const RunModel& model,
                                  const std::filesystem::path& path,
                                  const std::filesystem::path& cache_dir,
                                  const data::Progress& progress);

}  // namespace forge::run
