#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/experiment.h"
#include "core/huggingface/model_config.h"

namespace forge::huggingface {
namespace {

using model::ModelConfig;
using model::PositionKind;
using model::QkNorm;
using model::RopePairing;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Keys of the section `model` that say how training began, not what the model computes.
bool is_of_the_beginning(const std::string& key) { return key.rfind("init", 0) == 0; }

/// Keys that change a last bit in low precision only: they need not keep others from the model.
bool is_of_rounding(const std::string& key) { return key == "rounding"; }

bool needs_canon_keys(const ModelConfig& model) {
  return !model.canon.set.empty() || model.attention.qk_norm != QkNorm::none || model.attention.position.rope_dim ||
         model.attention.position.pairing != RopePairing::huggingface;
}

/// Without what has no effect: settings of Canon layers that are not there, a rotation of all
/// channels that is spelt out.
ModelConfig normalised(ModelConfig model) {
  if (model.attention.position.rope_dim == model.attention.head_dim) model.attention.position.rope_dim.reset();
  if (model.canon.set.empty()) model.canon = {};
  return model;
}

OrderedJson id_or_null(int32_t id) { return id < 0 ? OrderedJson(nullptr) : OrderedJson(id); }

void write_llama_keys(const ModelConfig& model, const ConfigFacts& facts, OrderedJson& json) {
  json["vocab_size"] = model.vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.mlp.intermediate_size;
  json["num_hidden_layers"] = model.num_layers;
  json["num_attention_heads"] = model.attention.num_heads;
  json["num_key_value_heads"] = model.attention.num_kv_heads;
  json["head_dim"] = model.attention.head_dim;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = facts.max_positions;
  json["rms_norm_eps"] = model.norm.eps;
  json["rope_theta"] = model.attention.position.theta;
  json["rope_scaling"] = nullptr;
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["mlp_bias"] = false;
  json["tie_word_embeddings"] = model.tie_embeddings;
  json["initializer_range"] = 0.02;
  json["use_cache"] = true;
  json["bos_token_id"] = id_or_null(facts.bos_id);
  json["eos_token_id"] = id_or_null(facts.eos_id);
  json["pad_token_id"] = id_or_null(facts.pad_id);
  json["torch_dtype"] = facts.dtype;
}

void write_canon_keys(const ModelConfig& model, OrderedJson& json) {
  json["canon_set"] = model.canon.set;
  json["canon_kernel"] = model.canon.kernel;
  json["canon_residual"] = model.canon.residual;
  json["canon_activation"] = model.canon.activation == model::Activation::silu;
  json["canon_bias"] = false;
  json["qk_norm"] = model.attention.qk_norm != QkNorm::none;
  json["rope_version"] = model.attention.position.pairing == RopePairing::lingua ? "lingua" : "huggingface";
  json["rope_dim"] = nullptr;
  if (!model.attention.position.rope_dim) return;
  json["rope_dim"] = *model.attention.position.rope_dim;
  json["partial_rotary_factor"] = double(*model.attention.position.rope_dim) / model.attention.head_dim;
}

void set_architecture(Architecture architecture, OrderedJson& json) {
  json["architectures"] = {class_name(architecture)};
  json["model_type"] = architecture == Architecture::llama         ? "llama"
                       : architecture == Architecture::llama_canon ? "LlamaCanon"
                                                                   : "forge_llama_canon";
}

/// Leaves of `wanted` that `got` has otherwise, as a tree; each with its path in `paths`.
Json differences(const Json& wanted,
                 const Json& got,
                 const std::string& prefix,
                 std::vector<std::string>& paths) {
  Json tree = Json::object();
  for (const auto& [key, value] : wanted.items()) {
    if (is_of_the_beginning(key)) continue;
    if (value.is_object()) {
      Json below = differences(value, got.at(key), prefix + key + ".", paths);
      if (!below.empty()) tree[key] = std::move(below);
    } else if (value != got.at(key)) {
      tree[key] = value;
      const std::string text = plain_text(value);
      if (!is_of_rounding(key)) paths.push_back(prefix + key + ": " + text);
    }
  }
  return tree;
}

Json to_json(const ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment).at("model");
}

}  // namespace

const char* class_name(Architecture architecture) {
  switch (architecture) {
    case Architecture::llama: return "LlamaForCausalLM";
    case Architecture::llama_canon: return "LlamaCanonForCausalLM";
    case Architecture::forge: return "ForgeLlamaCanonForCausalLM";
  }
  throw Error("no such architecture");
}

WrittenConfig write_config(const ModelConfig& given, const ConfigFacts& facts) {
  const ModelConfig model = normalised(given);
  WrittenConfig written;
  written.architecture = needs_canon_keys(model) ? Architecture::llama_canon : Architecture::llama;
  set_architecture(written.architecture, written.json);  // the first keys of the file
  write_llama_keys(model, facts, written.json);
  if (written.architecture == Architecture::llama_canon) write_canon_keys(model, written.json);
  // What these keys cannot say shows when they are read back.
  const ModelConfig understood = read_config(Json(written.json)).model;
  const Json rest = differences(to_json(model), to_json(understood), "model.", written.forge_keys);
  if (!rest.empty()) written.json["forge_model"] = rest;
  if (!written.forge_keys.empty()) written.architecture = Architecture::forge;
  set_architecture(written.architecture, written.json);
  return written;
}

}  // namespace forge::huggingface
