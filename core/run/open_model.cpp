#include "core/run/open_model.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/huggingface/import_model.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/model_files.h"
#include "core/run/import_run.h"
#include "core/worker/messages.h"

namespace forge::run {
namespace {

FoundCheckpoint checkpoint_of(const RunFolder& folder, std::optional<int64_t> step) {
  std::vector<std::string> steps;
  for (const fs::path& checkpoint : weights::list_checkpoints(folder.checkpoints())) {
    const int64_t at = *weights::checkpoint_step(checkpoint);
    if (step == at) {
      folder.read_checkpoint(checkpoint);
      return {checkpoint.string(), {}, false};
    }
    steps.push_back(std::to_string(at));
  }
  const std::string run = "run '" + folder.id() + "'";
  if (step) {
    throw Error(run + " has no checkpoint of step " + std::to_string(*step),
                steps.empty() ? "it has none at all" : "it has those of " + join(steps, ", "));
  }
  FoundCheckpoint newest = folder.find_checkpoint();
  if (!newest.folder.empty()) return newest;
  const std::string fault = newest.damaged.empty() ? "" : ": " + join(newest.damaged, "; ");
  throw Error(
      run + (steps.empty() ? " has no checkpoint" : " has damaged checkpoints only") + fault,
      "a run saves one when it ends or is stopped",
      ExitCode::failed);
}

}  // namespace

void require_recorded_tokenizer(const RunFolder& folder) {
  const data::Tokenizer tokenizer = data::load_tokenizer(folder.tokenizer_file());
  if (tokenizer.fingerprint() == folder.record().identity.tokenizer_fingerprint) return;
  throw Error("'" + shown_path(folder.tokenizer_file()) + "' is not the tokenizer that run '" +
                  folder.record().id + "' was trained with",
              ExitCode::failed);
}

namespace {

void read_tokenizer(const RunFolder& folder, RunModel& model) {
  const Identity identity = folder.record().identity;
  model.tokenizer_fingerprint = identity.tokenizer_fingerprint;
  model.data_fingerprint = identity.data_fingerprint;
  if (model.tokenizer_fingerprint.empty()) return;
  model.tokenizer = folder.tokenizer_file();
  if (!fs::exists(model.tokenizer)) {
    throw Error("the tokenizer of run '" + folder.id() + "' is gone: no file '" +
                    shown_path(model.tokenizer) + "'",
                "copy it from another run with the same data, or from a copy of this run; 'forge "
                "run --force' of its config trains it anew",
                ExitCode::failed);
  }
  require_recorded_tokenizer(folder);
}

}  // namespace

RunFolder find_run_by_name_or_path(const fs::path& runs_dir, const std::string& name) {
  if (name.empty()) throw Error("the name of the run is empty", "'forge runs' lists them");
  std::error_code unreadable;
  const RunFolder as_path(fs::weakly_canonical(fs::absolute(name), unreadable));
  if (fs::exists(as_path.record_file(), unreadable)) {
    const fs::path& path = as_path.path();
    return RunFolder(path.has_filename() ? path : path.parent_path());
  }
  if (auto found = find_run(runs_dir, name)) return *found;
  throw Error(
      "no run '" + name + "' in " + shown_path(runs_dir),
      did_you_mean(name, texts_of(list_runs(runs_dir), &RunFolder::id), "'forge runs' lists them"));
}

RunModel open_run(const RunFolder& folder, std::optional<int64_t> step) {
  RunModel model;
  const RunRecord record = folder.record();
  model.name = folder.id();
  model.run_key = record.key;
  model.workspace = record.workspace;
  model.project = record.project;
  model.experiment = folder.experiment();
  const FoundCheckpoint found = checkpoint_of(folder, step);
  model.checkpoint = found.folder;
  model.skipped_checkpoints = found.damaged;
  model.step = *weights::checkpoint_step(model.checkpoint);
  read_tokenizer(folder, model);
  return model;
}

RunModel open_model(const fs::path& runs_dir,
                    const std::string& run_or_folder,
                    std::optional<int64_t> step) {
  if (!huggingface::is_model_folder(run_or_folder))
    return open_run(find_run_by_name_or_path(runs_dir, run_or_folder), step);
  if (step) {
    throw Error("'" + run_or_folder + "' is a model folder: it holds one model and no step " +
                std::to_string(*step));
  }
  const fs::path folder = fs::weakly_canonical(fs::absolute(run_or_folder));
  const huggingface::ImportedModel imported = huggingface::import_model(folder);
  RunModel model;
  model.name = folder.filename().string();
  model.experiment = experiment_of(imported, model.name, folder);
  model.checkpoint = folder;
  // A worker reads tokenizer.json alone; a file of another kind becomes one by 'forge import-hf'.
  if (imported.tokenizer.extension() == ".json") {
    model.tokenizer = imported.tokenizer;
    model.tokenizer_fingerprint = imported.tokenizer_fingerprint;
  }
  return model;
}

data::Tokenizer model_tokenizer(const RunModel& model) {
  if (!model.tokenizer.empty()) return data::load_tokenizer(model.tokenizer);
  if (model.experiment.data.has_own_ids()) {
    throw Error("'" + model.name + "' reads the ids of the task " +
                    model.experiment.data.task.name + ", not text",
                "'forge eval' scores what it answers, 'forge data sample' shows the task's texts");
  }
  throw Error("'" + shown_path(model.checkpoint) + "' has no tokenizer that forge can use",
              "it needs a tokenizer.json of BPE beside its weights; 'forge import-hf' "
              "says what is wrong with another one");
}

worker::Request model_request(worker::Job job,
                              const RunModel& model,
                              const std::string& device,
                              int threads) {
  worker::Request request;
  request.job = job;
  request.experiment = config::to_json(model.experiment);
  request.initial_weights = fs::absolute(model.checkpoint).string();
  request.device = device;
  request.threads = threads;
  return request;
}

void refuse_answer(const std::string& problem) { throw Error(problem, ExitCode::failed); }

namespace {

using Json = nlohmann::json;

/// The section `model` of a config.
Json section_of(const model::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment).at("model");
}

/// Config keys in which the models differ, but for how initial weights are drawn. Different sizes
/// are found later, by the shapes.
std::vector<std::string> differences(const model::ModelConfig& wanted,
                                     const model::ModelConfig& origin) {
  std::vector<std::string> notes;
  std::map<std::string, Json> theirs = dotted_leaves(section_of(origin));
  for (const auto& [key, value] : dotted_leaves(section_of(wanted))) {
    if (starts_with(key, "init") || theirs[key] == value) continue;
    notes.push_back("model." + key + " is " + json_text(value) +
                    "; the initial weights come from a model with " + json_text(theirs[key]));
  }
  return notes;
}

InitialWeights find(const std::string& name,
                    const model::ModelConfig& model,
                    const fs::path& runs_dir) {
  const RunModel origin = open_model(runs_dir, name);
  const weights::ModelFiles files(origin.checkpoint);
  InitialWeights found;
  found.folder = fs::absolute(origin.checkpoint);
  const auto wanted = huggingface::model_weights(model, files.tensors());
  found.hash = weights::content_hash(wanted);
  found.tokenizer_fingerprint = origin.tokenizer_fingerprint;
  found.notes = differences(model, origin.experiment.model);
  const std::string broken = weights::not_finite_text(wanted);
  if (!broken.empty()) found.notes.push_back("the initial weights are broken: " + broken);
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
