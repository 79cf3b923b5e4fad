#include "core/run/open_model.h"

#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/huggingface/import_model.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/model_files.h"
#include "core/run/event_log.h"
#include "core/run/import_run.h"
#include "core/run/input_files.h"
#include "core/run/program_hash.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"
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

/// Whether it is the whole id of a run in the runs folder; a path never is.
bool is_listed(const fs::path& runs_dir, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) return false;
  const RunFolder run(runs_dir / name);
  std::error_code unreadable;
  return !run.is_linked() && fs::exists(run.record_file(), unreadable);
}

}  // namespace

RunFolder find_run_by_name_or_path(const fs::path& runs_dir, const std::string& name) {
  if (name.empty()) throw Error("the name of the run is empty", "'forge runs' lists them");
  if (is_listed(runs_dir, name)) return RunFolder(runs_dir / name);
  std::error_code unreadable;
  const RunFolder as_path(fs::weakly_canonical(fs::absolute(name), unreadable));
  if (fs::exists(as_path.record_file(), unreadable)) {
    const fs::path& path = as_path.path();
    return RunFolder(path.has_filename() ? path : path.parent_path());
  }
  if (auto found = find_run(runs_dir, name)) return *found;
  const RunFolder of_checkpoint(run_of_checkpoint(as_path.path()));
  if (fs::exists(of_checkpoint.record_file(), unreadable))
    throw Error("'" + name + "' is a checkpoint of run '" + of_checkpoint.id() +
                    "', and only the run can be named: its newest checkpoint is taken",
                "'forge export-hf " + shell_quoted(of_checkpoint.id()) +
                    " DIR --step N' makes a model folder of an older one");
  const bool is_path = name.find('/') != std::string::npos;
  throw Error("no run '" + name + "' in " + shown_path(runs_dir),
              is_path ? "a path is that of a run's folder or of a model folder of Hugging Face; "
                        "'forge runs' lists the runs"
                      : did_you_mean(name,
                                     texts_of(list_runs(runs_dir), &RunFolder::id),
                                     "'forge runs' lists them"));
}

namespace {

using Holds = std::map<fs::path, std::shared_ptr<const FileLock>>;

void hold(const fs::path& checkpoint, Holds& holds) {
  if (holds.count(checkpoint) != 0) return;
  if (auto lock = weights::hold_checkpoint(checkpoint))
    holds[checkpoint] = std::make_shared<const FileLock>(std::move(*lock));
}

/// Those that may be chosen: that of the step, or the newest ones. Each takes an open file.
Holds hold_candidates(const std::vector<fs::path>& checkpoints, std::optional<int64_t> step) {
  constexpr size_t most = 16;
  Holds holds;
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    if (holds.size() >= most) break;
    if (!step || weights::checkpoint_step(*checkpoint) == step) hold(*checkpoint, holds);
  }
  return holds;
}

/// Chooses a checkpoint and holds it. A run that trains on may remove one before it is held, and
/// while its files are compared with their hashes: then there are newer ones.
void take_checkpoint(const RunFolder& folder, std::optional<int64_t> step, RunModel& model) {
  while (true) {
    const std::vector<fs::path> checkpoints = weights::list_checkpoints(folder.checkpoints());
    Holds holds = hold_candidates(checkpoints, step);
    const FoundCheckpoint found = checkpoint_of(folder, step);
    hold(found.folder, holds);  // an older one, where all the newest ones are damaged
    const auto held = holds.find(found.folder);
    const bool is_settled = weights::list_checkpoints(folder.checkpoints()) == checkpoints;
    if (held == holds.end() && !is_settled) continue;
    model.checkpoint = found.folder;
    model.skipped_checkpoints = found.damaged;
    model.step = *weights::checkpoint_step(model.checkpoint);
    if (held != holds.end()) model.hold = held->second;
    return;
  }
}

}  // namespace

RunModel open_run(const RunFolder& folder, std::optional<int64_t> step) {
  RunModel model;
  const RunRecord record = folder.record();
  model.name = folder.id();
  model.identity = record.identity;
  model.workspace = record.workspace;
  model.project = record.project;
  model.experiment = folder.experiment();
  take_checkpoint(folder, step, model);
  read_tokenizer(folder, model);
  return model;
}

void require_program_of(const RunModel& model) {
  const std::string program = model.identity ? model.identity->program : "";
  if (program.empty() || program_hash(model.experiment.external) == program) return;
  throw Error("the files of the command '" + join(model.experiment.external.command, " ") +
                  "' are not those that trained run '" + model.name + "'",
              "restore them, or train what is there now: " +
                  quoted_command("forge run " + shell_quoted(model.experiment.name)));
}

RunModel open_model(const fs::path& runs_dir,
                    const std::string& run_or_folder,
                    std::optional<int64_t> step) {
  if (is_listed(runs_dir, run_or_folder) || !huggingface::is_model_folder(run_or_folder))
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

/// What there is to say of the run that the weights come from.
void add_notes_on_origin(const RunModel& origin,
                         const config::Experiment& experiment,
                         std::vector<std::string>& notes) {
  const RunFolder run(run_of_checkpoint(origin.checkpoint));
  if (!origin.identity || run.path().empty()) return;
  if (run.is_running())
    notes.push_back("run '" + origin.name +
                    "', from whose weights it starts, still trains: those "
                    "of step " +
                    std::to_string(origin.step) + " are taken");
  for (const std::string& skipped : origin.skipped_checkpoints)
    notes.push_back("of run '" + origin.name + "', from whose weights it starts, " + skipped +
                    "; those of step " + std::to_string(origin.step) + " are taken");
  std::set<std::string> changed;
  EventReader lines(run.events_file(), 0);
  while (const std::optional<ReadLine> line = lines.next()) {
    if (!line->event) continue;  // the store says what is wrong with it
    const auto& started = line->event->started;
    if (started && started->resume_from.empty()) changed.clear();
    for (const std::string& file : changed_inputs_of(*line->event)) changed.insert(file);
  }
  if (!changed.empty())
    notes.push_back("of run '" + origin.name + "', from whose weights it starts, " +
                    changed_inputs_text(join({changed.begin(), changed.end()}, ", ")));
  const std::string other = data::tasks::difference_of_ids(origin.experiment.data, experiment.data);
  if (!other.empty())
    notes.push_back("the initial weights were trained on ids of another meaning: " + other);
}

InitialWeights weights_of(const RunModel& origin, const config::Experiment& experiment) {
  const weights::ModelFiles files(origin.checkpoint);
  InitialWeights found;
  found.folder = fs::absolute(origin.checkpoint);
  const auto wanted = huggingface::model_weights(experiment.model, files.tensors());
  found.hash = weights::content_hash(wanted);
  found.tokenizer_fingerprint = origin.tokenizer_fingerprint;
  found.notes = differences(experiment.model, origin.experiment.model);
  add_notes_on_origin(origin, experiment, found.notes);
  const std::string broken = weights::not_finite_text(wanted);
  if (!broken.empty()) found.notes.push_back("the initial weights are broken: " + broken);
  return found;
}

}  // namespace

void require_planned_weights(const RunRecord& record,
                             const worker::Request& request,
                             const model::ModelConfig& model) {
  const Identity& identity = record.identity;
  const bool are_read = request.resume_from.empty() && !identity.initial_weights.empty();
  if (!are_read || identity.program.empty()) return;
  const weights::ModelFiles files(request.initial_weights);
  if (weights::content_hash(huggingface::model_weights(model, files.tensors())) ==
      identity.initial_weights)
    return;
  throw Error("run '" + record.id + "' cannot begin: the weights in '" +
                  shown_path(request.initial_weights) +
                  "' are no longer those that it was planned with",
              "restore them, or " + quoted_command("forge run " + shell_quoted(record.config)) +
                  " makes a new run of what is there now",
              ExitCode::failed);
}

const RunModel& InitialModels::opened(const std::string& name) {
  const auto known = opened_.find(name);
  if (known != opened_.end()) return known->second;
  return opened_.emplace(name, open_(name)).first->second;
}

InitialWeights InitialModels::find(const config::Experiment& experiment) {
  const std::string& name = experiment.train.initial_weights;
  if (name.empty()) return {};
  try {
    return weights_of(opened(name), experiment);
  } catch (const Error& error) {
    throw Error("train.initial_weights '" + name + "': " + error.message(),
                error.where(),
                error.hint(),
                error.exit_code());
  }
}

}  // namespace forge::run
