#include "core/model/own/own_block.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/model/config.h"

namespace forge::model {

/// Named, because each kind of block has functions of these names.
namespace own {
namespace {

using Json = nlohmann::json;

struct Named {
  const std::string& name;
  const OwnBlock& block;
};

/// That of a layer's own model.
Named block_of(const ModelConfig& model) {
  const auto found = model.blocks.find(model.layers.front().mixer);
  if (model.layers.size() == 1 && found != model.blocks.end()) return {found->first, found->second};
  throw Error("the layer has no block of one's own");
}

Json description_of(const Named& own) {
  if (!own.block.described.text.empty()) return parse_json(own.block.described.text);
  throw Error("the block '" + own.name + "' is not described: its weights are not known",
              "'forge model' and 'forge run' describe it, with Python and torch");
}

const std::vector<std::pair<const char*, MatrixRole>>& roles() {
  static const std::vector<std::pair<const char*, MatrixRole>> all = {
      {"projection", MatrixRole::projection},
      {"gate", MatrixRole::gate},
      {"mixer_output", MatrixRole::mixer_output},
      {"mlp_output", MatrixRole::mlp_output}};
  return all;
}

/// The rule of an initial distribution that names no role.
InitRule rule_from_json(const Json& json) {
  const auto kind = json.at("kind").get<std::string>();
  const auto number = [&](const char* key) { return json.at(key).get<double>(); };
  if (kind == "module") return InitRule::module();
  if (kind == "constant") return InitRule::constant(number("value"));
  if (kind == "normal") return InitRule::normal(number("std"));
  if (kind == "truncated_normal") return InitRule::truncated_normal(number("std"), number("cut"));
  if (kind == "uniform") return InitRule::uniform(number("bound"));
  if (kind == "log_uniform") return InitRule::log_uniform(number("low"), number("high"));
  if (kind == "inverse_softplus") return InitRule::inverse_softplus(number("low"), number("high"));
  throw Error("'" + kind + "' is no initial distribution");
}

void add_weight(const Json& weight,
                const std::string& module,
                const std::string& part,
                ParameterList& list) {
  const std::string name = module + "." + weight.at("name").get<std::string>();
  const auto shape = weight.at("shape").get<std::vector<int64_t>>();
  const bool sizes = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size > 0; });
  if (shape.empty() || !sizes) throw Error("'" + name + "' has no numbers");
  const Json& init = weight.at("init");
  const auto role_name = init.value("role", "");
  for (const auto& [word, role] : roles()) {
    if (role_name == word) return list.own_weight(name, shape, role, part);
  }
  list.own_weight(name, shape, rule_from_json(init), part);
}

/// Runs `read`; a description that is not one is an Error.
template <class Read>
auto reading(const std::string& name, const Read& read) {
  try {
    return read();
  } catch (const Json::exception& problem) {
    throw Error("the description of the block '" + name + "' is not one: " + problem.what());
  }
}

void complete(ModelConfig&, ConfigChecks&) {}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const Named own = block_of(model);
  const Json description = description_of(own);
  list.norm("input_layernorm", model.hidden_size);
  list.canon('A', "canonA", model.hidden_size);
  reading(own.name, [&] {
    const auto module = description.at("module").get<std::string>();
    for (const Json& weight : description.at("weights")) add_weight(weight, module, own.name, list);
  });
}

/// All operations of the block: fixed ones of each token, and some for each token of its row.
double mixing_flops(const ModelConfig& model, int64_t seq_len) {
  const Named own = block_of(model);
  const Json description = description_of(own);
  return reading(own.name, [&] {
    const Json& flops = description.at("flops");
    return std::max(0.0,
                    flops.at("fixed").get<double>() +
                        flops.at("per_length").get<double>() * static_cast<double>(seq_len));
  });
}

/// What was measured of one row, and the norm in front.
SavedActivations saved_activations(const ModelConfig& model) {
  const Named own = block_of(model);
  const Json description = description_of(own);
  SavedActivations saved = saved_by_norm(model);
  if (model.canon.has('A')) saved += {model.hidden_size, 0};
  saved.values += reading(own.name, [&] {
    return static_cast<int64_t>(std::llround(description.at("saved").get<double>()));
  });
  return saved;
}

/// Every token is computed from its whole row again.
StateSize state(const ModelConfig&) { return {}; }

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys none;
  return none;
}

}  // namespace
}  // namespace own

bool has_counted_flops(const OwnBlock& block) {
  return !parse_json(block.described.text).at("flops").value("declared", false);
}

void check_description(const std::string& name, const OwnBlock& block) {
  ModelConfig model;
  model.layers = {name};
  model.blocks[name] = block;
  model.hidden_size = model.num_layers = 1;
  ParameterList list(model);
  own::add_parameters(model, list);
  own::mixing_flops(model, 1);
  own::saved_activations(model);
}

const BlockKind own_mixer_block = {"own block",
                                   "A",
                                   own::complete,
                                   own::add_parameters,
                                   own::mixing_flops,
                                   own::saved_activations,
                                   own::state,
                                   own::huggingface_keys};

}  // namespace forge::model
