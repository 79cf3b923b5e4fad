#include "app/prepare_runs.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>

#include "app/execute_runs.h"
#include "app/run_wait.h"
#include "app/runs.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/project/workspace_id.h"
#include "core/run/allowed_command.h"
#include "core/run/annotations.h"
#include "core/run/checkpoint_space.h"
#include "core/run/host.h"
#include "core/run/numbered_runs.h"
#include "core/run/open_model.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/queue.h"
#include "core/run/queue/withdraw.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

/// ", from the weights of RUN", "" where they are drawn.
std::string weights_text(const run::InitialWeights& weights) {
  if (weights.folder.empty()) return "";
  const std::filesystem::path run = run::run_of_checkpoint(weights.folder);
  return ", from the weights of " +
         (run.empty() ? shown_path(weights.folder) : tables::printable(run.filename().string()));
}

std::string start_text(const CheckedRun& run, const run::PlannedRun& planned) {
  const config::TrainConfig& train = run.resolved.experiment.train;
  const worker::Environment& environment = run.backend.environment;
  const int processes = run.resolved.experiment.parallel.processes.count;
  const std::string action = planned.action == run::Action::resume ? "resuming" : "starting";
  return action + ", profile " + run.resolved.experiment.profile + ": " +
         with_thousands(train.max_steps) + " steps of " + std::to_string(train.batch_size) + " × " +
         std::to_string(train.seq_len) + " tokens on " +
         run::device_text(environment.device_type, environment.device_name, environment.threads) +
         (processes > 1 ? ", " + std::to_string(processes) + " processes" : "") +
         (planned.action == run::Action::resume ? "" : weights_text(run.initial_weights));
}

/// Refuses a run whose checkpoints have no room, before anything begins.
void warn_of_space(const CheckedRun& checked, const run::PlannedRun& planned) {
  const std::string warning =
      run::check_checkpoint_space(planned.folder.path(), checked.resolved.experiment);
  if (!warning.empty()) std::cerr << "warning: " << checked.label << ": " << warning << "\n";
}

/// ", in the workspace 'W', which is not there now", and which may come back with that run.
std::string other_workspace_text(const run::PlannedRun& planned) {
  const run::RunRecord record = planned.folder.record();
  const auto relation = project::relation_of(
      {record.workspace, record.workspace_id}, planned.record.workspace, planned.record.project);
  std::error_code unreachable;
  const bool is_there = std::filesystem::exists(
      std::filesystem::path(record.workspace) / record.project, unreachable);
  if (is_there || !project::is_gone(relation)) return "";
  return ", in the workspace '" + tables::printable(record.workspace) + "', which is not there now";
}

/// Tables leave archived runs out, so that a command to make them would be printed for ever.
std::string completed_hint(const run::PlannedRun& planned) {
  const char* const again = " (--force runs it again)";
  try {
    if (!run::read_annotations(planned.folder).archived) return again;
  } catch (const Error& problem) {  // which other users' permissions may cause: the others go on
    return again + std::string("; whether it is archived cannot be read: ") +
           tables::printable(problem.message());
  }
  return " and archived ('forge runs archive --restore " + shell_quoted(planned.record.id) +
         "' shows it again, --force runs it again)";
}

/// Of a run that --force makes beside one which was left before its end.
void tell_left_behind(const CheckedRun& checked, const run::PlannedRun& planned) try {
  const run::RunFolder before =
      run::own_folder(planned.record, planned.folder.path().parent_path());
  if (!before.has_record() || before.state() != run::RunState::stopped) return;
  std::cerr << "note: " << checked.label << ": " << tables::printable(before.id())
            << " was left before its end; 'forge runs resume " << shell_quoted(before.id())
            << "' continues it, and --force makes another run\n";
} catch (const Error&) {
  // A damaged one cannot go on.
}

/// Of a run that is made though there may be the same one: another user's, whom this one may not
/// read from, or one of a project that was renamed, whose runs keep the name that it had; and of
/// one that was made in a workspace which is not there now.
void tell_others(const CheckedRun& checked, const run::PlannedRun& planned) {
  if (!planned.closed.empty())
    std::cerr << "note: " << checked.label << ": " << tables::printable(planned.closed)
              << " may be the same run, and its owner does not let you read it: "
              << tables::printable(planned.record.id) << " is a run of your own\n";
  if (planned.folder.has_record()) {
    const std::string elsewhere = other_workspace_text(planned);
    if (!elsewhere.empty())
      std::cerr << "note: " << checked.label << " goes on with "
                << tables::printable(planned.record.id) << elsewhere
                << " and may come back with it\n";
  }
  if (planned.orphan.empty()) return;
  const run::RunRecord record =
      run::RunFolder(planned.folder.path().parent_path() / planned.orphan).record();
  std::cerr << "note: " << checked.label << ": " << tables::printable(planned.orphan)
            << " is the same run of project '" << tables::printable(record.project)
            << "', whose folder is gone; where that is this project under its old name, give it "
               "that name again to go on with its runs\n";
}

/// A command that asks for a run which another one asked for sets what changes no number anew, but
/// not while it runs, nor where another user has queued it or it waits on another host.
void tell_changed_settings(const PreparedRun& prepared) {
  const run::PlannedRun& planned = prepared.planned;
  const std::filesystem::path& folder = planned.folder.path();
  const bool runs = planned.action == run::Action::running;
  const bool is_theirs = queue::is_queued_by_other_user(folder.parent_path(), planned.folder.id());
  const bool stays =
      runs || is_theirs || queue::waits_elsewhere(folder.parent_path(), planned.folder.id());
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  std::vector<std::string> texts;
  for (const run::IdentityDifference& each : run::changed_settings(planned, prepared.inputs))
    texts.push_back(stays
                        ? each.what + " stays " + shown(each.left) + " and does not become " +
                              shown(each.right)
                        : each.what + " was " + shown(each.left) + " and is " + shown(each.right));
  if (texts.empty()) return;
  const std::string how = !stays      ? " is there already, and is changed: "
                          : runs      ? " runs already, as it was asked for before: "
                          : is_theirs ? " is queued by another user, as they asked for it: "
                                      : " waits on another host, as it was asked for there: ";
  std::cerr << "note: " << tables::printable(planned.record.id) << how
            << tables::printable(join(texts, "; "))
            << (runs ? "; to change this, stop the run and give the command again" : "") << "\n";
}

/// A run that never began goes on from the run that another command named.
void tell_beginning(const CheckedRun& checked, const PreparedRun& prepared) {
  const run::RunFolder& folder = prepared.planned.folder;
  if (prepared.planned.action != run::Action::start || !folder.has_record()) return;
  if (!prepared.inputs.continue_from.checkpoint.empty()) return;
  const std::filesystem::path checkpoint = run::continued_checkpoint(folder);
  if (checkpoint.empty()) return;
  std::cerr << "note: " << checked.label << ": begins from " << continued_text(checkpoint)
            << ", as it was asked to before; --force makes another run, from the start\n";
}

/// Throws Error where what a config names, as `said`, is not what it was for an earlier round of
/// the command: a text that grows while rows are tuned would give each round runs of its own.
void require_unchanged(const std::string& what,
                       const nlohmann::json& said,
                       const std::string& now,
                       CommandSoFar& command) {
  const auto [before, is_new] = command.hashes.try_emplace(json_text(said), now);
  if (before->second == now) return;
  throw Error(what + " has changed since this command began: it was " +
                  before->second.substr(0, 12) + " and is " + now.substr(0, 12),
              "the same command makes all of its runs anew with what is there now",
              ExitCode::failed);
}

void require_unchanged(const PreparedRun& prepared, CommandSoFar& command) {
  const nlohmann::json& config = prepared.inputs.experiment;
  const auto values = [&](const std::vector<std::string>& keys) {
    nlohmann::json found;
    for (const std::string& key : keys) {
      const nlohmann::json* const value = find_value(config, key);
      found.push_back(value ? *value : nlohmann::json());
    }
    return found;
  };
  const std::string name = "config '" + tables::printable(prepared.inputs.config) + "'";
  require_unchanged("the text that " + name + " is trained on",
                    values({"data",
                            "tokenizer",
                            "model.vocab_size",
                            "train.seq_len",
                            "train.document_mask",
                            "train.eval_rows",
                            "train.validation_rows",
                            "train.max_steps",
                            "train.batch_size"}),
                    prepared.inputs.data_fingerprint,
                    command);
  require_unchanged("the program that trains " + name,
                    values({"external.command", "external.working_directory"}),
                    prepared.inputs.program,
                    command);
}

enum class Written { made, updated, gone };

/// `gone`: another command has removed the run since it was found, as one that is interrupted does
/// with those that it made and nobody has begun.
Written write_folder(const PreparedRun& prepared) {
  const bool was_there = prepared.planned.folder.has_record();
  try {
    const bool is_new = run::write_run_folder(prepared.planned, prepared.inputs);
    return is_new ? Written::made : Written::updated;
  } catch (const Error&) {
    if (!was_there || path_exists(prepared.planned.folder.record_file())) throw;
    run::require_runs_dir(prepared.planned.folder.path().parent_path());
    return Written::gone;
  }
}

/// Writes the run's folder, unless nothing is left to do.
PendingRun prepare(const Context& context,
                   const CheckedRun& checked,
                   const LaunchOptions& launch,
                   const QueueOptions& queue,
                   CommandSoFar& command,
                   const Interrupts& interrupts) {
  PreparedRun prepared = prepare_run(context, checked, launch);
  // An attempt that ends is not followed: the command continues the run.
  if (prepared.planned.action == run::Action::running &&
      wait_until_stopped(prepared.planned.folder, &interrupts))
    prepared = prepare_run(context, checked, launch);
  require_unchanged(prepared, command);
  prepared.planned.record.workspace_id = context.workspace_id(prepared.planned.record.workspace);
  PendingRun run{checked.label, "", prepared.planned, {}};
  run.place = checked.place;
  // The config is this user's own, and with it the program that it names.
  run::allow_command(prepared.planned.record.identity, checked.resolved.experiment);
  const auto prepare_again = [&] {
    return prepare(context, checked, launch, queue, command, interrupts);
  };
  switch (prepared.planned.action) {
    case run::Action::cached:
      if (write_folder(prepared) == Written::gone) return prepare_again();
      break;
    case run::Action::damaged: break;  // it is reported and not run
    case run::Action::running:
      std::cerr << checked.label << ": already running"
                << (queue.detach
                        ? ""
                        : ", following it (Ctrl-C leaves it to other commands that ask for it)")
                << "\n";
      tell_changed_settings(prepared);
      run.demand = demand_of(checked, launch, queue);  // it may be stopped before it is asked for
      break;
    case run::Action::start:
    case run::Action::resume:
      tell_others(checked, prepared.planned);
      if (launch.force) tell_left_behind(checked, prepared.planned);
      tell_changed_settings(prepared);
      tell_beginning(checked, prepared);
      run.what = start_text(checked, prepared.planned);
      run.demand = demand_of(checked, launch, queue);
      warn_of_space(checked, prepared.planned);
      const Written written = write_folder(prepared);
      // Another command may have been faster and have made the run of that number.
      const bool is_another = written == Written::updated && launch.force;
      if (written == Written::gone || is_another) return prepare_again();
      if (written == Written::made) run.made = queue::request_stamp(prepared.planned.folder);
  }
  return run;
}

}  // namespace

bool CommandSoFar::has_made(const std::string& run) const {
  return std::find(ended.begin(), ended.end(), run) != ended.end();
}

queue::ResourceRequest demand_of(const CheckedRun& checked,
                                 const LaunchOptions& launch,
                                 const QueueOptions& queue) {
  return queue::resource_request(checked.backend.environment,
                                 launch.device,
                                 queue.jobs,
                                 usable_cores(),
                                 checked.resolved.experiment.parallel.processes.count);
}

PreparedRuns prepare_all(const Context& context,
                         const std::vector<CheckedRun>& selected,
                         const LaunchOptions& launch,
                         const QueueOptions& queue,
                         CommandSoFar& command,
                         const Interrupts& interrupts) {
  PreparedRuns prepared;
  LaunchOptions unforced = launch;
  unforced.force = false;
  LateProgress progress("preparing runs");
  size_t done = 0;
  try {
    for (const CheckedRun& checked : selected) {
      if (interrupts.count() > 0) break;
      progress(done++, selected.size());
      // Where nothing is made yet, nothing has to be looked for.
      const bool is_repeated =
          launch.force &&
          (command.ended.empty() ||
           !command.has_made(prepare_run(context, checked, unforced).planned.record.id));
      PendingRun run =
          prepare(context, checked, is_repeated ? launch : unforced, queue, command, interrupts);
      if (run.planned.action == run::Action::cached && !command.has_made(run.planned.record.id))
        std::cerr << run.label << ": already completed" << other_workspace_text(run.planned)
                  << completed_hint(run.planned) << "\n";
      if (run.planned.problem) {
        report_damaged(run.label, *run.planned.problem);
        prepared.some_are_damaged = true;
      } else {
        prepared.runs.push_back(std::move(run));
        prepared.checked.push_back(&checked);
      }
    }
  } catch (const Error&) {
    if (interrupts.count() == 0) {
      withdraw_unqueued(context, prepared.runs);
      throw;
    }
  }
  return prepared;
}

}  // namespace forge::app
