#include "core/run/initial_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/hf/model_weights.h"
#include "core/run/open_model.h"
#include "core/weights/model_files.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

/// Leaves of the section `model` by their path. How weights are drawn counts for nothing here.
Json leaves_of(const config::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment).at("model").flatten();
}

/// Shapes tell sizes apart; what turns the same weights into another function is said.
std::vector<std::string> differences(const config::ModelConfig& wanted,
                                     const config::ModelConfig& origin) {
  std::vector<std::string> notes;
  const Json theirs = leaves_of(origin);
  const Json ours = leaves_of(wanted);
  for (const auto& [pointer, value] : ours.items()) {
    if (starts_with(pointer, "/init") || theirs.value(pointer, Json()) == value) continue;
    std::string key = "model" + pointer;
    std::replace(key.begin(), key.end(), '/', '.');
    notes.push_back(key + " is " + json_text(value) +
                    "; the initial weights come from a model with " +
                    json_text(theirs.value(pointer, Json())));
  }
  return notes;
}

InitialWeights find(const std::string& name,
                    const config::ModelConfig& model,
                    const fs::path& runs_dir) {
  const RunModel origin = open_model(runs_dir, name);
  const weights::ModelFiles files(origin.checkpoint);
  InitialWeights found;
  found.folder = fs::absolute(origin.checkpoint);
  found.hash = weights::content_hash(hf::model_weights(model, files.tensors()));
  found.tokenizer_fingerprint = origin.tokenizer_fingerprint;
  found.notes = differences(model, origin.experiment.model);
  return found;
}

}  // namespace

InitialWeights find_initial_weights(const config::Experiment& experiment,
                                    const fs::path& runs_dir) {
  const std::string& name = experiment.train.initial_weights;
  if (name.empty()) return {};
  try {
    return find(name, experiment.model, runs_dir);
  } catch (const Error& error) {
    throw Error("train.initial_weights '" + name + "': " + error.message(),
                error.where(),
                error.hint(),
                error.exit_code());
  }
}

}  // namespace forge::run
