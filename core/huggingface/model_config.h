#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/model/block.h"

/// Models in the folders that Hugging Face's transformers reads and writes.
namespace forge::huggingface {

/// Whose code computes the function that a config.json describes.
enum class Architecture {
  llama,        ///< LlamaForCausalLM of transformers
  llama_canon,  ///< LlamaCanonForCausalLM of PhysicsLM4 (github.com/facebookresearch/PhysicsLM4)
  forge,        ///< forge alone: a key `forge_model` says what the others have no key for
  gla,          ///< GLACanonForCausalLM of PhysicsLM4
  gated_delta_net,  ///< GatedDeltaNetCanonForCausalLM of PhysicsLM4
  mamba2,           ///< Mamba2CanonForCausalLM of PhysicsLM4
};
/// "LlamaForCausalLM" and so on, as `architectures` of config.json spells it.
const char* class_name(Architecture architecture);
/// "llama" and so on, as `model_type` of config.json spells it.
const char* model_type(Architecture architecture);

/// Every key of config.json that says what one of the model's keys says: the model's own, then
/// those of each kind of block.
const model::HuggingFaceKeys& huggingface_keys();
/// The place of such a key in the section `model` as JSON.
inline nlohmann::json::json_pointer place_of(const model::HuggingFaceKey& key) {
  std::string pointer = "/" + std::string(key.key);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return nlohmann::json::json_pointer(pointer);
}

/// Whether model.layers as JSON names the mixer.
bool names_mixer(const nlohmann::json& layers, const std::string& kind);
/// Whether the key says something of a mixer that model.layers does not name.
bool is_of_absent_mixer(const model::HuggingFaceKey& key, const nlohmann::json& layers);

/// The section `model` of forge's configs, complete, which has defaults for missing keys.
nlohmann::json to_json(const model::ModelConfig& model);
model::ModelConfig model_from_json(const nlohmann::json& section);

/// What config.json says besides the model.
struct ConfigFacts {
  int64_t max_positions = 0;  ///< longest row that was trained on
  std::string dtype;          ///< of the weights: float32, bfloat16 or float16
  int32_t bos_id = -1;        ///< -1: none
  int32_t eos_id = -1;
  int32_t pad_id = -1;
};

struct WrittenConfig {
  nlohmann::ordered_json json;
  Architecture architecture = Architecture::llama;
  /// Keys of the schema, with their values, for which the architecture's own code has no key.
  std::vector<std::string> forge_keys;
};

/// config.json of a model: of a released linear model where it is one; plain Llama where that says
/// it all, else with the keys of LlamaCanon; else, where none of them can say it (NoPE, QK-norm per
/// head, hybrids), under a model_type of forge's own, so that no other program loads it and
/// computes something else. How the weights were drawn (model.init…) is no part of it.
WrittenConfig write_config(const model::ModelConfig& model, const ConfigFacts& facts);

struct ReadConfig {
  model::ModelConfig model;  ///< complete; init is huggingface
  Architecture architecture = Architecture::llama;
  int64_t max_positions = 0;
  /// Of config.json; empty where it names none. Forge takes those of the tokenizer.
  std::vector<int64_t> bos_ids, eos_ids;
  std::vector<std::string> unknown;  ///< keys that forge does not know and passed over
  std::vector<std::string> notes;    ///< what was set aside, and why that changes no logit
};

/// Reads config.json. Keys that are missing have the value that the architecture's own code gives
/// them; sizes must be there. Throws Error naming the key: another architecture, a value that makes
/// no model, or one under which transformers computes something that forge does not (rope_scaling,
/// attention_bias, mlp_bias, another hidden_act, sliding_window, …).
ReadConfig read_config(const nlohmann::json& json);

}  // namespace forge::huggingface
