#include "core/run/plan.h"

#include <utility>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/identity.h"
#include "core/run/inputs_hash.h"
#include "core/run/moved_files.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/numbered_runs.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"
#include "core/run/saved_plan.h"
#include "core/run/scorer.h"

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
  const NumberedRuns existing = numbered_runs(record.id, runs_dir);
  int number = own_number(record, existing);
  if (force || number == 0) number = new_number(existing, taken);
  record.id = existing.name_of(number);
  PlannedRun planned{std::move(record), existing.folder_of(number)};
  decide(planned);
  require_log_interval(planned, inputs);
  if (planned.action == Action::start && !force) {
    planned.orphan = orphan_of(planned.record, existing);
    planned.closed = closed_of(existing);
  }
  return planned;
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
  // It is started as that user, or that host, asked for it, with their paths.
  const fs::path runs_dir = planned.folder.path().parent_path();
  if (queue::is_queued_by_other_user(runs_dir, planned.folder.id()) ||
      queue::waits_elsewhere(runs_dir, planned.folder.id()))
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
  if (number_of(own, id) == 0)
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
