
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/fields.h"
#include "core/config/keys.h"
#include "core/model/kinds.h"

namespace forge::config {
namespace {

void check_required(const Draft& draft) {
  for (const Key& key : all_keys()) {
    if (!key.required || key.is_named()) continue;
    if (draft.origins.at(key.path).set_by.layer != default_layer) continue;
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

bool check_and_complete_model(Draft& draft, const ProblemSink& on_problem) {
  // Arithmetic with what is missing means nothing.
  if (!attempt(on_problem, Problem::Kind::missing_key, [&] { check_required(draft); }))
    return false;
  DraftChecks checks(draft, on_problem);
  model::complete_model(draft.experiment.model, checks);
  return true;
}

}  // namespace forge::config
