#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/model/kinds.h"

/// What a model may be, one option or a few in each. Every test of models goes through this list:
/// costs and files in core, generation, memory and gradients in the workers. A new option of a
/// block is a line here.
namespace forge::tests {

/// A change of small_llama() and what it makes of its costs.
struct ModelVariant {
  const char* change;  ///< JSON, laid upon the section `model`
  int64_t parameters;
  double mixing_flops;                   ///< of one token, averaged over a row of 8, in both layers
  int64_t state_per_token, fixed_state;  ///< for generation
};

/// A Llama of 4,848 weights with grouped queries.
inline model::ModelConfig small_llama() {
  model::ModelConfig model;
  model.vocab_size = 29;
  model.hidden_size = 16;
  model.num_layers = 2;
  model.attention.num_heads = 4;
  model.attention.num_kv_heads = 2;
  model.attention.head_dim = 4;
  model.mlp.intermediate_size = 24;
  return model;
}

inline std::vector<ModelVariant> model_variants() {
  return {
      {R"({})", 4848, 512, 32, 0},
      {R"({"attention": {"num_kv_heads": 1}})", 4592, 512, 16, 0},
      {R"({"attention": {"num_kv_heads": 4}})", 5360, 512, 64, 0},
      {R"({"attention": {"num_kv_heads": 1, "head_dim": 6}})", 5232, 768, 24, 0},
      {R"({"canon": {"set": "ABCD"}})", 5744, 512, 32, 672},
      {R"({"attention": {"qk_norm": "full"}})", 4896, 512, 32, 0},
      {R"({"attention": {"qk_norm": "per_head"}})", 4864, 512, 32, 0},
      {R"({"attention": {"qk_norm": "full", "position": {"kind": "nope"}}, "canon": {"set": "B"}})",
       5152,
       512,
       32,
       192},
      {R"({"attention": {"qk_norm": "per_head", "num_kv_heads": 1}, "canon": {"set": "AB"}})",
       4928,
       512,
       16,
       240},
      {R"({"attention": {"window": 1}, "canon": {"set": "ABCD"}})", 5744, 128, 0, 672},
      {R"({"attention": {"window": 3}})", 4848, 336, 0, 64},
      {R"({"attention": {"window": 100}})", 4848, 512, 0, 3168},
      {R"({"attention": {"window": 5, "qk_norm": "per_head", "num_kv_heads": 1},
           "canon": {"set": "AB", "kernel": 3}})",
       4848,
       480,
       0,
       224},
      {R"({"norm": {"kind": "layer_norm"}})", 4928, 512, 32, 0},
      {R"({"norm": {"kind": "layer_norm", "eps": 1e-3}, "canon": {"set": "ABCD"}})",
       5824,
       512,
       32,
       672},
      {R"({"norm": {"kind": "layer_norm"}, "attention": {"qk_norm": "full"},
           "canon": {"set": "AD"}})",
       5488,
       512,
       32,
       384},
      {R"({"mlp": {"kind": "geglu"}})", 4848, 512, 32, 0},
      {R"({"mlp": {"kind": "geglu"}, "canon": {"set": "ABCD"}})", 5744, 512, 32, 672},
      {R"({"mlp": {"kind": "gelu"}})", 4080, 512, 32, 0},
      {R"({"mlp": {"kind": "gelu"}, "canon": {"set": "ABCD", "activation": "silu"}})",
       4784,
       512,
       32,
       528},
      {R"({"mlp": {"kind": "relu_squared"}})", 4080, 512, 32, 0},
      {R"({"mlp": {"kind": "relu_squared"}, "canon": {"set": "D"}})", 4272, 512, 32, 144},
  };
}

/// Settings of a config that are refused, with a part of the message.
struct RefusedSettings {
  std::vector<std::string> settings;
  const char* message;
};

inline std::vector<RefusedSettings> refused_settings() {
  return {
      {{"model.attention.num_kv_heads=3"},
       "model.attention.num_kv_heads 3 does not divide model.attention.num_heads 4"},
      {{"model.attention.num_kv_heads=8"},
       "model.attention.num_kv_heads 8 does not divide model.attention.num_heads 4"},
      {{"model.attention.num_heads=6", "model.attention.num_kv_heads=4"},
       "model.attention.num_kv_heads 4 does not divide model.attention.num_heads 6"},
      {{"model.attention.num_heads=7"},
       "model.attention.num_heads 7 does not divide model.hidden_size 64"},
      {{"model.attention.head_dim=7"}, "model.attention.head_dim 7 is odd"},
      {{"model.attention.window=0"}, "'model.attention.window' must be from 1 to"},
      {{"model.norm.kind=layer_norm", "model.norm.rounding=lingua"},
       "model.norm.rounding lingua has no meaning where model.norm.kind is layer_norm"},
  };
}

/// The model of a change.
inline model::ModelConfig model_of(const char* change) {
  config::Experiment experiment;
  experiment.model = small_llama();
  nlohmann::json json = config::to_json(experiment);
  json["model"].merge_patch(nlohmann::json::parse(change));
  experiment = config::experiment_from_json(json);
  model::complete_model(experiment.model);
  return experiment.model;
}

}  // namespace forge::tests
