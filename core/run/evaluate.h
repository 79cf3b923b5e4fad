#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/staging.h"
#include "core/data/common.h"
#include "core/run/open_model.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::run {

/// Token ids that a model is evaluated on, in its own vocabulary.
struct EvaluationData {
  std::string name;                                       ///< for messages
  std::vector<worker::TokenSource> tokens;                ///< of the model's train.seq_len
  std::shared_ptr<const TemporaryFile> temporary_tokens;  ///< of `tokens`, if made for this
  std::vector<std::string> warnings = {};                 ///< on the text, a sentence each

  int64_t rows() const;
};

/// The held-out rows that the run itself was evaluated on. Throws Error if the model was not
/// trained here, or if its text has changed.
EvaluationData own_evaluation_data(const RunModel& model,
                                   const std::filesystem::path& cache_dir,
                                   const data::Progress& progress);

/// The held-out rows of another experiment, whose tokenizer must be the model's.
EvaluationData evaluation_data_of(const RunModel& model,
                                  const config::Experiment& experiment,
                                  const std::string& name,
                                  const std::filesystem::path& cache_dir,
                                  const data::Progress& progress);

/// All of a token file, or of evaluation.tokens of a folder; else all text of a file (of JSON lines
/// the field "text") or of a folder's .txt files, tokenized in `cache_dir` for this evaluation.
EvaluationData evaluation_data_at(const RunModel& model,
                                  const std::filesystem::path& path,
                                  const std::filesystem::path& cache_dir,
                                  const data::Progress& progress);

struct ModelEvaluation {
  double loss = 0;                      ///< mean negative log likelihood of a token, in nats
  double perplexity = 0;                ///< exp(loss)
  std::optional<double> bits_per_byte;  ///< of the scored tokens' text
  int64_t tokens = 0;                   ///< scored
  int64_t bytes = 0;                    ///< of text, 0 without a tokenizer
  double seconds = 0;                   ///< of the evaluation alone
  std::string device;
  std::map<std::string, worker::Score> scores;  ///< of a task
};

/// Has a worker evaluate a model. `progress` gets the fraction done. Throws Error as
/// worker::run_job does, and where the loss is not finite, with the weights that are not.
ModelEvaluation evaluate(const RunModel& model,
                         const EvaluationData& data,
                         const std::string& device,
                         int threads,
                         const worker::Backend& backend,
                         worker::Launcher& launcher,
                         const std::function<void(double)>& progress);

}  // namespace forge::run
