#include "core/model/kinds.h"

#include <algorithm>

#include "core/base/text.h"

namespace forge::model {
namespace {

void check_layers(const ModelConfig& model, const ConfigChecks& checks) {
  std::vector<std::string> names = texts_of(mixer_kinds(), &BlockKind::name);
  if (model.layers.empty()) {
    throw checks.complaint(
        {"model.layers"}, "model.layers is empty", "for example [" + names.front() + "]");
  }
  for (const auto& [name, block] : model.blocks) names.push_back(name);
  for (const LayerSpec& spec : model.layers) {
    const std::string& name = spec.mixer;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string hint = did_you_mean(name, names);
    throw checks.complaint({"model.layers"},
                           "model.layers has '" + name + "', which is no kind of mixer",
                           hint.empty() ? "the kinds are " + join(names, ", ") +
                                              "; 'forge block new' begins one of your own"
                                        : hint);
  }
}

void check_mlp_kind(const ModelConfig& model, const ConfigChecks& checks) {
  const std::string& own = model.mlp.kind.own;
  if (own.empty() || model.blocks.count(own) > 0) return;
  std::vector<std::string> names = names_of(MlpKind{});
  for (const auto& [name, block] : model.blocks) names.push_back(name);
  const std::string hint = did_you_mean(own, names);
  throw checks.complaint(
      {"model.mlp.kind"},
      "'model.mlp.kind' must be one of " + join(names, ", ") + ", not '" + own + "'",
      hint.empty() ? "'forge block new' begins one of your own" : hint);
}

/// Letters of Canon positions in the order in which a token meets them, each once.
std::string in_order(const std::string& letters) {
  std::string ordered;
  for (const char letter : std::string("AbBCD")) {
    if (letters.find(letter) != std::string::npos) ordered += letter;
  }
  return ordered;
}

std::string canon_positions(const ModelConfig& model) {
  std::string positions;
  for (const BlockKind* kind : kinds_in(model)) positions += kind->canon_positions;
  return in_order(positions);
}

void complete_canon_set(ModelConfig& model, const ConfigChecks& checks) {
  const std::string positions = canon_positions(model);
  std::string& set = model.canon.set;
  const std::string hint =
      "give letters of " + positions + ", each at most once; \"\" is no Canon layer";
  const std::string whole = "model.canon.set '" + set + "' ";
  for (size_t i = 0; i < set.size(); ++i) {
    const std::string letter(1, set[i]);
    if (positions.find(letter) == std::string::npos) {
      throw checks.complaint(
          {"model.canon.set"}, whole + "has '" + letter + "', which is no Canon position", hint);
    }
    if (set.find(letter, i + 1) != std::string::npos) {
      throw checks.complaint({"model.canon.set"}, whole + "has '" + letter + "' twice", hint);
    }
  }
  set = in_order(set);
}

void refuse_unused_canon(ModelConfig& model, ConfigChecks& checks) {
  CanonConfig& canon = model.canon;
  if (canon.bias) {
    throw checks.complaint(
        {"model.canon.bias"},
        "model.canon.bias true is not supported",
        "a Canon layer is a convolution without bias, in the paper and in its code");
  }
  if (canon.has_residual_layers()) return;
  const CanonConfig plain;
  const char* reason = canon.set.empty() ? "has no meaning where model.canon.set is empty"
                                         : "has no meaning where model.canon.set is b";
  const char* hint = "name the positions in model.canon.set, or leave the key out";
  const char* set = "model.canon.set";
  checks.refuse_unused("model.canon.kernel", canon.kernel, plain.kernel, set, reason, hint);
  checks.refuse_unused("model.canon.residual", canon.residual, plain.residual, set, reason, hint);
  checks.refuse_unused(
      "model.canon.activation", canon.activation, plain.activation, set, reason, hint);
}

void refuse_unused_init(ModelConfig& model, ConfigChecks& checks) {
  if (model.init == ModelInit::lingua) return;
  const ModelConfig plain;
  const std::string reason = "has no meaning where model.init is " + schema::name_of(model.init);
  const char* hint = "it belongs to model.init lingua";
  checks.refuse_unused(
      "model.init_base_std", model.init_base_std, plain.init_base_std, "model.init", reason, hint);
  checks.refuse_unused("model.init_std_factor",
                       model.init_std_factor,
                       plain.init_std_factor,
                       "model.init",
                       reason,
                       hint);
}

/// Every mistake is an Error without a place.
class PlainChecks : public ConfigChecks {
 public:
  bool attempt(const std::function<void()>& check) override {
    check();
    return true;
  }
  Error complaint(const std::vector<std::string>&,
                  const std::string& message,
                  const std::string& hint) const override {
    return Error(message, hint);
  }
  void derive(const std::string&, const std::string&, const std::string&) override {}
  void drop(const std::string&,
            const std::string&,
            const std::string&,
            const std::string&) override {}
};

}  // namespace

const std::vector<const BlockKind*>& mixer_kinds() {
  static const std::vector<const BlockKind*> kinds = {
      &attention_block, &gla5_block, &gdn2_block, &mamba2_block};
  return kinds;
}

const BlockKind& mixer_kind(const std::string& name) {
  for (const BlockKind* kind : mixer_kinds()) {
    if (kind->name == name) return *kind;
  }
  throw Error("'" + name + "' is no kind of mixer");
}

const BlockKind& mixer_of_layer(const ModelConfig& model, int layer) {
  const std::string& name = model.mixer(layer);
  return model.blocks.count(name) > 0 ? own_mixer_block : mixer_kind(name);
}

std::array<const BlockKind*, 2> blocks_of_layer(const ModelConfig& model, int layer) {
  const bool has_own_mlp = !model.of_layer(layer).mlp.kind.own.empty();
  return {&mixer_of_layer(model, layer), has_own_mlp ? &own_mlp_block : &mlp_block};
}

std::vector<const BlockKind*> kinds_in(const ModelConfig& model) {
  std::vector<const BlockKind*> kinds;
  const int layers = static_cast<int>(model.layers.size());
  for (int layer = 0; layer < layers; ++layer) {
    for (const BlockKind* kind : blocks_of_layer(model, layer)) {
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  return kinds;
}

std::string positions_of_layer(const ModelConfig& model, const std::string& set) {
  std::string positions;
  for (const char letter : canon_positions(model)) {
    if (set.find(letter) != std::string::npos) positions += letter;
  }
  return positions;
}

bool complete_model(ModelConfig& model, ConfigChecks& checks) {
  if (!checks.attempt([&] { check_layers(model, checks); })) return false;
  if (!checks.attempt([&] { check_mlp_kind(model, checks); })) return false;
  for (const BlockKind* kind : kinds_in(model)) kind->complete(model, checks);
  complete_norm(model, checks);
  checks.attempt([&] { complete_canon_set(model, checks); });
  checks.attempt([&] { refuse_unused_canon(model, checks); });
  checks.attempt([&] { refuse_unused_init(model, checks); });
  return true;
}

void complete_model(ModelConfig& model) {
  PlainChecks checks;
  complete_model(model, checks);
}

}  // namespace forge::model
