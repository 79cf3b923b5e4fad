#include "core/run/plan.h"

#include <unistd.h>
#include <algorithm>
#include <charconv>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/own_hash.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/identity.h"
#include "core/run/moved_files.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/queue/owners.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"
#include "core/run/scorer.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

Identity identity_of(const RunInputs& inputs) {
  const worker::Environment& environment = inputs.backend.environment;
  Identity identity;
  identity.experiment = identity_config(inputs.experiment);
  identity.data_fingerprint = inputs.data_fingerprint;
  identity.tokenizer_fingerprint = inputs.tokenizer_fingerprint;
  identity.backend = inputs.backend.hello.backend;
  identity.device_type = environment.device_type;
  identity.threads = environment.device_type == "cpu" ? environment.threads : 0;
  identity.numerics_version = inputs.backend.hello.numerics_version;
  identity.initial_weights = inputs.initial_weights.hash;
  identity.program = inputs.program;
  return identity;
}

std::string with_suffix(const std::string& id, int number) {
  return number == 1 ? id : id + "-" + std::to_string(number);
}

/// The number of the run of this id that a folder of that name would be, 0 for another name.
int number_of(const std::string& id, const std::string& name) {
  if (name == id) return 1;
  if (!starts_with(name, id + "-")) return 0;
  constexpr int highest = 1'000'000'000;  // the next one is a number, too
  int number = 0;
  std::from_chars(name.data() + id.size() + 1, name.data() + name.size(), number);
  return number > 1 && number <= highest && name == with_suffix(id, number) ? number : 0;
}

/// Whether the name is taken: what cannot be looked at counts.
bool may_be_run(const RunFolder& folder) {
  try {
    return folder.is_linked() || folder.has_record();
  } catch (const Error&) {
    return true;
  }
}

/// The numbers of the runs of this id among the names: 1 for id, 2 for id-2, …, rising. There may
/// be gaps, where runs were removed.
std::vector<int> numbers_among(const std::vector<std::string>& names, const std::string& id) {
  std::vector<int> numbers;
  for (const std::string& name : names) {
    const int number = number_of(id, name);
    if (number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The names of what may be runs of this id.
std::vector<std::string> names_of_runs(const std::string& id, const fs::path& runs_dir) {
  std::vector<std::string> names;
  for (const fs::path& path : folder_entries(runs_dir)) {
    const std::string name = path.filename().string();
    if (number_of(id, name) > 0 && may_be_run(RunFolder(path))) names.push_back(name);
  }
  return names;
}

/// The record of a folder; none of a damaged one, which is said where it is planned. Throws Error
/// where it may be read the next moment.
std::optional<RunRecord> readable_record(const RunFolder& folder) {
  try {
    return folder.record();
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    return std::nullopt;
  }
}

/// Whether somebody put it beside the run that it is a copy of.
bool is_copy(const RunFolder& folder, const RunRecord& record) {
  return record.id != folder.id() && is_run_name(record.id) &&
         RunFolder(folder.path().parent_path() / record.id).has_record();
}

/// The newest of the `existing` runs of that id that is another user's whom this one may not read
/// from. None: "".
std::string closed_of(const std::string& id,
                      const std::vector<int>& existing,
                      const fs::path& runs_dir) {
  for (auto number = existing.rbegin(); number != existing.rend(); ++number) {
    const RunFolder folder(runs_dir / with_suffix(id, *number));
    if (is_closed_to_this_user(folder)) return folder.id();
  }
  return "";
}

/// Whether the folder holds a copy of another run, a run of another project, or of another config:
/// a/x and a_x have one name; or was renamed, or is another user's who lets this one not read it.
/// Projects have runs of their own, since each project's tables show its own runs. Throws Error for
/// one of another identity under the same key.
bool is_another(const RunFolder& folder, const RunRecord& planned) {
  if (folder.is_linked() || is_closed_to_this_user(folder)) return true;
  const std::optional<RunRecord> record = readable_record(folder);
  if (!record) return false;
  if (is_copy(folder, *record)) return true;
  require_identity(*record, planned.identity);
  return record->config != planned.config || record->key != planned.key ||
         !is_of_project(folder, *record, planned.workspace, planned.project);
}

/// Whether it is another user's, and not completed.
bool is_unfinished_of_other_user(const RunFolder& folder) {
  if (!queue::is_of_other_user(folder.path())) return false;
  try {
    return folder.state() != RunState::completed;
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    return true;  // it is damaged
  }
}

/// The number of the newest folder of the planned run among the `existing` ones of its id; 0: there
/// is none. What another user repeats, as one who may not read this user's run, is no reason to
/// train again what is completed here.
int own_number(const RunRecord& planned,
               const std::vector<int>& existing,
               const fs::path& runs_dir) {
  int unfinished = 0;
  for (auto number = existing.rbegin(); number != existing.rend(); ++number) {
    const RunFolder folder(runs_dir / with_suffix(planned.id, *number));
    if (is_another(folder, planned)) continue;
    if (!is_unfinished_of_other_user(folder)) return *number;
    if (unfinished == 0) unfinished = *number;
  }
  return unfinished;
}

/// The number of a new run. One below the highest stays free: a removed run may come back to it.
int new_number(const std::vector<int>& existing, const std::vector<int>& taken) {
  int highest = 0;
  for (const auto* numbers : {&existing, &taken})
    if (!numbers->empty()) highest = std::max(highest, numbers->back());
  return highest + 1;
}

/// The newest of the `existing` runs of that id whose project is gone from the planned run's
/// workspace: it may have been renamed since. None: "".
std::string orphan_of(const RunRecord& planned,
                      const std::string& id,
                      const std::vector<int>& existing,
                      const fs::path& runs_dir) {
  for (auto number = existing.rbegin(); number != existing.rend(); ++number) {
    const RunFolder folder(runs_dir / with_suffix(id, *number));
    if (folder.is_linked()) continue;
    try {
      const RunRecord record = folder.record();
      if (record.config == planned.config && record.project != planned.project &&
          record.workspace == planned.workspace &&
          !is_folder(fs::path(record.workspace) / record.project))
        return folder.id();
    } catch (const Error&) {
      continue;  // a damaged one is reported by lists
    }
  }
  return "";
}

Action action_for(const RunStatus& status) {
  switch (status.state) {
    case RunState::completed: return Action::cached;
    case RunState::running: return Action::running;
    case RunState::not_started: return Action::start;
    case RunState::queued: return status.attempt == 0 ? Action::start : Action::resume;
    case RunState::stopped:
    case RunState::failed: return Action::resume;
  }
  return Action::start;
}

/// Throws Error where the run cannot go on from its files, and its numbers cannot be shown.
void decide_by_files(PlannedRun& planned) {
  if (!planned.folder.has_record()) return;
  const RunStatus status = planned.folder.patient_status();
  planned.folder.require_undamaged(status);
  if (status.state == RunState::completed)
    planned.folder.config();  // it throws where it was changed
  planned.action = action_for(status);
  planned.attempt = status.attempt;
}

/// Decides what is left to do for the run. Damage of its files is the run's own: others go on.
void decide(PlannedRun& planned) {
  try {
    planned.problem.reset();
    decide_by_files(planned);
  } catch (const Error& problem) {
    if (problem.exit_code() == ExitCode::storage) throw;
    planned.action = Action::damaged;
    planned.problem = problem;
  }
}

/// The log interval is in no identity, and what a run says of training is a mean over it.
void require_log_interval(const PlannedRun& planned, const RunInputs& inputs) {
  const bool goes_on = planned.action == Action::start || planned.action == Action::resume ||
                       planned.action == Action::running;
  if (!goes_on || !planned.folder.has_record()) return;
  const Json::json_pointer key("/train/log_every");
  Json made;
  try {
    made = planned.folder.config();
  } catch (const Error&) {
    return;  // it is damaged, which is said where it is continued
  }
  if (!made.contains(key) || !inputs.experiment.contains(key)) return;
  const std::string before = json_text(made[key]), now = json_text(inputs.experiment[key]);
  if (before == now) return;
  throw Error("train.log_every " + now + " differs from that with which run '" + planned.record.id +
                  "' was made, " + before,
              "its train_loss is a mean over so many steps: --set train.log_every=" + before +
                  " goes on with the run, --force makes another one");
}

/// Throws Error for a config that no list, table or later run would read.
void require_readable(const nlohmann::json& experiment) {
  constexpr uintmax_t most = max_json_file_bytes / 2;  // run.json has more than the config in it
  const auto bytes = static_cast<uintmax_t>(json_text(experiment, 2).size());
  if (bytes <= most) return;
  throw Error("the config is too large: it has " + human_bytes(double(bytes)) +
                  " as JSON, at most " + human_bytes(double(most)) + " can be read again",
              "keep long texts and lists in files");
}

/// The run of these inputs, its id without a suffix.
RunRecord record_of(const RunInputs& inputs) {
  require_readable(inputs.experiment);
  RunRecord record;
  record.project = inputs.project;
  record.workspace = inputs.workspace;
  record.config = inputs.config;
  record.created = utc_timestamp();
  record.command = inputs.command;
  record.revision = inputs.revision;
  record.planned_seeds = inputs.planned_seeds;
  record.planned_claims = inputs.planned_claims;
  record.planned_tables = inputs.planned_tables;
  record.planned_config = inputs.planned_config;
  record.drawn_order = inputs.drawn_order;
  if (inputs.train_tokens.size() == 1) record.train_rows = inputs.train_tokens[0].rows;
  for (const worker::TokenSource& source : inputs.evaluation_tokens)
    record.evaluation_rows += source.rows;
  record.entropy_floor = inputs.evaluation_text.entropy_floor;
  record.repeated_sentences = inputs.evaluation_text.repeated_sentences;
  record.identity = identity_of(inputs);
  record.key = run_key(record.identity);
  record.id = run_id(record.config, record.key);
  if (!is_run_name(record.id)) {
    throw Error(
        "no run can be named after the config '" + tables::printable(record.config) + "'",
        "rename it: at most 180 bytes, no control characters, no '*' and '?', not beginning with "
        "'-', '.' or 'forge.sqlite'");
  }
  return record;
}

/// The request of the run. Device and threads are those that its identity was made of: on another
/// machine "auto" might be something else.
worker::Request make_request(const PlannedRun& planned, const RunInputs& inputs) {
  const worker::Environment& environment = inputs.backend.environment;
  worker::Request request;
  request.job = worker::Job::train;
  request.run_dir = fs::absolute(planned.folder.path()).string();
  request.identity = planned.record.key;
  request.experiment = inputs.experiment;
  request.train_tokens = inputs.train_tokens;
  request.evaluation_tokens = inputs.evaluation_tokens;
  request.validation_tokens = inputs.validation_tokens;
  request_answers(config::experiment_from_json(inputs.experiment), request);
  request.resume_from = inputs.continue_from.checkpoint.string();
  request.initial_weights = inputs.initial_weights.folder.string();
  request.initial_weights_hash = inputs.initial_weights.hash;
  request.device = inputs.device == "auto" ? environment.device_type : inputs.device;
  request.threads = environment.threads;
  return request;
}

void write_request(const RunFolder& folder, const worker::Request& request) {
  queue::write_own_files(folder.path(),
                         {{folder.request_file().filename(), worker::to_line(request) + "\n"}});
}

/// Throws Error where another config or project has got a run of that name since it was planned.
void require_own_run(const PlannedRun& planned) {
  if (!is_another(planned.folder, planned.record)) return;
  throw Error(
      "another config or project has just got a run of the name '" + planned.record.id + "'",
      "the same command again makes this one beside it",
      ExitCode::failed);
}

void write_config(const RunFolder& folder, const RunInputs& inputs) {
  write_file_atomic(folder.config_file(), json_text(inputs.experiment, 2) + "\n");
  write_file_atomic(folder.origin_file(), json_text(inputs.origins, 2) + "\n");
}

void write_record(const RunFolder& folder,
                  const PlannedRun& planned,
                  const RunInputs& inputs,
                  const worker::Request& request) {
  RunRecord record = planned.record;
  record.inputs_hash = inputs_hash(request);
  record.repeats = inputs.continue_from.repeats;
  write_file_atomic(folder.record_file(), json_text(to_json(record), 2) + "\n");
}

/// Throws Error where the run, which has a folder, does not go on from the run in `other`.
void require_continues(const RunFolder& run, const fs::path& other) {
  const fs::path checkpoint = continued_checkpoint(run);
  const fs::path continued = run_of_checkpoint(checkpoint);
  // A run that is not there any more is known by its name.
  if (is_same_path(continued, other) ||
      (!path_exists(continued) && continued.filename() == other.filename()))
    return;
  const std::string from =
      checkpoint.empty()
          ? "from its start"
          : "from step " + with_thousands(weights::checkpoint_step(checkpoint).value_or(0)) +
                " of run '" + tables::printable(continued.filename().string()) + "'";
  const RunStatus status = run.status();
  const bool waits = status.state == RunState::queued && status.attempt == 0;
  throw Error("run '" + run.id() + "' " + (waits ? "waits to begin " : "began ") + from +
                  ", and does not continue run '" + tables::printable(other.filename().string()) +
                  "'",
              (waits ? "'forge runs stop " + shell_quoted(run.id()) +
                           "' takes it out of the queue, and then it does; "
                     : std::string(status.state == RunState::completed
                                       ? "without --continue the command shows it; "
                                       : "without --continue the command goes on with it; ")) +
                  "--force makes another run, which does");
}

/// Plans a run that never began anew, from the checkpoint of these inputs.
void write_other_beginning(const PlannedRun& planned, const RunInputs& inputs) {
  const RunFolder& folder = planned.folder;
  const worker::Request request = make_request(planned, inputs);
  // Where this ends half-way, the run lacks losses, and none are another run's.
  fs::remove(folder.events_file());
  write_record(folder, planned, inputs, request);
  write_request(folder, request);
  write_config(folder, inputs);
  write_file_atomic(folder.events_file(), copied_events(inputs.continue_from));
}

bool write_new_folder(const PlannedRun& planned, const RunInputs& inputs) {
  require_runs_dir(planned.folder.path().parent_path());  // the data was prepared since it was made
  FolderWriter writer(planned.folder.path());
  const RunFolder folder(writer.path());
  write_config(folder, inputs);
  if (!inputs.tokenizer.empty()) {
    write_file_atomic(folder.tokenizer_file(), read_file(inputs.tokenizer));
  }
  const worker::Request request = make_request(planned, inputs);
  write_request(folder, request);
  if (!inputs.continue_from.checkpoint.empty()) {
    write_file_atomic(folder.events_file(), copied_events(inputs.continue_from));
  }
  write_record(folder, planned, inputs, request);
  try {
    writer.create();
    mark_needed(planned.folder);
    return true;
  } catch (const Error&) {
    // Another forge that planned the same run was faster: then the folder is as good as ours.
    if (planned.folder.has_record()) {
      require_own_run(planned);
      if (!inputs.continue_from.checkpoint.empty())
        require_continues(planned.folder, run_of_checkpoint(inputs.continue_from.checkpoint));
      return false;
    }
    if (!path_exists(planned.folder.path())) throw;
    throw Error("the run folder '" + planned.folder.path().string() + "' has no run.json",
                "restore the file, or move the folder away: the run then begins anew",
                ExitCode::failed);
  }
}

}  // namespace

const std::string& name_of(Action action) {
  static const std::string names[] = {"new", "resumes", "running", "cached", "damaged"};
  return names[static_cast<int>(action)];
}

PlannedRun plan_run(const RunInputs& inputs,
                    const fs::path& runs_dir,
                    bool force,
                    const std::vector<std::string>& taken) {
  RunRecord record = record_of(inputs);
  const std::string id = record.id;
  const std::vector<int> existing = numbers_among(names_of_runs(id, runs_dir), id);
  const int own = own_number(record, existing, runs_dir);
  int number = force ? 0 : own;
  if (number == 0) number = new_number(existing, numbers_among(taken, id));
  record.id = with_suffix(id, number);
  const RunFolder folder(runs_dir / record.id);
  PlannedRun planned{std::move(record), folder};
  decide(planned);
  require_log_interval(planned, inputs);
  if (planned.action == Action::start && !force) {
    planned.orphan = orphan_of(planned.record, id, existing, runs_dir);
    planned.closed = closed_of(id, existing, runs_dir);
  }
  return planned;
}

bool is_closed_to_this_user(const RunFolder& folder) {
  return queue::is_of_other_user(folder.path()) && queue::is_closed(folder.record_file(), R_OK);
}

RunFolder own_folder(RunRecord record, const fs::path& runs_dir) {
  record.id = run_id(record.config, record.key);
  const std::vector<int> existing = numbers_among(names_of_runs(record.id, runs_dir), record.id);
  const int own = own_number(record, existing, runs_dir);
  return RunFolder(runs_dir / with_suffix(record.id, own > 0 ? own : new_number(existing, {})));
}

RunFolder arriving_folder(RunRecord record, const fs::path& runs_dir) {
  record.id = run_id(record.config, record.key);
  const std::vector<int> existing = numbers_among(names_of_runs(record.id, runs_dir), record.id);
  for (const int number : existing) {
    const RunFolder folder(runs_dir / with_suffix(record.id, number));
    if (is_another(folder, record)) continue;
    const std::optional<RunRecord> here = readable_record(folder);
    if (here && here->created == record.created) return folder;
  }
  return RunFolder(runs_dir / with_suffix(record.id, new_number(existing, {})));
}

bool begins_from(const PlannedRun& planned, const RunFolder& other) {
  if (planned.action == Action::damaged) return false;
  if (!planned.folder.has_record()) return true;
  if (is_same_path(planned.folder.path(), other.path())) return false;
  if (planned.action == Action::start && planned.folder.state() == RunState::not_started)
    return true;
  require_continues(planned.folder, fs::absolute(other.path()));
  return false;
}

std::vector<IdentityDifference> changed_settings(const PlannedRun& planned,
                                                 const RunInputs& inputs) {
  const bool goes_on = planned.action == Action::start || planned.action == Action::resume ||
                       planned.action == Action::running;
  if (!goes_on || !planned.folder.has_record()) return {};
  Json before, now = inputs.experiment;
  try {
    before = read_request(planned.folder).experiment;
  } catch (const Error& problem) {
    if (problem.exit_code() == ExitCode::storage) throw;
    return {};  // it is damaged, and written anew
  }
  for (Json* config : {&before, &now})
    for (const Json::json_pointer& place : places_of_data(*config))
      if (config->contains(place)) (*config)[place] = "";
  return config_differences(before, now);
}

namespace {

/// A run that nobody has begun is of the plan of the command that asks for it last: nothing is
/// known of it. While it waits for another command, too, it is of the larger one.
void take_over_plan(const PlannedRun& planned) {
  const RunFolder& folder = planned.folder;
  const RunStatus status = folder.status();
  const bool waits = status.state == RunState::queued;
  if (status.attempt > 0 || !(waits || status.state == RunState::not_started)) return;
  const RunRecord before = folder.record();
  if (!before.imported.empty()) return;
  RunRecord record = before;
  const RunRecord& asked = planned.record;
  if (!waits || asked.planned_seeds.size() >= before.planned_seeds.size())
    record.planned_seeds = asked.planned_seeds;
  if (!waits) record.drawn_order = asked.drawn_order;  // else it keeps its place in the queue
  record.planned_claims = asked.planned_claims;
  record.planned_tables = asked.planned_tables;
  record.planned_config = asked.planned_config;
  if (to_json(record) != to_json(before))
    write_file_atomic(folder.record_file(), json_text(to_json(record), 2) + "\n");
}

/// Whether the run moved here with its runs folder, which lies in the workspace. Its request tells,
/// until another one is written.
bool has_moved_here(const RunFolder& folder, const std::string& workspace) {
  const std::string root = workspace_of(folder, folder.record()).root;
  return root != folder.record().workspace && is_same_path(root, workspace);
}

void update_run_folder(const PlannedRun& planned, const RunInputs& inputs) {
  // It is started as that user asked for it, with their paths.
  if (queue::is_queued_by_other_user(planned.folder.path().parent_path(), planned.folder.id()))
    return;
  if (planned.action == Action::running || planned.action == Action::damaged) return;
  const bool begins = planned.action == Action::start || planned.action == Action::resume;
  if (begins) planned.folder.require_own_files();
  if (begins && queue::closed_path(planned.folder)) return;  // who would queue it says so
  const auto remember = [&, is_moved = has_moved_here(planned.folder, inputs.workspace)] {
    remember_places(planned.folder, inputs.experiment, inputs.workspace, is_moved);
  };
  if (!begins) return remember();
  const bool has_other =
      planned.action == Action::start && !inputs.continue_from.checkpoint.empty();
  if (has_other && planned.folder.state() == RunState::not_started) {
    write_other_beginning(planned, inputs);
    remember();
  } else {
    // Another command has queued or begun it since.
    if (has_other)
      require_continues(planned.folder, run_of_checkpoint(inputs.continue_from.checkpoint));
    // A run that continues another one does so until it has a checkpoint of its own.
    RunInputs again = inputs;
    again.continue_from = {};
    again.continue_from.checkpoint = continued_checkpoint(planned.folder);
    require_own_beginning(planned.folder, again.continue_from.checkpoint);
    if (planned.action == Action::start) write_config(planned.folder, inputs);
    remember();  // before the request, which tells that the run was moved, is written
    write_request(planned.folder, make_request(planned, again));
    if (planned.action == Action::start) take_over_plan(planned);
  }
  mark_needed(planned.folder);
}

}  // namespace

bool write_run_folder(const PlannedRun& planned, const RunInputs& inputs) {
  if (!planned.folder.has_record()) return write_new_folder(planned, inputs);
  require_own_run(planned);
  try {
    update_run_folder(planned, inputs);
  } catch (const Error&) {
    if (path_exists(planned.folder.record_file())) throw;
    throw Error("run '" + planned.record.id + "' was removed while this command prepared it",
                "the same command again makes it anew; 'forge runs undo' brings back what 'forge "
                "runs rm' removed",
                ExitCode::failed);
  }
  return false;
}

namespace {

constexpr int plan_version = 1;

}  // namespace

template <class Visitor>
void fields(Visitor& visit, SavedRun& run) {
  visit.field("label", run.label);
  visit.field("project", run.project);
  visit.optional("workspace", run.workspace);
  visit.field("config", run.config);
  visit.field("id", run.id);
  visit.field("revision", run.revision);
  visit.field("identity", run.identity);
  visit.field("experiment", run.experiment);
  visit.field("origins", run.origins);
  visit.optional("planned_seeds", run.planned_seeds);
  visit.optional("planned_claims", run.planned_claims);
  visit.optional("planned_tables", run.planned_tables);
  visit.optional("planned_config", run.planned_config);
  visit.optional("drawn_order", run.drawn_order);
}

template <class Visitor>
void fields(Visitor& visit, SavedPlan& plan) {
  visit.field("created", plan.created);
  visit.field("command", plan.command);
  visit.field("device", plan.device);
  visit.field("threads", plan.threads);
  visit.field("continue", plan.continue_run);
  visit.field("runs", plan.runs);
}

void write_plan(const std::filesystem::path& file, const SavedPlan& plan) {
  Json json = worker::write_fields(plan);
  json["forge_plan"] = plan_version;
  json["hash"] = own_hash_mark();
  write_output_file(file, with_own_hash(json_text(json, 1) + "\n"));
}

SavedPlan read_plan(const std::filesystem::path& file) {
  const std::string hint = "'forge run CONFIG… --save-plan FILE' writes one";
  constexpr uintmax_t largest_plan = uintmax_t{256} << 20;  // of thousands of runs
  const Json json = read_json_file(file, largest_plan);
  if (!json.is_object() || !json.contains("forge_plan"))
    throw Error("'" + file.string() + "' is no plan of runs", hint);
  if (json.at("forge_plan") != plan_version)
    throw Error("'" + file.string() + "' is a plan of version " + json_text(json.at("forge_plan")) +
                    ", this forge reads version " + std::to_string(plan_version),
                hint);
  return worker::read_fields<SavedPlan>(json, "'" + file.string() + "'");
}

PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir) {
  PlannedRun planned{record_of(inputs), RunFolder(runs_dir / saved.id)};
  const std::vector<IdentityDifference> found =
      identity_differences(saved.identity, planned.record.identity);
  if (!found.empty()) {
    std::vector<std::string> texts;
    for (const IdentityDifference& difference : found)
      texts.push_back(difference.what + " was " + difference.left + " and is " + difference.right);
    throw Error(saved.label + ": the plan cannot be executed as it is: " + join(texts, "; "),
                "run where the plan was made, or make it anew with --save-plan");
  }
  const std::string own = planned.record.id;
  const std::string& id = saved.id;
  const bool has_suffix = id.size() > own.size() + 1 && starts_with(id, own + "-") &&
                          id.find_first_not_of("0123456789", own.size() + 1) == std::string::npos;
  if (id != own && !has_suffix)
    throw Error("the plan names the run '" + id + "', but its inputs make the run '" + own + "'");
  if (may_be_run(planned.folder) && is_another(planned.folder, planned.record))
    throw Error(saved.label + ": the plan calls its run '" + id +
                    "', and another config or project has got a run of that name since",
                "make the plan anew with --save-plan");
  planned.record.id = id;
  decide(planned);
  require_log_interval(planned, inputs);
  return planned;
}

}  // namespace forge::run
