#include "core/huggingface/config_keys.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"

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

}  // namespace

std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return json_text(value).substr(0, 80);
}

const Json& ConfigKeys::value(const char* key) {
  static const Json null;
  used_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() ? null : *found;
}

int ConfigKeys::size(const char* key, std::optional<int> otherwise) {
  const Json& json = value(key);
  if (json.is_null() && otherwise) return *otherwise;
  require(json.is_number_integer() && json >= 1 && json <= std::numeric_limits<int>::max(),
          key,
          "a size from 1 on");
  return json.get<int>();
}

double ConfigKeys::number(const char* key, double otherwise) {
  const Json& json = value(key);
  if (json.is_null()) return otherwise;
  require(json.is_number() && json.get<double>() > 0, key, "a number above 0");
  return json.get<double>();
}

bool ConfigKeys::flag(const char* key) {
  require(value(key).is_boolean(), key, "true or false");
  return value(key).get<bool>();
}

std::string ConfigKeys::text(const char* key) {
  if (value(key).is_null()) return "";
  require(value(key).is_string(), key, "text");
  return value(key).get<std::string>();
}

void ConfigKeys::refuse(const std::vector<Refusal>& list) {
  for (const Refusal& refusal : list) {
    const Json& given = value(refusal.key);
    const std::vector<Json>& harmless = refusal.harmless;
    if (given.is_null()) continue;
    if (std::find(harmless.begin(), harmless.end(), given) != harmless.end()) continue;
    throw Error(std::string("'") + refusal.key + "' is " + shown(given), refusal.reason);
  }
}

void ConfigKeys::refuse_what_changes_the_function() { refuse(refusals()); }

std::vector<std::string> ConfigKeys::unknown() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) {
    if (used_.count(key) == 0 && keys_without_effect().count(key) == 0) keys.push_back(key);
  }
  return keys;
}

void ConfigKeys::require(bool is_right, const char* key, const char* wanted) {
  if (is_right) return;
  const std::string name = std::string("'") + key + "' is ";
  if (value(key).is_null()) throw Error(name + "missing: " + wanted);
  throw Error(name + shown(value(key)) + ", not " + wanted);
}

}  // namespace forge::huggingface
