#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/config/experiment.h"
#include "core/model/arithmetic.h"

namespace forge::model {

/// What a model weighs and costs, without building it.
struct Summary {
  ParameterCounts parameters;
  TokenFlops flops;
  TrainingBytes bytes;
};

/// For training with the batch, row length and precision of `train`.
Summary summarize(const config::ModelConfig& model, const config::TrainConfig& train);

/// {"parameters": {part: weights, …, "total"}, "flops_per_token": {"forward": {…, "total"},
/// "backward", "total"}, "bytes": {"weights", …, "total"}}.
nlohmann::json to_json(const Summary& summary);

}  // namespace forge::model
