#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/fields.h"
#include "core/config/keys.h"
#include "core/huggingface/config_keys.h"
#include "core/huggingface/model_config.h"
#include "core/huggingface/release_config.h"
#include "core/model/kinds.h"

namespace forge::huggingface {

namespace {

using Json = nlohmann::json;
using model::ModelConfig;

Architecture read_architecture(ConfigKeys& keys) {
  const std::string type = keys.text("model_type");
  const auto known = {Architecture::llama,
                      Architecture::llama_canon,
                      Architecture::forge,
                      Architecture::gla,
                      Architecture::gated_delta_net,
                      Architecture::mamba2};
  const auto found = std::find_if(
      known.begin(), known.end(), [&](Architecture each) { return type == model_type(each); });
  if (found == known.end()) {
    throw Error("model_type is '" + type + "'",
                "forge reads llama, LlamaCanon, GLACanon, GatedDeltaNetCanon and Mamba2Canon");
  }
  const Json& classes = keys.value("architectures");
  const Json& named = classes.is_array() && classes.size() == 1 ? classes[0] : classes;
  const std::string wanted = class_name(*found);
  if (classes.is_null() || (classes.is_array() && named == wanted)) return *found;
  throw Error("architectures is " + shown(named) + " where model_type " + type + " asks for \"" +
                  wanted + "\"",
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
                "forge's rotary frequencies are theta^(-2i/r), without scaling");
  }
}

void read_position(ConfigKeys& keys, ModelConfig& model, Architecture architecture) {
  refuse_scaled_rotation(keys, "rope_scaling");
  refuse_scaled_rotation(keys, "rope_parameters");
  const Json& parameters = keys.value("rope_parameters");
  const Json none = Json::object();
  ConfigKeys inner(parameters.is_object() ? parameters : none);
  const double theta = inner.number("rope_theta", model.attention.position.theta);
  const Json& outer = keys.value("rope_theta");
  if (outer.is_null()) {
    model.attention.position.theta = theta;
  } else if (!inner.value("rope_theta").is_null() && outer != inner.value("rope_theta")) {
    throw Error("rope_theta is " + shown(outer) + ", and in rope_parameters " + shortest(theta),
                "one of the two is the model's: remove the other one");
  }
  const double factor =
      keys.number("partial_rotary_factor", inner.number("partial_rotary_factor", 1));
  if (architecture == Architecture::llama) {
    if (factor != 1) {
      throw Error("'partial_rotary_factor' is " + shortest(factor),
                  "Llama rotates whole heads; LlamaCanon has rope_dim");
    }
    return;
  }
  std::optional<int>& rope_dim = model.attention.position.rope_dim;
  if (rope_dim && (*rope_dim % 2 != 0 || *rope_dim > model.attention.head_dim)) {
    throw Error("'rope_dim' is " + std::to_string(*rope_dim) +
                ", not an even number up to head_dim " + std::to_string(model.attention.head_dim));
  }
  if (rope_dim == model.attention.head_dim) rope_dim.reset();
  const double rotated = model.attention.position.rope_dim.value_or(model.attention.head_dim);
  if (factor != 1 && std::abs(factor * model.attention.head_dim - rotated) > 1e-6) {
    throw Error("'partial_rotary_factor' " + shortest(factor) + " disagrees with rope_dim " +
                shown(keys.value("rope_dim")) + " of head_dim " +
                std::to_string(model.attention.head_dim));
  }
}

/// LlamaCanon asks whether a letter is in the text; order, repetition and others count for nothing.
void read_canon(ModelConfig& model, std::vector<std::string>& notes) {
  const std::string letters = model.canon.set;
  model.canon.set.clear();
  for (const char position : {'A', 'B', 'C', 'D'}) {
    if (letters.find(position) != std::string::npos) model.canon.set += position;
  }
  if (letters.find_first_not_of("ABCD") != std::string::npos) {
    notes.push_back("canon_set '" + letters + "' is '" + model.canon.set +
                    "': LlamaCanon passes over other letters");
  }
  if (model.canon.set.empty()) model.canon = {};
  if (model.canon.kernel < 2 || model.canon.kernel > 4) {
    throw Error("'canon_kernel' is " + std::to_string(model.canon.kernel),
                "forge's Canon has 2, 3 or 4");
  }
}

/// Replaces `value`, forge's default of a key, by the value in config.json, which must have the
/// same type. A missing key changes nothing.
void read_value(ConfigKeys& keys, const model::HuggingFaceKey& key, Json& value) {
  const Json& given = keys.value(key.name);
  const bool is_required = config::find_key(std::string("model.") + key.key)->required;
  if (given.is_null() && !(is_required && value == 0)) return;
  if (!key.values.empty()) {
    std::vector<std::string> known;
    for (const auto& [ours, theirs] : key.values) {
      if (given == parse_json(theirs)) {
        value = ours;
        return;
      }
      known.push_back(theirs);
    }
    throw Error(std::string("'") + key.name + "' is " + shown(given),
                "forge knows " + join(known, ", "));
  }
  if (value.is_boolean()) {
    value = keys.flag(key.name);
  } else if (value.is_number_float()) {
    value = keys.number(key.name, 0);
  } else if (value.is_string()) {
    value = keys.text(key.name);
  } else {
    value = keys.size(key.name);
  }
}

/// The model that the keys of config.json describe, over the defaults of the architecture's code.
ModelConfig read_model(ConfigKeys& keys, Architecture architecture, const Json& layers) {
  ModelConfig defaults;
  defaults.norm.eps = 1e-6;
  defaults.init = model::ModelInit::huggingface;
  Json section = to_json(defaults);
  for (const model::HuggingFaceKey& key : huggingface_keys()) {
    if (key.is_canon_s && architecture == Architecture::llama) continue;
    if (is_of_absent_mixer(key, layers)) continue;
    // LlamaCanon takes 8/3 of the width where config.json names none.
    Json& value = section[place_of(key)];
    if (value == 0 && architecture == Architecture::llama_canon &&
        std::string_view(key.name) == "intermediate_size")
      value = section["hidden_size"].get<int64_t>() * 8 / 3;
    read_value(keys, key, value);
  }
  return model_from_json(section);
}

void complete_sizes(ModelConfig& model) {
  model::AttentionConfig& a = model.attention;
  if (a.num_kv_heads == 0) a.num_kv_heads = a.num_heads;
  if (a.num_heads % a.num_kv_heads != 0) {
    throw Error("'num_key_value_heads' " + std::to_string(a.num_kv_heads) +
                " does not divide num_attention_heads " + std::to_string(a.num_heads));
  }
  if (a.head_dim != 0) return;
  if (model.hidden_size % a.num_heads != 0) {
    throw Error("'num_attention_heads' " + std::to_string(a.num_heads) +
                " does not divide hidden_size " + std::to_string(model.hidden_size) +
                ", and head_dim is missing");
  }
  a.head_dim = model.hidden_size / a.num_heads;
}

/// Holds every number of the model against the limits of forge's schema, but for sections of mixers
/// that it does not have.
struct LimitsCheck {
  Json layers;
  std::string section_path = "model.";

  template <class T>
  void field(const char* key, T& value, const char*, schema::Limits limits = {}) {
    if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(value);
      if (number >= limits.low && number <= limits.high) return;
      throw Error(section_path + key + " would be " + shortest(number) + ", not from " +
                  shortest(limits.low) + " to " + shortest(limits.high));
    }
  }
  template <class T>
  void section(const char* key, T& value, const char*, schema::Limits limits = {}) {
    if (limits.written_if_set && !names_mixer(layers, key)) return;
    LimitsCheck inner{layers, section_path + key + "."};
    fields(inner, value);
  }
  /// A model file holds weights; a program of somebody else's has no place in it.
  void sections(const char* key, std::map<std::string, model::OwnBlock>& values, const char*) {
    if (!values.empty()) throw Error("'forge_model' has " + std::string(key) + ", code in Python");
  }
};

/// The model with what `forge_model` says on top.
ModelConfig with_forge_keys(const ModelConfig& model, const Json& forge_model) {
  if (!forge_model.is_object()) throw Error("'forge_model' is " + shown(forge_model));
  Json section = to_json(model);
  section.update(forge_model, true);  // null is a value: output_gate_rank
  try {
    return model_from_json(section);
  } catch (const Error& error) {
    throw Error("'forge_model': " + error.message(), error.hint());
  }
}

/// The list of layers, which Llama's keys do not have.
Json layers_of(const Json& forge_model) {
  const Json plain = to_json(ModelConfig()).at("layers");
  return forge_model.is_object() ? forge_model.value("layers", plain) : plain;
}

/// What a Llama's or LlamaCanon's keys say, with those of forge on top.
ModelConfig read_llama(ConfigKeys& keys,
                       Architecture architecture,
                       std::vector<std::string>& notes) {
  const Json layers = layers_of(keys.value("forge_model"));
  ModelConfig model = read_model(keys, architecture, layers);
  if (names_mixer(layers, model::attention_block.name)) {
    complete_sizes(model);
    read_position(keys, model, architecture);
  }
  if (architecture != Architecture::llama) read_canon(model, notes);
  return model;
}

/// A number or a list of numbers.
std::vector<int64_t> token_ids(const Json& value) {
  std::vector<int64_t> ids;
  for (const Json& id : value.is_array() ? value : Json::array({value}))
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  return ids;
}

}  // namespace

ReadConfig read_config(const Json& json) {
  if (!json.is_object()) throw Error("it is not a JSON object");
  ConfigKeys keys(json);
  ReadConfig read;
  ModelConfig& model = read.model;
  read.architecture = read_architecture(keys);
  keys.refuse_what_changes_the_function();
  model = is_released_linear(read.architecture)
              ? read_release_keys(keys, read.architecture, read.notes)
              : read_llama(keys, read.architecture, read.notes);
  read.max_positions = keys.size("max_position_embeddings", 2048);
  read.bos_ids = token_ids(keys.value("bos_token_id"));
  read.eos_ids = token_ids(keys.value("eos_token_id"));
  const Json& dropout = keys.value("attention_dropout");
  if (!dropout.is_null() && dropout != 0) {
    read.notes.push_back("attention_dropout " + shown(dropout) +
                         " is of their training; forge trains without dropout");
  }
  const Json& forge_model = keys.value("forge_model");
  if (!forge_model.is_null()) model = with_forge_keys(model, forge_model);
  LimitsCheck limits{to_json(model).at("layers")};
  fields(limits, model);
  model::complete_model(model);
  read.unknown = keys.unknown();
  return read;
}

}  // namespace forge::huggingface
