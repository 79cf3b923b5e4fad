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

bool stands_at(char position, const OwnBlock& block) {
  return block.at.find(position) != std::string::npos;
}

Named block_called(const ModelConfig& model, const std::string& name) {
  const auto found = model.blocks.find(name);
  if (found != model.blocks.end()) return {found->first, found->second};
  throw Error("the model has no block '" + name + "'");
}

/// The mixer of a layer's own model.
Named mixer_of(const ModelConfig& model) { return block_called(model, model.layers.front().mixer); }

Named mlp_of(const ModelConfig& model) { return block_called(model, model.mlp.kind.own); }

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
    throw Error("the description of the block '" + name + "' is not one: " + json_problem(problem));
  }
}

void complete(ModelConfig&, ConfigChecks&) {}

/// Behind the module's name stands `ending`.
void add_weights(const Named& own, const std::string& ending, ParameterList& list) {
  const Json description = description_of(own);
  reading(own.name, [&] {
    const auto module = description.at("module").get<std::string>() + ending;
    for (const Json& weight : description.at("weights")) add_weight(weight, module, own.name, list);
  });
}

void add_mixer(const ModelConfig& model, ParameterList& list) {
  list.norm("input_layernorm", model.hidden_size);
  list.canon('A', "canonA", model.hidden_size);
  add_weights(mixer_of(model), "", list);
}

void add_mlp(const ModelConfig& model, ParameterList& list) {
  list.norm("post_attention_layernorm", model.hidden_size);
  list.canon('C', "canonC", model.hidden_size);
  add_weights(mlp_of(model), "", list);
}

/// All operations of the block: fixed ones of each token, and some for each token of its row.
double flops_of(const Named& own, int64_t seq_len) {
  const Json description = description_of(own);
  return reading(own.name, [&] {
    const Json& flops = description.at("flops");
    const double growing = flops.at("per_length").get<double>() * static_cast<double>(seq_len);
    return std::max(0.0, flops.at("fixed").get<double>() + growing);
  });
}

double mixer_flops(const ModelConfig& model, int64_t seq_len) {
  return flops_of(mixer_of(model), seq_len);
}

double mlp_flops(const ModelConfig& model, int64_t seq_len) {
  return flops_of(mlp_of(model), seq_len);
}

/// As measured of one row.
SavedActivations saved_by(const Named& own) {
  const Json description = description_of(own);
  return reading(own.name, [&] {
    const auto values = std::llround(description.at("saved").get<double>());
    return SavedActivations{static_cast<int64_t>(values), 0};
  });
}

/// With the norm in front and the Canon layer.
SavedActivations saved_with_norm(const ModelConfig& model, char position, const Named& own) {
  SavedActivations saved = saved_by_norm(model);
  if (model.canon.has(position)) saved += {model.hidden_size, 0};
  return saved += saved_by(own);
}

SavedActivations saved_by_mixer(const ModelConfig& model) {
  return saved_with_norm(model, 'A', mixer_of(model));
}

SavedActivations saved_by_mlp(const ModelConfig& model) {
  return saved_with_norm(model, 'C', mlp_of(model));
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
  model.hidden_size = model.num_layers = 1;
  ParameterList list(model);
  const own::Named named{name, block};
  own::add_weights(named, "", list);
  own::flops_of(named, 1);
  own::saved_by(named);
}

void add_blocks_at(char position, const ModelConfig& model, ParameterList& list) {
  for (const auto& [name, block] : model.blocks) {
    if (own::stands_at(position, block))
      own::add_weights({name, block}, std::string(1, position), list);
  }
}

double flops_of_block_at(const ModelConfig& model, const std::string& name, int64_t seq_len) {
  const own::Named named = own::block_called(model, name);
  const auto places = static_cast<double>(named.block.at.size());
  return places > 0 ? places * own::flops_of(named, seq_len) : 0;
}

double flops_of_blocks_at(char position, const ModelConfig& model, int64_t seq_len) {
  double operations = 0;
  for (const auto& [name, block] : model.blocks) {
    if (own::stands_at(position, block)) operations += own::flops_of({name, block}, seq_len);
  }
  return operations;
}

SavedActivations saved_by_blocks_at(char position, const ModelConfig& model) {
  SavedActivations saved;
  for (const auto& [name, block] : model.blocks) {
    if (own::stands_at(position, block)) saved += own::saved_by({name, block});
  }
  return saved;
}

const BlockKind own_mixer_block = {"own mixer",
                                   "A",
                                   own::complete,
                                   own::add_mixer,
                                   own::mixer_flops,
                                   own::saved_by_mixer,
                                   own::state,
                                   own::huggingface_keys};

const BlockKind own_mlp_block = {"own mlp",
                                 "C",
                                 own::complete,
                                 own::add_mlp,
                                 own::mlp_flops,
                                 own::saved_by_mlp,
                                 own::state,
                                 own::huggingface_keys};

}  // namespace forge::model
