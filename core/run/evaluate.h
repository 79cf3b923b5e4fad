#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/run/backend.h"
#include "core/run/evaluation_data.h"
#include "core/run/launcher.h"

namespace forge::run {

struct ModelEvaluation {
  double loss = 0;        ///< mean negative log likelihood of a token, in nats; all weigh the same
  double perplexity = 0;  ///< exp(loss)
  std::optional<double> bits_per_byte;  ///< of the text that the scored tokens stand for
  int64_t tokens = 0;                   ///< scored
  int64_t bytes = 0;                    ///< of text, 0 where there is no tokenizer to tell
  double seconds = 0;                   ///< of the evaluation alone
  std::string device;
  std::map<std::string, protocol::Score> scores;  ///< of a task
};

/// Has a worker evaluate a model. `progress` gets the fraction done. Throws Error as run_job does.
ModelEvaluation evaluate(const RunModel& model,
                         const EvaluationData& data,
                         const std::string& device,
                         int threads,
                         const Backend& backend,
                         Launcher& launcher,
                         const std::function<void(double)>& progress);

}  // namespace forge::run
