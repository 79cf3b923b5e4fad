#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/huggingface/model_config.h"
#include "core/huggingface/release_config.h"
#include "core/model/kinds.h"

#include <algorithm>

namespace forge::huggingface {
namespace {

using model::HuggingFaceKey;
using model::HuggingFaceKeys;
using model::ModelConfig;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

struct ArchitectureNames {
  const char* class_name;
  const char* model_type;
};
/// In the order of Architecture.
constexpr ArchitectureNames architectures[] = {
    {"LlamaForCausalLM", "llama"},
    {"LlamaCanonForCausalLM", "LlamaCanon"},
    {"ForgeLlamaCanonForCausalLM", "forge_llama_canon"},
    {"GLACanonForCausalLM", "GLACanon"},
    {"GatedDeltaNetCanonForCausalLM", "GatedDeltaNetCanon"},
    {"Mamba2CanonForCausalLM", "Mamba2Canon"}};

/// Whether LlamaCanon's keys say anything: one of them has another value than it begins with.
bool needs_canon_keys(const Json& model) {
  const Json plain = to_json(ModelConfig());
  const HuggingFaceKeys& keys = huggingface_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const HuggingFaceKey& key) {
    return key.is_canon_s && model.at(place_of(key)) != plain.at(place_of(key));
  });
}

/// Without what has no effect: settings of Canon layers that are not there, a rotation of all
/// channels that is spelt out.
ModelConfig normalised(ModelConfig model) {
  // A layer with a head_dim of its own may inherit it.
  const bool is_inherited = std::any_of(model.layers.begin(),
                                        model.layers.end(),
                                        [](const auto& layer) { return !layer.settings.empty(); });
  if (model.attention.position.rope_dim == model.attention.head_dim && !is_inherited)
    model.attention.position.rope_dim.reset();
  if (model.canon.set.empty()) model.canon = {};
  return model;
}

OrderedJson id_or_null(int32_t id) { return id < 0 ? OrderedJson(nullptr) : OrderedJson(id); }

/// The keys that say what a key of the model says, of LlamaCanon or of both.
void write_model_keys(const Json& model, bool is_canon_s, OrderedJson& json) {
  for (const HuggingFaceKey& key : huggingface_keys()) {
    if (key.is_canon_s != is_canon_s || is_of_absent_mixer(key, model.at("layers"))) continue;
    const Json& value = model.at(place_of(key));
    if (key.values.empty()) json[key.name] = value;
    for (const auto& [ours, theirs] : key.values) {
      if (value == ours && !json.contains(key.name)) json[key.name] = parse_json(theirs);
    }
  }
}

/// Those of Llama's code.
void write_llama_keys(OrderedJson& json) {
  json["rope_scaling"] = nullptr;
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["mlp_bias"] = false;
}

void write_constant_keys(const ConfigFacts& facts, OrderedJson& json) {
  json["max_position_embeddings"] = facts.max_positions;
  json["initializer_range"] = 0.02;
  json["use_cache"] = true;
  json["bos_token_id"] = id_or_null(facts.bos_id);
  json["eos_token_id"] = id_or_null(facts.eos_id);
  json["pad_token_id"] = id_or_null(facts.pad_id);
  json["torch_dtype"] = facts.dtype;
}

void set_architecture(Architecture architecture, OrderedJson& json) {
  json["architectures"] = {class_name(architecture)};
  json["model_type"] = model_type(architecture);
}

/// Leaves of `wanted` whose value differs in `got`, as a tree; `paths` gets each with its path.
Json differences(const Json& wanted,
                 const Json& got,
                 const std::string& prefix,
                 std::vector<std::string>& paths) {
  Json tree = Json::object();
  for (const auto& [key, value] : wanted.items()) {
    if (starts_with(key, "init")) continue;  // how training began, not what the model computes
    if (value.is_object()) {
      Json below = differences(value, got.at(key), prefix + key + ".", paths);
      if (!below.empty()) tree[key] = std::move(below);
    } else if (!got.contains(key) || value != got.at(key)) {
      tree[key] = value;
      // Rounding changes a last bit in low precision only: other programs may load the model.
      if (key != "rounding") paths.push_back(prefix + key + ": " + plain_text(value));
    }
  }
  return tree;
}

}  // namespace

const char* class_name(Architecture architecture) {
  return architectures[static_cast<size_t>(architecture)].class_name;
}

const char* model_type(Architecture architecture) {
  return architectures[static_cast<size_t>(architecture)].model_type;
}

Json to_json(const ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_complete_json(experiment).at("model");
}

ModelConfig model_from_json(const Json& section) {
  return config::experiment_from_json({{"model", section}}).model;
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys = [] {
    HuggingFaceKeys all = {
        {"vocab_size", "vocab_size"},
        {"hidden_size", "hidden_size"},
        {"num_hidden_layers", "num_layers"},
        {"tie_word_embeddings", "tie_embeddings"},
        {"rms_norm_eps", "norm.eps"},
        {"canon_set", "canon.set", true},
        {"canon_kernel", "canon.kernel", true},
        {"canon_residual", "canon.residual", true},
        {"canon_activation", "canon.activation", true, {{"none", "false"}, {"silu", "true"}}},
        {"canon_bias", "canon.bias", true}};
    std::vector<const model::BlockKind*> kinds = model::mixer_kinds();
    kinds.push_back(&model::mlp_block);
    for (const model::BlockKind* kind : kinds) {
      const HuggingFaceKeys& own = kind->huggingface_keys();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }();
  return keys;
}

namespace {

/// The list of layers and the sections of mixers that Llama's keys do not know, where the model has
/// any.
Json of_other_mixers(const Json& model, std::vector<std::string>& paths) {
  const Json& layers = model.at("layers");
  if (layers == Json::array({"attention"})) return Json::object();
  Json others = {{"layers", layers}};
  paths.push_back("model.layers: " + plain_text(layers));
  for (const model::BlockKind* kind : model::mixer_kinds()) {
    if (kind == &model::attention_block || !names_mixer(layers, kind->name)) continue;
    others[kind->name] = model.at(kind->name);
    for (const auto& [key, value] : others[kind->name].items())
      paths.push_back(std::string("model.") + kind->name + "." + key + ": " + plain_text(value));
  }
  return others;
}

/// config.json of the model's released code; nothing where its keys cannot say all of the model.
std::optional<WrittenConfig> write_released(const ModelConfig& model, const ConfigFacts& facts) {
  const std::optional<Architecture> architecture = released_architecture(model);
  if (!architecture || model.tie_embeddings) return std::nullopt;
  WrittenConfig written;
  written.architecture = *architecture;
  set_architecture(*architecture, written.json);
  write_release_keys(model, written.json);
  write_constant_keys(facts, written.json);
  const ModelConfig understood = read_config(Json(written.json)).model;
  const Json rest = differences(to_json(model), to_json(understood), "model.", written.forge_keys);
  if (!written.forge_keys.empty()) return std::nullopt;
  if (!rest.empty()) written.json["forge_model"] = rest;
  return written;
}

}  // namespace

bool names_mixer(const Json& layers, const std::string& kind) {
  return std::any_of(layers.begin(), layers.end(), [&](const Json& layer) {
    return layer == kind || (layer.is_object() && layer.value("mixer", "") == kind);
  });
}

bool is_of_absent_mixer(const HuggingFaceKey& key, const Json& layers) {
  const std::string section = split(key.key, '.').front();
  for (const model::BlockKind* kind : model::mixer_kinds()) {
    if (section == kind->name) return !names_mixer(layers, section);
  }
  return false;
}

WrittenConfig write_config(const ModelConfig& given, const ConfigFacts& facts) {
  if (!given.blocks.empty()) {
    throw Error("the model has '" + given.blocks.begin()->first +
                    "', a block in Python, which no program but forge could compute",
                "the weights are in weights.safetensors of its checkpoints");
  }
  const ModelConfig model = normalised(given);
  if (const auto released = write_released(model, facts)) return *released;
  const Json tree = to_json(model);
  const bool is_canon = needs_canon_keys(tree);
  WrittenConfig written;
  written.architecture = is_canon ? Architecture::llama_canon : Architecture::llama;
  set_architecture(written.architecture, written.json);  // the first keys of the file
  write_model_keys(tree, false, written.json);
  write_llama_keys(written.json);
  write_constant_keys(facts, written.json);
  if (is_canon) write_model_keys(tree, true, written.json);
  if (const auto rope_dim = model.attention.position.rope_dim)
    written.json["partial_rotary_factor"] = double(*rope_dim) / model.attention.head_dim;
  // Of other mixers these keys say nothing. What else they cannot say shows when they are read
  // back.
  Json forge_model = of_other_mixers(tree, written.forge_keys);
  Json readable(written.json);
  if (!forge_model.empty()) readable["forge_model"] = forge_model;
  const ModelConfig understood = read_config(readable).model;
  forge_model.update(differences(tree, to_json(understood), "model.", written.forge_keys), true);
  if (!forge_model.empty()) written.json["forge_model"] = forge_model;
  if (!written.forge_keys.empty()) written.architecture = Architecture::forge;
  set_architecture(written.architecture, written.json);
  return written;
}

}  // namespace forge::huggingface
