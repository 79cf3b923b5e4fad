#include "core/run/plan.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/identity.h"
#include "core/run/scorer.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

/// Beside the config, what makes the same steps must be the same.
void check_same_surroundings(const RunFolder& other, const Identity& identity) {
  Json theirs = to_json(other.record().identity);
  Json ours = to_json(identity);
  // Initial weights are in the checkpoint, whatever they were.
  for (const char* key : {"experiment", "initial_weights"}) {
    theirs.erase(key);
    ours.erase(key);
  }
  for (const auto& [key, value] : ours.items()) {
    if (theirs.contains(key) && theirs.at(key) == value) continue;
    std::string hint = "start a new run";
    if (key == "data_fingerprint") {
      hint =
          "the data must be the same text, cut into the same rows: generated text is made for "
          "the steps that it is for";
    }
    throw Error("cannot go on from run '" + other.id() + "': its " + key + " is " +
                    theirs.value(key, Json()).dump() + " and would be " + value.dump(),
                {},
                hint);
  }
}

int64_t step_of(const StoredEvent& stored) {
  if (stored.name != "train" && stored.name != "evaluation") return -1;
  return stored.json.at("step").get<int64_t>();
}

}  // namespace

Continuation find_continuation(const RunFolder& other,
                               const Identity& identity,
                               const Json& experiment) {
  check_same_surroundings(other, identity);
  const config::Experiment before =
      config::experiment_from_json(Json::parse(read_file(other.config_file())));
  const config::Experiment now = config::experiment_from_json(experiment);
  const std::vector<fs::path> folders = weights::list_checkpoints(other.checkpoints());
  std::string newest_problem = "it has no checkpoint";
  std::string hint = "start a new run";
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    try {
      const int64_t step = weights::read_checkpoint_state(*folder).step;
      config::check_resumable(before, now, step);
      return {fs::absolute(*folder), other.events_file(), step, before.train.log_every};
    } catch (const Error& problem) {
      if (folder != folders.rbegin()) continue;
      newest_problem = problem.message();
      if (!problem.hint().empty()) hint = problem.hint();
    }
  }
  throw Error("cannot go on from run '" + other.id() + "': " + newest_problem, {}, hint);
}

std::string earlier_events(const Continuation& continuation) {
  std::string lines;
  for (const StoredEvent& stored : read_events(continuation.events)) {
    const int64_t step = step_of(stored);
    if (step < 0 || step > continuation.step) continue;
    // What was left of a window when the budget was spent is no window of the longer run.
    if (stored.name == "train" && step % continuation.log_every != 0) continue;
    Json event = stored.json;
    event["attempt"] = 0;
    lines += worker::to_line(event) + "\n";
  }
  return lines;
}

namespace {

Identity identity_of(const RunInputs& inputs) {
  const worker::Environment& environment = inputs.backend.environment;
  Identity identity;
  identity.experiment = identifying_part(inputs.experiment);
  identity.data_fingerprint = inputs.data_fingerprint;
  identity.tokenizer_fingerprint = inputs.tokenizer_fingerprint;
  identity.backend = inputs.backend.hello.backend;
  identity.device_type = environment.device_type;
  identity.threads = environment.device_type == "cpu" ? environment.threads : 0;
  identity.numerics_version = inputs.backend.hello.numerics_version;
  identity.initial_weights = inputs.initial_weights.hash;
  return identity;
}

std::string with_suffix(const std::string& id, int number) {
  return number == 1 ? id : id + "-" + std::to_string(number);
}

/// How many runs of this id there are: id, id-2, … without a gap.
int runs_of(const std::string& id, const fs::path& runs_dir) {
  int number = 0;
  while (fs::exists(RunFolder(runs_dir / with_suffix(id, number + 1)).record_file())) ++number;
  return number;
}

Action action_for(const RunFolder& folder) {
  if (!fs::exists(folder.record_file())) return Action::start;
  switch (folder.state()) {
    case RunState::completed: return Action::cached;
    case RunState::running: return Action::running;
    case RunState::queued: return Action::start;
    case RunState::stopped:
    case RunState::failed: return Action::resume;
  }
  return Action::start;
}

/// The run of these inputs, its id without a suffix.
RunRecord record_of(const RunInputs& inputs) {
  RunRecord record;
  record.project = inputs.project;
  record.config = inputs.config;
  record.created = utc_timestamp();
  record.command = inputs.command;
  record.revision = inputs.revision;
  record.identity = identity_of(inputs);
  record.key = run_key(record.identity);
  record.id = inputs.config + "-" + record.key;
  // Configs may lie in folders; runs lie side by side.
  std::replace(record.id.begin(), record.id.end(), '/', '_');
  return record;
}

PlannedRun in_folder(RunRecord record, const fs::path& runs_dir) {
  const RunFolder folder(runs_dir / record.id);
  return {std::move(record), folder, action_for(folder)};
}

/// The request of the run. Device and threads are those that its identity was made of: on another
/// machine "auto" might be something else.
worker::Request request_of(const PlannedRun& planned, const RunInputs& inputs) {
  const worker::Environment& environment = inputs.backend.environment;
  worker::Request request;
  request.job = worker::Job::train;
  request.run_dir = fs::absolute(planned.folder.path()).string();
  request.identity = planned.record.key;
  request.experiment = inputs.experiment;
  request.train_tokens = inputs.train_tokens;
  request.evaluation_tokens = inputs.evaluation_tokens;
  request.validation_tokens = inputs.validation_tokens;
  ask_for_answers(config::experiment_from_json(inputs.experiment), request);
  request.resume_from = inputs.continuation.checkpoint.string();
  request.initial_weights = inputs.initial_weights.folder.string();
  request.initial_weights_hash = inputs.initial_weights.hash;
  request.device = inputs.device == "auto" ? environment.device_type : inputs.device;
  request.threads = environment.threads;
  return request;
}

std::string request_text(const PlannedRun& planned, const RunInputs& inputs) {
  return worker::to_line(request_of(planned, inputs)) + "\n";
}

void write_new_folder(const PlannedRun& planned, const RunInputs& inputs) {
  const fs::path target = planned.folder.path();
  const fs::path aside =
      target.parent_path() / ("." + planned.record.id + ".tmp-" + std::to_string(::getpid()));
  const RunFolder folder(aside);
  remove_tree(aside);
  make_directories(aside);
  try {
    write_file_atomic(folder.config_file(), json_text(inputs.experiment, 2) + "\n");
    write_file_atomic(folder.origin_file(), json_text(inputs.origins, 2) + "\n");
    if (!inputs.tokenizer.empty()) {
      write_file_atomic(folder.tokenizer_file(), read_file(inputs.tokenizer));
    }
    write_file_atomic(folder.request_file(), request_text(planned, inputs));
    if (!inputs.continuation.checkpoint.empty()) {
      write_file_atomic(folder.events_file(), earlier_events(inputs.continuation));
    }
    write_file_atomic(folder.record_file(), json_text(to_json(planned.record), 2) + "\n");
    if (::rename(aside.c_str(), target.c_str()) != 0) {
      throw system_error("make the run folder '" + target.string() + "'", errno);
    }
  } catch (...) {
    std::error_code ignored;
    remove_tree(aside, ignored);
    // Another forge that planned the same run was faster: then the folder is as good as ours.
    if (fs::exists(planned.folder.record_file())) return;
    throw;
  }
  sync_path(target.parent_path());
}

}  // namespace

const std::string& name_of(Action action) {
  static const std::string names[] = {"new", "resumes", "running", "cached"};
  return names[static_cast<int>(action)];
}

PlannedRun plan_run(const RunInputs& inputs, const fs::path& runs_dir, bool force) {
  RunRecord record = record_of(inputs);
  const int existing = runs_of(record.id, runs_dir);
  record.id = with_suffix(record.id, force ? existing + 1 : std::max(existing, 1));
  return in_folder(std::move(record), runs_dir);
}

PlannedRun plan_under(const std::string& id, const RunInputs& inputs, const fs::path& runs_dir) {
  RunRecord record = record_of(inputs);
  const std::string& own = record.id;
  const bool has_suffix = id.size() > own.size() + 1 && starts_with(id, own + "-") &&
                          id.find_first_not_of("0123456789", own.size() + 1) == std::string::npos;
  if (id != own && !has_suffix)
    throw Error("the run '" + id + "' would be called '" + own + "' by what it is");
  record.id = id;
  return in_folder(std::move(record), runs_dir);
}

void write_run_folder(const PlannedRun& planned, const RunInputs& inputs) {
  if (!fs::exists(planned.folder.record_file())) {
    write_new_folder(planned, inputs);
  } else if (planned.action == Action::start || planned.action == Action::resume) {
    write_file_atomic(planned.folder.request_file(), request_text(planned, inputs));
  }
}

namespace {

using Json = nlohmann::json;

constexpr int version = 1;

Json to_json(const SavedRun& run) {
  return {{"label", run.label},
          {"project", run.project},
          {"config", run.config},
          {"id", run.id},
          {"revision", run.revision},
          {"identity", run::to_json(run.identity)},
          {"experiment", run.experiment},
          {"origins", run.origins}};
}

SavedRun run_from_json(const Json& json) {
  SavedRun run;
  run.label = json.at("label").get<std::string>();
  run.project = json.at("project").get<std::string>();
  run.config = json.at("config").get<std::string>();
  run.id = json.at("id").get<std::string>();
  run.revision = json.at("revision").get<std::string>();
  run.identity = identity_from_json(json.at("identity"));
  run.experiment = json.at("experiment");
  run.origins = json.at("origins");
  return run;
}

SavedPlan from_json(const Json& json) {
  SavedPlan plan;
  plan.created = json.at("created").get<std::string>();
  plan.command = json.at("command").get<std::string>();
  plan.device = json.at("device").get<std::string>();
  plan.threads = json.at("threads").get<int>();
  plan.continue_run = json.at("continue").get<std::string>();
  for (const Json& run : json.at("runs")) plan.runs.push_back(run_from_json(run));
  return plan;
}

}  // namespace

void write_plan(const std::filesystem::path& file, const SavedPlan& plan) {
  Json json = {{"forge_plan", version},
               {"created", plan.created},
               {"command", plan.command},
               {"device", plan.device},
               {"threads", plan.threads},
               {"continue", plan.continue_run},
               {"runs", Json::array()}};
  for (const SavedRun& run : plan.runs) json["runs"].push_back(to_json(run));
  write_file_atomic(file, json_text(json, 1) + "\n");
}

SavedPlan read_plan(const std::filesystem::path& file) {
  const std::string hint = "'forge run CONFIG… --save-plan FILE' writes one";
  try {
    const Json json = try_parse_json(read_file(file));
    if (!json.is_object() || !json.contains("forge_plan"))
      throw Error("'" + file.string() + "' is no plan of runs", {}, hint);
    if (json.at("forge_plan") != version)
      throw Error("'" + file.string() + "' is a plan of version " +
                      json_text(json.at("forge_plan")) + ", this forge reads version " +
                      std::to_string(version),
                  {},
                  hint);
    return from_json(json);
  } catch (const Json::exception& error) {
    throw Error("'" + file.string() + "' is a damaged plan: " + error.what(), {}, hint);
  }
}

PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir) {
  const std::vector<IdentityDifference> found =
      differences(saved.identity, plan_run(inputs, runs_dir, false).record.identity);
  if (!found.empty()) {
    std::vector<std::string> texts;
    for (const IdentityDifference& difference : found)
      texts.push_back(difference.what + " was " + difference.left + " and is " + difference.right);
    throw Error(saved.label + ": the plan cannot be executed as it is: " + join(texts, "; "),
                {},
                "run where the plan was made, or make it anew with --save-plan");
  }
  return plan_under(saved.id, inputs, runs_dir);
}

}  // namespace forge::run
