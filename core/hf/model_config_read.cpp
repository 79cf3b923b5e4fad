#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/json.h"
#include "core/hf/config_keys.h"
#include "core/hf/model_config.h"

namespace forge::hf {
namespace {

using config::ModelConfig;
using Json = nlohmann::json;

Architecture read_architecture(ConfigKeys& keys) {
  const std::string type = keys.text("model_type", "");
  Architecture architecture = Architecture::llama;
  if (type == "LlamaCanon") {
    architecture = Architecture::llama_canon;
  } else if (type == "forge_llama_canon") {
    architecture = Architecture::forge;
  } else if (type != "llama") {
    throw Error("model_type is '" + type + "'", {}, "forge reads llama and LlamaCanon");
  }
  const Json& classes = keys.value("architectures");
  const std::string wanted = class_name(architecture);
  if (classes.is_null() || (classes.is_array() && classes.size() == 1 && classes[0] == wanted)) {
    return architecture;
  }
  throw Error("architectures is " +
                  (classes.is_array() && classes.size() == 1 ? shown(classes[0]) : shown(classes)) +
                  " where model_type " + type + " asks for \"" + wanted + "\"",
              {},
              "forge reads models that predict the next token");
}

/// rope_scaling, or rope_parameters as transformers calls it from version 5 on, may say only that
/// nothing is scaled.
void refuse_scaled_rotation(ConfigKeys& keys, const char* key) {
  const Json& scaling = keys.value(key);
  if (scaling.is_null()) return;
  if (!scaling.is_object()) throw Error(std::string("'") + key + "' is " + shown(scaling));
  for (const auto& [name, value] : scaling.items()) {
    const bool known = name == "rope_theta" || name == "partial_rotary_factor" ||
                       ((name == "rope_type" || name == "type") && value == "default");
    if (known || value.is_null()) continue;
    throw Error(std::string("'") + key + "' has " + name + " " + shown(value),
                {},
                "forge's rotary frequencies are theta^(-2i/r), without scaling");
  }
}

void read_position(ConfigKeys& keys, ModelConfig& model, Architecture architecture) {
  refuse_scaled_rotation(keys, "rope_scaling");
  refuse_scaled_rotation(keys, "rope_parameters");
  const Json& parameters = keys.value("rope_parameters");
  const Json none = Json::object();
  ConfigKeys inner(parameters.is_object() ? parameters : none);
  model.position.theta = keys.number("rope_theta", inner.number("rope_theta", 10000));
  const double factor =
      keys.number("partial_rotary_factor", inner.number("partial_rotary_factor", 1));
  if (architecture == Architecture::llama) {
    if (factor != 1) {
      throw Error("'partial_rotary_factor' is " + shortest(factor),
                  {},
                  "Llama rotates whole heads; LlamaCanon has rope_dim");
    }
    return;
  }
  const Json& rope_dim = keys.value("rope_dim");
  if (!rope_dim.is_null()) {
    const int dim = keys.size("rope_dim");
    if (dim % 2 != 0 || dim > model.head_dim) {
      throw Error("'rope_dim' is " + std::to_string(dim) + ", not an even number up to head_dim " +
                  std::to_string(model.head_dim));
    }
    if (dim < model.head_dim) model.position.rope_dim = dim;
  }
  const double rotated = model.position.rope_dim.value_or(model.head_dim);
  if (factor != 1 && std::abs(factor * model.head_dim - rotated) > 1e-6) {
    throw Error("'partial_rotary_factor' " + shortest(factor) + " disagrees with rope_dim " +
                shown(rope_dim) + " of head_dim " + std::to_string(model.head_dim));
  }
  const std::string version = keys.text("rope_version", "huggingface");
  if (version != "huggingface" && version != "lingua") {
    throw Error("'rope_version' is '" + version + "', not huggingface or lingua");
  }
  if (version == "lingua") model.position.pairing = config::RopePairing::lingua;
}

/// LlamaCanon asks whether a letter is in the text; order, repetition and others count for nothing.
void read_canon(ConfigKeys& keys, ModelConfig& model, std::vector<std::string>& notes) {
  const std::string letters = keys.text("canon_set", "");
  for (const char position : {'A', 'B', 'C', 'D'}) {
    if (letters.find(position) != std::string::npos) model.canon.set += position;
  }
  if (letters.find_first_not_of("ABCD") != std::string::npos) {
    notes.push_back("canon_set '" + letters + "' is '" + model.canon.set +
                    "': LlamaCanon passes over other letters");
  }
  const int kernel = keys.size("canon_kernel", 4);
  const bool residual = keys.flag("canon_residual", true);
  const bool activation = keys.flag("canon_activation", false);
  if (!model.canon.set.empty()) {
    if (kernel < 2 || kernel > 4) {
      throw Error("'canon_kernel' is " + std::to_string(kernel), {}, "forge's Canon has 2, 3 or 4");
    }
    model.canon.kernel = kernel;
    model.canon.residual = residual;
    if (activation) model.canon.activation = config::Activation::silu;
  }
  if (keys.flag("qk_norm", false)) model.qk_norm = config::QkNorm::full;
}

void read_sizes(ConfigKeys& keys, ModelConfig& model, Architecture architecture) {
  model.vocab_size = keys.size("vocab_size");
  model.hidden_size = keys.size("hidden_size");
  // LlamaCanon takes 8/3 of the width where config.json names none.
  const bool derived = architecture == Architecture::llama_canon;
  model.intermediate_size =
      keys.size("intermediate_size", derived ? int64_t{model.hidden_size} * 8 / 3 : 0);
  model.num_layers = keys.size("num_hidden_layers");
  model.num_heads = keys.size("num_attention_heads");
  model.num_kv_heads = keys.size("num_key_value_heads", model.num_heads);
  if (model.num_heads % model.num_kv_heads != 0) {
    throw Error("'num_key_value_heads' " + std::to_string(model.num_kv_heads) +
                " does not divide num_attention_heads " + std::to_string(model.num_heads));
  }
  if (keys.value("head_dim").is_null() && model.hidden_size % model.num_heads != 0) {
    throw Error("'num_attention_heads' " + std::to_string(model.num_heads) +
                " does not divide hidden_size " + std::to_string(model.hidden_size) +
                ", and head_dim is missing");
  }
  model.head_dim = keys.size("head_dim", model.hidden_size / model.num_heads);
}

/// Holds every number of the model against the limits of forge's schema.
struct LimitsCheck {
  template <class T>
  void field(const char* key, T& value, const char*, config::Limits limits = {}) {
    if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(value);
      if (number >= limits.low && number <= limits.high) return;
      throw Error("model." + std::string(key) + " would be " + shortest(number) + ", not from " +
                  shortest(limits.low) + " to " + shortest(limits.high));
    }
  }
  template <class T>
  void section(const char*, T& value, const char*) {
    fields(*this, value);
  }
};

/// What no single number shows. `forge_model` can say anything.
void check_together(ModelConfig& model) {
  LimitsCheck limits;
  fields(limits, model);
  const int rotated = model.position.rope_dim.value_or(model.head_dim);
  const bool rotates = model.position.kind == config::PositionKind::rope;
  if (rotates && (rotated < 2 || rotated % 2 != 0 || rotated > model.head_dim)) {
    throw Error("RoPE would rotate " + std::to_string(rotated) + " of a head's " +
                    std::to_string(model.head_dim) + " channels",
                {},
                "they rotate in pairs");
  }
  if (model.num_heads % model.num_kv_heads != 0) throw Error("heads cannot be shared evenly");
  std::string set;
  for (const char position : {'A', 'B', 'C', 'D'}) {
    if (model.canon.has(position)) set += position;
  }
  if (set != model.canon.set) throw Error("canon.set is '" + model.canon.set + "'");
}

/// The model with what `forge_model` says on top.
ModelConfig with_forge_keys(const ModelConfig& model, const Json& forge_model) {
  config::Experiment experiment;
  experiment.model = model;
  Json tree = config::to_json(experiment);
  tree["model"].merge_patch(forge_model);
  try {
    return config::experiment_from_json(tree).model;
  } catch (const Error& error) {
    throw Error("'forge_model': " + error.message(), {}, error.hint());
  }
}

}  // namespace

ReadConfig read_config(const Json& json) {
  if (!json.is_object()) throw Error("it is not a JSON object");
  ConfigKeys keys(json);
  ReadConfig read;
  ModelConfig& model = read.model;
  read.architecture = read_architecture(keys);
  keys.refuse_what_changes_the_function();
  read_sizes(keys, model, read.architecture);
  read_position(keys, model, read.architecture);
  if (read.architecture != Architecture::llama) read_canon(keys, model, read.notes);
  model.rms_norm_eps = keys.number("rms_norm_eps", 1e-6);
  model.tie_embeddings = keys.flag("tie_word_embeddings", false);
  model.init = config::ModelInit::huggingface;
  read.max_positions = keys.size("max_position_embeddings", 2048);
  const Json& dropout = keys.value("attention_dropout");
  if (!dropout.is_null() && dropout != 0) {
    read.notes.push_back("attention_dropout " + shown(dropout) +
                         " is of their training; forge trains without dropout");
  }
  const Json& forge_model = keys.value("forge_model");
  if (!forge_model.is_null()) model = with_forge_keys(model, forge_model);
  check_together(model);
  read.unknown = keys.unknown();
  return read;
}

}  // namespace forge::hf
