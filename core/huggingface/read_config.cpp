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
#include "core/huggingface/model_config.h"
#include "core/model/kinds.h"

namespace forge::huggingface {

namespace {

using Json = nlohmann::json;

/// Keys that change no logit: about training, about loading, about generation.
const std::set<std::string>& keys_without_effect() {
  static const std::set<std::string> keys = {"_attn_implementation",
                                             "_attn_implementation_autoset",
                                             "_name_or_path",
                                             "architectures",
                                             "auto_map",
                                             "bos_token_id",
                                             "dtype",
                                             "eos_token_id",
                                             "initializer_range",
                                             "is_decoder",
                                             "model_type",
                                             "pad_token_id",
                                             "pretraining_tp",
                                             "torch_dtype",
                                             "transformers_version",
                                             "use_cache"};
  return keys;
}

/// A key under which something else is computed unless it has one of a few values.
struct Refusal {
  const char* key;
  std::vector<Json> harmless;  ///< besides null
  const char* reason;
};

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> list = {
      {"attention_bias", {false}, "forge's projections have no bias"},
      {"mlp_bias", {false}, "forge's projections have no bias"},
      {"canon_bias", {false}, "forge's Canon layers have no bias"},
      {"sliding_window", {false}, "a Llama's attention sees the whole row"},
      {"use_sliding_window", {false}, "a Llama's attention sees the whole row"},
      {"quantization_config", {}, "forge reads floating-point weights"},
      {"attn_logit_softcapping", {}, "forge does not cap logits"},
      {"final_logit_softcapping", {}, "forge does not cap logits"},
      {"num_local_experts", {0, 1}, "forge's MLP has no experts"},
      {"num_experts", {0, 1}, "forge's MLP has no experts"},
      {"logit_scale", {1}, "forge does not scale logits"},
      {"is_encoder_decoder", {false}, "forge's models are decoders"},
      {"add_cross_attention", {false}, "forge's models are decoders"},
      {"embedding_multiplier", {1}, "forge does not scale embeddings"},
      {"residual_multiplier", {1}, "forge does not scale residual branches"},
      {"attention_multiplier", {}, "forge scales scores by 1/sqrt(head_dim)"},
      {"logits_scaling", {1}, "forge does not scale logits"}};
  return list;
}

/// A value as it may stand in a message: no deep tree is walked and no screen filled.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return json_text(value).substr(0, 80);
}

/// The keys of a config.json. Each accessor checks the value's type and remembers the key; a
/// missing key is null. Throws Error naming the key.
class ConfigKeys {
 public:
  /// `json` is an object and outlives this.
  explicit ConfigKeys(const Json& json) : json_(json) {}
  explicit ConfigKeys(Json&& json) = delete;

  const Json& value(const char* key) {
    static const Json null;
    used_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? null : *found;
  }

  /// A size from 1 on. Required unless there is a default.
  int size(const char* key, std::optional<int> otherwise = std::nullopt) {
    const Json& json = value(key);
    if (json.is_null() && otherwise) return *otherwise;
    require(json.is_number_integer() && json >= 1 && json <= std::numeric_limits<int>::max(),
            key,
            "a size from 1 on");
    return json.get<int>();
  }

  /// A number above 0.
  double number(const char* key, double otherwise) {
    const Json& json = value(key);
    if (json.is_null()) return otherwise;
    require(json.is_number() && json.get<double>() > 0, key, "a number above 0");
    return json.get<double>();
  }

  bool flag(const char* key) {
    require(value(key).is_boolean(), key, "true or false");
    return value(key).get<bool>();
  }

  std::string text(const char* key) {
    if (value(key).is_null()) return "";
    require(value(key).is_string(), key, "text");
    return value(key).get<std::string>();
  }

  /// Throws Error with the reason at a key under whose value transformers computes something that
  /// forge does not.
  void refuse_what_changes_the_function() {
    for (const Refusal& refusal : refusals()) {
      const Json& given = value(refusal.key);
      const std::vector<Json>& harmless = refusal.harmless;
      if (given.is_null()) continue;
      if (std::find(harmless.begin(), harmless.end(), given) != harmless.end()) continue;
      throw Error(std::string("'") + refusal.key + "' is " + shown(given), refusal.reason);
    }
  }

  /// Keys that were not read, except those without effect.
  std::vector<std::string> unknown() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) {
      if (used_.count(key) == 0 && keys_without_effect().count(key) == 0) keys.push_back(key);
    }
    return keys;
  }

 private:
  void require(bool is_right, const char* key, const char* wanted) {
    if (is_right) return;
    const std::string name = std::string("'") + key + "' is ";
    if (value(key).is_null()) throw Error(name + "missing: " + wanted);
    throw Error(name + shown(value(key)) + ", not " + wanted);
  }

  const Json& json_;
  std::set<std::string> used_;
};

using model::ModelConfig;

Architecture read_architecture(ConfigKeys& keys) {
  const std::string type = keys.text("model_type");
  const auto known = {Architecture::llama, Architecture::llama_canon, Architecture::forge};
  const auto found = std::find_if(
      known.begin(), known.end(), [&](Architecture each) { return type == model_type(each); });
  if (found == known.end()) {
    throw Error("model_type is '" + type + "'", "forge reads llama and LlamaCanon");
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
  if (keys.value("rope_theta").is_null())
    model.attention.position.theta = inner.number("rope_theta", model.attention.position.theta);
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
ModelConfig read_model(ConfigKeys& keys, Architecture architecture) {
  ModelConfig defaults;
  defaults.norm.eps = 1e-6;
  defaults.init = model::ModelInit::huggingface;
  Json section = to_json(defaults);
  for (const model::HuggingFaceKey& key : huggingface_keys()) {
    if (key.is_canon_s && architecture == Architecture::llama) continue;
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

/// Holds every number of the model against the limits of forge's schema.
struct LimitsCheck {
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
  void section(const char* key, T& value, const char*, schema::Limits = {}) {
    LimitsCheck inner{section_path + key + "."};
    fields(inner, value);
  }
};

/// The model with what `forge_model` says on top.
ModelConfig with_forge_keys(const ModelConfig& model, const Json& forge_model) {
  Json section = to_json(model);
  section.merge_patch(forge_model);
  try {
    return model_from_json(section);
  } catch (const Error& error) {
    throw Error("'forge_model': " + error.message(), error.hint());
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
  model = read_model(keys, read.architecture);
  complete_sizes(model);
  read_position(keys, model, read.architecture);
  if (read.architecture != Architecture::llama) read_canon(model, read.notes);
  read.max_positions = keys.size("max_position_embeddings", 2048);
  const Json& dropout = keys.value("attention_dropout");
  if (!dropout.is_null() && dropout != 0) {
    read.notes.push_back("attention_dropout " + shown(dropout) +
                         " is of their training; forge trains without dropout");
  }
  const Json& forge_model = keys.value("forge_model");
  if (!forge_model.is_null()) model = with_forge_keys(model, forge_model);
  LimitsCheck limits;
  fields(limits, model);
  model::complete_model(model);
  read.unknown = keys.unknown();
  return read;
}

}  // namespace forge::huggingface
