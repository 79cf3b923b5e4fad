#include "core/model/summary.h"

#include <nlohmann/json.hpp>

namespace forge::model {

Summary summarize(const config::ModelConfig& model, const config::TrainConfig& train) {
  return {
      count_parameters(model), flops_per_token(model, train.seq_len), training_bytes(model, train)};
}

nlohmann::json to_json(const Summary& summary) {
  nlohmann::json parameters;
  for (size_t i = 0; i < part_count; ++i) {
    const Part part = static_cast<Part>(i);
    parameters[name_of(part)] = summary.parameters.of(part);
  }
  parameters["total"] = summary.parameters.total();
  const TokenFlops& flops = summary.flops;
  // Whole numbers as long as they are exact in a double, which those of any real model are.
  const auto whole = [](double count) { return static_cast<int64_t>(count); };
  const TrainingBytes& bytes = summary.bytes;
  return {{"parameters", parameters},
          {"flops_per_token",
           {{"forward",
             {{"projections", whole(flops.projections)},
              {"attention", whole(flops.attention)},
              {"canon", whole(flops.canon)},
              {"lm_head", whole(flops.lm_head)},
              {"total", whole(flops.forward())}}},
            {"backward", whole(flops.backward())},
            {"total", whole(flops.total())}}},
          {"bytes",
           {{"weights", bytes.weights},
            {"gradients", bytes.gradients},
            {"optimizer", bytes.optimizer},
            {"activations", bytes.activations},
            {"logits_gradient", bytes.logits_gradient},
            {"total", bytes.total()}}}};
}

}  // namespace forge::model
