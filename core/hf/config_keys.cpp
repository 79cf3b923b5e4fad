#include "core/hf/config_keys.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/json_text.h"

namespace forge::hf {
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
      {"hidden_act", {"silu", "swish"}, "forge's MLP is gated by silu"},
      {"attention_bias", {false}, "forge's projections have no bias"},
      {"mlp_bias", {false}, "forge's projections have no bias"},
      {"canon_bias", {false}, "forge's Canon layers have no bias"},
      {"sliding_window", {false}, "forge's attention sees the whole row"},
      {"use_sliding_window", {false}, "forge's attention sees the whole row"},
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

[[noreturn]] void refuse(const std::string& key, const Json& json, const char* wanted) {
  if (json.is_null()) throw Error("'" + key + "' is missing: " + wanted);
  throw Error("'" + key + "' is " + shown(json) + ", not " + wanted);
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

int ConfigKeys::size(const char* key, int64_t otherwise) {
  constexpr int64_t largest = std::numeric_limits<int>::max();
  const Json& json = value(key);
  if (json.is_null() && otherwise > 0 && otherwise <= largest) return static_cast<int>(otherwise);
  if (!json.is_number_integer() || json < 1 || json > largest)
    refuse(key, json, "a size from 1 on");
  return json.get<int>();
}

double ConfigKeys::number(const char* key, double otherwise) {
  const Json& json = value(key);
  if (json.is_null()) return otherwise;
  if (!json.is_number() || !(json.get<double>() > 0)) refuse(key, json, "a number above 0");
  return json.get<double>();
}

bool ConfigKeys::flag(const char* key, bool otherwise) {
  const Json& json = value(key);
  if (json.is_null()) return otherwise;
  if (!json.is_boolean()) refuse(key, json, "true or false");
  return json.get<bool>();
}

std::string ConfigKeys::text(const char* key, const std::string& otherwise) {
  const Json& json = value(key);
  if (json.is_null()) return otherwise;
  if (!json.is_string()) refuse(key, json, "text");
  return json.get<std::string>();
}

void ConfigKeys::refuse_what_changes_the_function() {
  for (const Refusal& refusal : refusals()) {
    const Json& given = value(refusal.key);
    const std::vector<Json>& harmless = refusal.harmless;
    if (given.is_null()) continue;
    if (std::find(harmless.begin(), harmless.end(), given) != harmless.end()) continue;
    throw Error(std::string("'") + refusal.key + "' is " + shown(given), {}, refusal.reason);
  }
}

std::vector<std::string> ConfigKeys::unknown() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) {
    if (used_.count(key) == 0 && keys_without_effect().count(key) == 0) keys.push_back(key);
  }
  return keys;
}

}  // namespace forge::hf
