#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/keys.h"
#include "core/config/layer_settings.h"
#include "core/config/own_blocks.h"
#include "core/model/kinds.h"

namespace forge::config {
namespace {

using Mixers = std::vector<const model::BlockKind*>;

/// Those that model.layers does not name: their sections mean nothing.
Mixers absent_from(const ModelConfig& model, const Mixers& mixers) {
  Mixers absent;
  for (const model::BlockKind* mixer : mixers) {
    const bool is_named =
        std::any_of(model.layers.begin(), model.layers.end(), [&](const model::LayerSpec& layer) {
          return layer.mixer == mixer->name;
        });
    if (!is_named) absent.push_back(mixer);
  }
  return absent;
}

std::string section_of(const model::BlockKind& mixer) {
  return std::string("model.") + mixer.name + ".";
}

void check_required(const Draft& draft) {
  const Mixers absent = absent_from(draft.experiment.model, model::mixer_kinds());
  const auto is_unused = [&](const Key& key) {
    return std::any_of(absent.begin(), absent.end(), [&](const model::BlockKind* mixer) {
      return starts_with(key.path, section_of(*mixer));
    });
  };
  for (const Key& key : all_keys()) {
    if (!key.required || key.is_named()) continue;
    if (draft.origins.at(key.path).set_by.layer != default_layer) continue;
    if (is_unused(key)) continue;
    const bool no_model =
        draft.experiment.model.hidden_size == 0 && draft.experiment.model.num_layers == 0;
    throw Error(
        "missing key '" + key.path + "'",
        draft.document,
        no_model && starts_with(key.path, "model.")
            ? "the config has no model: give the section 'model', or take it from a project "
              "of models with !call:forge:from_project"
            : key.path + ": " + key.help);
  }
}

/// A draft as the checks of blocks see it: with the place of every value.
class DraftChecks : public model::ConfigChecks {
 public:
  DraftChecks(Draft& draft, const ProblemSink& on_problem)
      : draft_(draft), on_problem_(on_problem) {}

  bool attempt(const std::function<void()>& check) override {
    return config::attempt(on_problem_, Problem::Kind::disagreement, check);
  }
  Error complaint(const std::vector<std::string>& keys,
                  const std::string& message,
                  const std::string& hint) const override {
    return config::complaint(draft_, keys, message, hint);
  }
  void derive(const std::string& key, const std::string& from, const std::string& value) override {
    config::derive(draft_, key, from, value);
  }
  void drop(const std::string& key,
            const std::string& because,
            const std::string& reason,
            const std::string& hint) override {
    drop_unused(draft_, key, because, reason, hint);
  }

 private:
  Draft& draft_;
  const ProblemSink& on_problem_;
};

}  // namespace

bool is_of_replaced_layers(const Draft& draft, const std::string& key) {
  const Origin& layers = draft.origins.at("model.layers");
  const SourceSpan& changed = layers.set_by.origin;
  const SourceSpan& given = draft.origins.at(key).set_by.origin;
  const bool are_known = changed.source != nullptr && given.source != nullptr;
  const bool is_typed_later = rank(draft.origins.at(key).set_by) == rank_of_command_line &&
                              rank(layers.set_by) < rank_of_command_line;
  return !layers.overrode.empty() && are_known && !is_typed_later &&
         changed.source->name != given.source->name;
}

void refuse_unused_sections(Draft& draft,
                            const std::vector<const model::BlockKind*>& mixers,
                            const ProblemSink& on_problem) {
  for (const model::BlockKind* mixer : absent_from(draft.experiment.model, mixers)) {
    const std::string name = mixer->name;
    attempt(on_problem, Problem::Kind::disagreement, [&] {
      for (const std::string& key : all_key_paths()) {
        const bool is_set = draft.origins.at(key).set_by.layer != default_layer;
        if (!is_set || !starts_with(key, section_of(*mixer))) continue;
        if (is_of_replaced_layers(draft, key)) {
          derive(draft, key, "model.layers", default_text(*find_key(key)));
          continue;
        }
        drop_unused(draft,
                    key,
                    "model.layers",
                    "has no meaning where model.layers has no " + name,
                    "leave the section out, or name " + name + " in model.layers");
      }
    });
    reset_key(draft.experiment, "model." + name);
  }
}

namespace {

/// A pattern of layers is repeated, and never cut off: a hybrid would lose what stands at its end.
void check_number_of_layers(const Draft& draft) {
  const ModelConfig& model = draft.experiment.model;
  const auto elements = static_cast<int64_t>(model.layers.size());
  if (model.num_layers == 0 || elements <= model.num_layers) return;
  throw complaint(draft,
                  {"model.layers", "model.num_layers"},
                  "model.layers names " + std::to_string(elements) + " layers, and the model has " +
                      std::to_string(model.num_layers),
                  "raise model.num_layers, or give a shorter model.layers, which is repeated");
}

}  // namespace

bool check_and_complete_model(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  read_own_blocks(draft, bases, on_problem);
  // Arithmetic with what is missing means nothing.
  if (!attempt(on_problem, Problem::Kind::missing_key, [&] { check_required(draft); }))
    return false;
  attempt(on_problem, Problem::Kind::disagreement, [&] { check_number_of_layers(draft); });
  DraftChecks checks(draft, on_problem);
  const ModelConfig written = draft.experiment.model;
  if (!model::complete_model(draft.experiment.model, checks)) return true;
  refuse_unused_sections(draft, model::mixer_kinds(), on_problem);
  complete_layer_settings(draft, written, on_problem);
  return true;
}

}  // namespace forge::config
