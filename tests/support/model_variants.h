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
      {R"({"layers": ["attention", {"mixer": "attention", "attention": {"window": 3},
           "canon": {"set": "A"}, "mlp": {"intermediate_size": 8}}]})",
       4144,
       256 + 168,
       16,
       32 + 48},
  };
}

/// Models with linear mixers, in place of the Llama's attention or beside it.
inline std::vector<ModelVariant> linear_variants() {
  // Of a gdn2 layer with two heads of 8 keys and 16 values.
  constexpr double gdn2 = 2 * (768 + 768 + 128.0 / 3);
  return {
      {R"({"layers": ["gla5"], "attention": null, "gla5": {"num_heads": 2}})", 9072, 3584, 0, 512},
      {R"({"layers": ["gla5"], "attention": null, "gla5": {"num_heads": 2},
           "canon": {"set": "AbCD"}})",
       10224,
       3584,
       0,
       1376},
      {R"({"layers": ["gla5"], "attention": null, "canon": {"set": "b"},
           "gla5": {"num_heads": 2, "expand_k": 0.5, "expand_v": 1, "qkv_activation": "after_conv",
                    "gate_rank": 4, "gate_normalizer": 8, "output_gate_rank": null}})",
       5840,
       1280,
       0,
       320},
      {R"({"layers": ["gla5"], "attention": null, "gla5": {"num_heads": 2},
           "norm": {"kind": "layer_norm"}})",
       9152,
       3584,
       0,
       512},
      {R"({"layers": ["gdn2"], "attention": null, "gdn2": {"num_heads": 2}})",
       8152,
       2 * gdn2,
       0,
       512},
      {R"({"layers": ["gdn2"], "attention": null, "gdn2": {"num_heads": 2},
           "canon": {"set": "AbBCD"}})",
       9816,
       2 * gdn2,
       0,
       1760},
      {R"({"layers": ["gdn2"], "attention": null,
           "canon": {"set": "AB", "kernel": 3, "residual": false, "activation": "silu"},
           "gdn2": {"num_heads": 4, "expand_k": 0.75, "expand_v": 1.5, "qkv_activation": "none",
                    "output_gate_rank": null}})",
       7052,
       8 * (108 + 288 + 128.0 / 3),
       0,
       400},
      {R"({"layers": ["mamba2"], "attention": null, "mamba2": {"num_heads": 2, "state_size": 8}})",
       7036,
       3328,
       0,
       512},
      {R"({"layers": ["mamba2"], "attention": null, "mamba2": {"num_heads": 2, "state_size": 8},
           "canon": {"set": "AbCD"}})",
       8156,
       3328,
       0,
       1280},
      {R"({"layers": ["mamba2"], "attention": null, "canon": {"set": "b"},
           "mamba2": {"num_heads": 2, "state_size": 8, "conv_activation": "none"}})",
       7516,
       3328,
       0,
       800},
      {R"({"layers": ["mamba2"], "attention": null, "canon": {"set": "BD"},
           "mamba2": {"num_heads": 4, "state_size": 4, "expand": 1}})",
       6024,
       1152,
       0,
       680},
      {R"({"layers": ["gdn2", "attention"], "gdn2": {"num_heads": 2}, "canon": {"set": "AbBCD"}})",
       7780,
       256 + gdn2,
       16,
       880 + 336},
      {R"({"layers": ["gla5", {"mixer": "mamba2", "canon": {"set": "ABD"}}], "attention": null,
           "gla5": {"num_heads": 2}, "mamba2": {"num_heads": 2, "state_size": 8},
           "canon": {"set": "Ab"}})",
       8958,
       1792 + 1664,
       0,
       496 + 694},
  };
}

/// Every variant of a model.
inline std::vector<ModelVariant> all_variants() {
  std::vector<ModelVariant> all = model_variants();
  const std::vector<ModelVariant> linear = linear_variants();
  all.insert(all.end(), linear.begin(), linear.end());
  return all;
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
      {{"model.canon.set=Ab"}, "model.canon.set 'Ab' has 'b', which is no Canon position"},
      {{"model.layers=[gla5]", "model.gla5.num_heads=5"},
       "model.gla5.expand_k 1.0 of model.hidden_size 64 makes no whole number of channels in each "
       "of model.gla5.num_heads 5"},
      {{"model.layers=[gla5]", "model.gla5.num_heads=4", "model.canon.set=AB"},
       "model.canon.set 'AB' has 'B', which model.layers with gla5 has no place for"},
      {{"model.layers=[gdn2, gla5]",
        "model.gla5.num_heads=4",
        "model.gdn2.num_heads=4",
        "model.canon.set=B"},
       "which model.layers with gla5 has no place for"},
      {{"model.layers=[mamba2]", "model.mamba2.num_heads=4", "model.mamba2.conv_activation=none"},
       "model.mamba2.conv_activation none has no meaning where model.canon.set has no b"},
      {{"model.layers=[gdn2]",
        "model.gdn2.num_heads=4",
        "model.canon.set=b",
        "model.canon.kernel=3"},
       "model.canon.kernel 3 has no meaning where model.canon.set is b"},
      {{"model.layers=[gdn2]", "model.gdn2.num_heads=4", "train.document_mask=true"},
       "train.document_mask true is not possible with gdn2 in model.layers"},
      {{"model.layers=[{mixer: attention, attention: {window: 0}}]"},
       "'model.layers[0].attention.window' must be from 1 to"},
      {{"model.layers=[attention, {mixer: attention, gla5: {num_heads: 2}}]"},
       "'model.layers[1].gla5' has no meaning in a layer of attention"},
      {{"model.layers=[{mixer: attention, canon: {set: AX}}]"},
       "model.layers[0]: model.canon.set 'AX' has 'X', which is no Canon position"},
      {{"model.layers=[{mixer: attention, canon: {set: '', kernel: 3}}]"},
       "model.layers[0]: model.canon.kernel 3 has no meaning where model.canon.set is empty"},
  };
}

/// The model of a change. A section that is null is left out.
inline model::ModelConfig model_of(const char* change) {
  config::Experiment experiment;
  experiment.model = small_llama();
  nlohmann::json json = config::to_json(experiment);
  json["model"].update(nlohmann::json::parse(change), true);
  if (json["model"]["attention"].is_null()) json["model"].erase("attention");
  experiment = config::experiment_from_json(json);
  model::complete_model(experiment.model);
  return experiment.model;
}

}  // namespace forge::tests
