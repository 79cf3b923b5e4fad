#include "core/huggingface/release_config.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/weights/release_names.h"

namespace forge::huggingface {
namespace {

using model::ModelConfig;
using Json = nlohmann::json;

/// Keys of all three that would make another function.
const std::vector<Refusal>& common_refusals() {
  static const std::vector<Refusal> list = {
      {"hidden_act", {"swish", "silu"}, "forge's MLP of these models is gated by silu"},
      {"canon_bias", {false}, "forge's Canon layers have no bias"},
      {"conv_size", {model::short_conv_taps}, "forge's short convolution has four taps"},
      {"conv_kernel", {model::short_conv_taps}, "forge's short convolution has four taps"},
      {"attn", {}, "forge writes hybrids with attention under a model_type of its own"},
      {"use_output_gate", {true}, "forge gates the outputs"},
      {"use_gate", {true}, "forge gates the outputs"},
      {"use_gk", {true}, "forge's GLA5 has a decay for each key channel"},
      {"use_gv", {false}, "forge's GLA5 has a decay for each key channel"},
      {"feature_map", {}, "forge's GLA5 has none but silu"},
      {"time_step_limit",
       {nlohmann::json::array({0.0, "Infinity"})},
       "forge's Mamba2 does not clamp its step"},
      {"n_groups", {1}, "forge's Mamba2 has one B and one C for all heads"},
      {"use_bias", {false}, "forge's projections have no bias"},
      {"use_conv_bias", {true}, "the short convolution of forge's Mamba2 has a bias"},
      {"mlp_type", {"mlp10"}, "forge's Mamba2 has a gated MLP in every layer"},
      {"rms_norm", {true}, "forge's Mamba2 norms its outputs"}};
  return list;
}

/// Kernels, rounding and initial values: they change no logit beyond rounding.
constexpr const char* keys_of_speed[] = {"attn_mode",
                                         "chunk_size",
                                         "fuse_norm",
                                         "fuse_swiglu",
                                         "fuse_cross_entropy",
                                         "hidden_ratio",
                                         "rescale_prenorm_residual",
                                         "residual_in_fp32",
                                         "time_step_floor",
                                         "time_step_max",
                                         "time_step_min",
                                         "time_step_rank",
                                         "zeyuan_layernorm",
                                         "zeyuan_split_init"};

void read_canon(ConfigKeys& keys, ModelConfig& model, std::vector<std::string>& notes) {
  const std::string letters = keys.text("canon_set");
  const Json& short_conv = keys.value("use_short_conv");
  const auto has = [&](char letter) {
    if (letter == 'b' && short_conv.is_boolean()) return short_conv.get<bool>();
    return letters.find(letter) != std::string::npos;
  };
  for (const char letter : {'A', 'b', 'B', 'C', 'D'}) {
    if (has(letter)) model.canon.set += letter;
  }
  if (letters.find_first_not_of("AbBCD") != std::string::npos) {
    notes.push_back("canon_set '" + letters + "' is '" + model.canon.set +
                    "': the released code passes over other letters");
  }
  const int kernel = keys.size("canon_kernel", 4);
  const Json& residual = keys.value("canon_residual");
  const Json& activation = keys.value("canon_activation");
  if (!model.canon.has_residual_layers()) return;
  if (kernel < 2 || kernel > 4) {
    throw Error("'canon_kernel' is " + std::to_string(kernel), "forge's Canon has 2, 3 or 4");
  }
  model.canon.kernel = kernel;
  if (!residual.is_null()) model.canon.residual = keys.flag("canon_residual");
  if (!activation.is_null() && keys.flag("canon_activation"))
    model.canon.activation = model::Activation::silu;
}

std::optional<int> gate_rank(ConfigKeys& keys) {
  if (keys.value("output_gate_rank").is_null()) return std::nullopt;
  return keys.size("output_gate_rank");
}

void read_gla5(ConfigKeys& keys, ModelConfig& model) {
  model.gla5.num_heads = keys.size("num_heads");
  if (keys.size("num_kv_heads", model.gla5.num_heads) != model.gla5.num_heads)
    throw Error("'num_kv_heads' is not num_heads", "forge's GLA5 has a key for each query head");
  model.gla5.expand_k = keys.number("expand_k", 0.5);
  model.gla5.expand_v = keys.number("expand_v", 1);
  model.gla5.output_gate_rank = gate_rank(keys);
}

void read_gdn2(ConfigKeys& keys, ModelConfig& model) {
  model.gdn2.num_heads = keys.size("num_heads");
  const double keys_width = double(keys.size("head_dim")) * model.gdn2.num_heads;
  model.gdn2.expand_k = keys_width / model.hidden_size;
  model.gdn2.expand_v = model.gdn2.expand_k * keys.number("expand_v", 2);
  model.gdn2.output_gate_rank = gate_rank(keys);
}

void read_mamba2(ConfigKeys& keys, ModelConfig& model) {
  model::Mamba2Config& mamba2 = model.mamba2;
  mamba2.num_heads = keys.size("num_heads");
  mamba2.expand = keys.size("expand", 2);
  mamba2.state_size = keys.size("state_size");
  const int64_t inner = mamba2.inner_width(model.hidden_size);
  if (int64_t{keys.size("head_dim")} * mamba2.num_heads != inner) {
    throw Error("'head_dim' " + shown(keys.value("head_dim")) + " of num_heads " +
                    std::to_string(mamba2.num_heads) + " is not " + std::to_string(inner),
                "it is expand * hidden_size / num_heads");
  }
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson number_or_null(const std::optional<int>& number) {
  return number ? OrderedJson(*number) : OrderedJson(nullptr);
}

/// As fla writes them: whole numbers without a point.
OrderedJson expansion(double factor) {
  const auto whole = static_cast<int64_t>(factor);
  return double(whole) == factor ? OrderedJson(whole) : OrderedJson(factor);
}

void write_mixer(const ModelConfig& model, Architecture architecture, OrderedJson& json) {
  const bool has_conv = model.canon.has('b');
  if (architecture == Architecture::gla) {
    json["num_heads"] = model.gla5.num_heads;
    json["expand_k"] = expansion(model.gla5.expand_k);
    json["expand_v"] = expansion(model.gla5.expand_v);
    json["output_gate_rank"] = number_or_null(model.gla5.output_gate_rank);
  } else if (architecture == Architecture::gated_delta_net) {
    json["num_heads"] = model.gdn2.num_heads;
    json["head_dim"] = model::gdn2_heads(model).key_dim;
    json["expand_v"] = expansion(model.gdn2.expand_v / model.gdn2.expand_k);
    json["output_gate_rank"] = number_or_null(model.gdn2.output_gate_rank);
    json["use_gate"] = true;
  } else {
    json["num_heads"] = model.mamba2.num_heads;
    json["head_dim"] = model::mamba2_heads(model).value_dim;
    json["state_size"] = model.mamba2.state_size;
    json["expand"] = model.mamba2.expand;
    json["n_groups"] = 1;
    json["conv_kernel"] = model::short_conv_taps;
    json["use_bias"] = false;
    json["use_conv_bias"] = true;
    json["mlp_type"] = "mlp10";
    json["chunk_size"] = 256;
    return;
  }
  json["use_short_conv"] = has_conv;
  json["conv_size"] = model::short_conv_taps;
  json["hidden_act"] = "swish";
  json["zeyuan_split_init"] = true;
  json["zeyuan_layernorm"] = false;
}

const char* eps_key(Architecture architecture) {
  return architecture == Architecture::mamba2 ? "layer_norm_epsilon" : "norm_eps";
}

}  // namespace

std::optional<Architecture> released_architecture(const ModelConfig& model) {
  const std::string kind = weights::release_kind(model);
  if (kind == "gla5") return Architecture::gla;
  if (kind == "gdn2") return Architecture::gated_delta_net;
  if (kind == "mamba2") return Architecture::mamba2;
  return std::nullopt;
}

bool is_released_linear(Architecture architecture) {
  return architecture == Architecture::gla || architecture == Architecture::gated_delta_net ||
         architecture == Architecture::mamba2;
}

void write_release_keys(const ModelConfig& model, OrderedJson& json) {
  const Architecture architecture = *released_architecture(model);
  json["vocab_size"] = model.vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["num_hidden_layers"] = model.num_layers;
  json["intermediate_size"] = model.mlp.intermediate_size;
  json["tie_word_embeddings"] = model.tie_embeddings;
  json[eps_key(architecture)] = model.norm.eps;
  write_mixer(model, architecture, json);
  json["canon_set"] = model.canon.set;
  json["canon_kernel"] = model.canon.kernel;
  json["canon_residual"] = model.canon.residual;
  json["canon_activation"] = model.canon.activation == model::Activation::silu;
  json["canon_bias"] = false;
}

ModelConfig read_release_keys(ConfigKeys& keys,
                              Architecture architecture,
                              std::vector<std::string>& notes) {
  keys.refuse(common_refusals());
  for (const char* key : keys_of_speed) keys.value(key);
  ModelConfig model;
  model.init = model::ModelInit::huggingface;
  model.vocab_size = keys.size("vocab_size");
  model.hidden_size = keys.size("hidden_size");
  model.num_layers = keys.size("num_hidden_layers");
  const bool is_mamba2 = architecture == Architecture::mamba2;
  const auto width = is_mamba2 ? std::optional<int>(2 * model.hidden_size) : std::nullopt;
  model.mlp.intermediate_size = keys.size("intermediate_size", width);
  if (!keys.value("tie_word_embeddings").is_null())
    model.tie_embeddings = keys.flag("tie_word_embeddings");
  model.norm.eps = keys.number(eps_key(architecture), is_mamba2 ? 1e-5 : 1e-6);
  read_canon(keys, model, notes);
  if (architecture == Architecture::gla) {
    model.layers = {"gla5"};
    read_gla5(keys, model);
  } else if (architecture == Architecture::gated_delta_net) {
    model.layers = {"gdn2"};
    read_gdn2(keys, model);
  } else {
    model.layers = {"mamba2"};
    read_mamba2(keys, model);
  }
  return model;
}

}  // namespace forge::huggingface
