#include "core/config/layer_settings.h"

#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/json_fields.h"
#include "core/model/kinds.h"

namespace forge::config {

/// What an element of model.layers may hold.
struct LayerSections {
  std::string mixer;
  model::AttentionConfig attention;
  model::Gla5Config gla5;
  model::Gdn2Config gdn2;
  model::Mamba2Config mamba2;
  model::MlpConfig mlp;
  model::CanonConfig canon;
};

template <class Visitor>
void fields(Visitor& visit, LayerSections& c) {
  visit.field("mixer", c.mixer, "kind of mixer");
  visit.section("attention", c.attention, "softmax attention");
  visit.section("gla5", c.gla5, "gated linear attention");
  visit.section("gdn2", c.gdn2, "gated delta network");
  visit.section("mamba2", c.mamba2, "Mamba-2");
  visit.section("mlp", c.mlp, "MLP");
  visit.section("canon", c.canon, "Canon layers");
}

namespace {

using nlohmann::json;

json::json_pointer pointer_to(const std::string& dotted) {
  return json::json_pointer("/" + join(split(dotted, '.'), "/"));
}

/// What the layer's own settings say, by its sections; null for what they leave as it is.
json settings_of(const model::LayerSpec& layer) {
  return layer.settings.empty() ? json::object() : json::parse(layer.settings);
}

/// The values of `own` that differ from those of `base`; what only the base has becomes null.
json difference(const json& own, const json& base) {
  json differing = json::object();
  for (const auto& [key, value] : own.items()) {
    const json before = base.contains(key) ? base.at(key) : json();
    if (value.is_object() && before.is_object()) {
      json below = difference(value, before);
      if (!below.empty()) differing[key] = std::move(below);
    } else if (value != before) {
      differing[key] = value;
    }
  }
  for (const auto& [key, value] : base.items()) {
    if (!own.contains(key)) differing[key] = nullptr;
  }
  return differing;
}

ModelConfig laid_upon(const ModelConfig& model, const model::LayerSpec& layer) {
  ModelConfig own = model;
  json_fields::read(settings_of(layer), "model.layers.", own);
  own.layers = {layer.mixer};
  return own;
}

/// Sections of a model that a layer with this mixer may have settings in.
json layer_sections(const ModelConfig& model, const std::string& mixer) {
  const json all = json_fields::written(model, true);
  json sections;
  for (const std::string& name : {mixer, std::string("mlp"), std::string("canon")}) {
    if (all.contains(name)) sections[name] = all.at(name);  // a block of one's own has none here
  }
  return sections;
}

/// Mistakes are said of the element of model.layers. What a layer takes over from the model and
/// does not read is reset silently.
class LayerChecks : public model::ConfigChecks {
 public:
  LayerChecks(const Draft& draft, size_t index, json settings, const ProblemSink& on_problem)
      : draft_(draft), index_(index), settings_(std::move(settings)), on_problem_(on_problem) {}

  bool attempt(const std::function<void()>& check) override {
    return config::attempt(on_problem_, Problem::Kind::disagreement, check);
  }
  Error complaint(const std::vector<std::string>&,
                  const std::string& message,
                  const std::string& hint) const override {
    return config::complaint(
        draft_, {"model.layers"}, "model.layers[" + std::to_string(index_) + "]: " + message, hint);
  }
  void derive(const std::string&, const std::string&, const std::string&) override {}
  void drop(const std::string& key,
            const std::string&,
            const std::string& reason,
            const std::string& hint) override {
    const auto place = pointer_to(key.substr(std::string("model.").size()));
    if (!settings_.contains(place)) return;
    throw complaint({}, key + " " + plain_text(settings_.at(place)) + " " + reason, hint);
  }

 private:
  const Draft& draft_;
  size_t index_;
  json settings_;
  const ProblemSink& on_problem_;
};

}  // namespace

model::LayerSpec read_layer(const yaml::Node& node,
                            const std::string& path,
                            const ReadOptions& outer) {
  std::set<std::string> given;
  ReadOptions options = outer;
  options.path = path;
  options.partial = true;
  options.on_leaf = [&](const std::string& leaf, const yaml::Entry&) {
    given.insert(leaf.substr(path.size() + 1));
  };
  LayerSections sections;
  read_into(node, sections, options);
  if (sections.mixer.empty()) {
    throw Error("'" + path + "' names no mixer",
                node.origin,
                "for example {mixer: attention, attention: {window: 128}}");
  }
  const json all = json_fields::written(sections, true);
  json settings = json::object();
  for (const std::string& leaf : given) {
    if (leaf == "mixer") continue;
    const std::string section = leaf.substr(0, leaf.find('.'));
    if (section != sections.mixer && section != "mlp" && section != "canon") {
      throw Error("'" + path + "." + section + "' has no meaning in a layer of " + sections.mixer,
                  node.find_entry(section)->key_origin,
                  "the layer has " + sections.mixer + ", mlp and canon");
    }
    const auto place = pointer_to(leaf);
    settings[place] = all.contains(place) ? all.at(place) : json();
  }
  model::LayerSpec layer(sections.mixer);
  if (!settings.empty()) layer.settings = settings.dump();
  return layer;
}

void lay_layer_settings(ModelConfig& model) {
  for (model::LayerSpec& layer : model.layers) {
    // The functions of a block of one's own know by it which block the layer has.
    if (!layer.settings.empty() || model.blocks.count(layer.mixer) > 0)
      layer.model = std::make_shared<const ModelConfig>(laid_upon(model, layer));
  }
}

void complete_layer_settings(Draft& draft,
                             const ModelConfig& written,
                             const ProblemSink& on_problem) {
  ModelConfig& model = draft.experiment.model;
  for (size_t index = 0; index < model.layers.size(); ++index) {
    model::LayerSpec& layer = model.layers[index];
    const json settings = settings_of(layer);
    if (settings.empty()) continue;
    ModelConfig own = laid_upon(written, layer);
    const bool has_own_set = settings.contains("/canon/set"_json_pointer);
    // The model's set may name positions that other layers have.
    if (!has_own_set) own.canon.set = model::positions_of_layer(own, model.canon.set);
    LayerChecks checks(draft, index, settings, on_problem);
    model::complete_model(own, checks);
    if (!has_own_set) own.canon.set = model.canon.set;
    const json differing =
        difference(layer_sections(own, layer.mixer), layer_sections(model, layer.mixer));
    layer.settings = differing.empty() ? "" : differing.dump();
  }
  lay_layer_settings(model);
}

}  // namespace forge::config
