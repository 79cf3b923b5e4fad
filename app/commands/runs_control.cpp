#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/execute_runs.h"
#include "app/follow_runs.h"
#include "app/launch.h"
#include "app/run_wait.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/manage/run_edits.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/backend_support.h"
#include "core/run/event_log.h"
#include "core/run/moved_files.h"
#include "core/run/open_model.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/queue.h"
#include "core/run/queue/withdraw.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/launcher.h"

namespace forge::app {
namespace {

struct RunsStopOptions {
  RunSelector runs;
  bool all = false;
  bool now = false;
  bool json = false;
};

bool is_active(const run::RunFolder& folder, const std::filesystem::path& runs_dir) {
  return folder.state() == run::RunState::running || queue::is_queued(runs_dir, folder.id());
}

std::string left_text(const std::string& owner) {
  return "left to its owner, " + tables::printable(owner);
}

/// The user who alone can stop a run, or take it out of the queue; "": this one can.
std::string who_alone_stops(const run::RunFolder& folder, const std::filesystem::path& runs_dir) {
  const std::optional<queue::ClosedPath> closed = queue::closed_path(folder);
  const bool can = !closed || (folder.is_running() ? run::can_write(folder.path())
                                                   : queue::is_own_entry(runs_dir, folder.id()));
  return can || closed->is_own ? "" : closed->owner;
}

/// The selected runs, or with --all every active and queued one that this user may stop.
std::vector<run::RunFolder> runs_to_stop(const Context& context, const RunsStopOptions& options) {
  if (options.all != options.runs.empty())
    throw Error("name the runs to stop, or use --all for every active and queued run",
                "'forge status' lists them");
  if (!options.all) return selected_runs(context, options.runs);
  if (context.names_project())
    throw Error(
        "--all stops the runs of all projects, and -p names one",
        "a pattern stops those of one: 'forge" + context.project_option() + " runs stop \"*\"'");
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<run::RunFolder> folders;
  for (const run::RunFolder& folder : run::list_runs(runs_dir)) {
    if (!is_active(folder, runs_dir)) continue;
    const std::string owner = who_alone_stops(folder, runs_dir);
    if (owner.empty()) {
      folders.push_back(folder);
    } else {
      std::cerr << "note: " << tables::printable(folder.id()) << ": " << left_text(owner) << "\n";
    }
  }
  return folders;
}

/// Which runs were asked to stop, and why others could not be.
struct AskedToStop {
  std::set<fs::path> asked;
  std::map<fs::path, std::string> problems;
};

/// Asks the active ones to stop. One that cannot be asked, as another user's, hinders no other.
void stop_active(const std::vector<run::RunFolder>& folders,
                 const RunsStopOptions& options,
                 AskedToStop& stop) {
  const run::StopRequest how =
      options.now ? run::StopRequest::immediately : run::StopRequest::after_checkpoint;
  const bool is_all = options.all || options.runs.names == std::vector<std::string>{"*"};
  for (const run::RunFolder& folder : folders) {
    if (stop.asked.count(folder.path()) > 0 || !folder.is_running()) continue;
    try {
      folder.request_stop(how, is_all);
      stop.asked.insert(folder.path());
    } catch (const Error& problem) {
      stop.problems[folder.path()] = problem.message();
    }
  }
}

/// Takes those that wait out of the queue of the runs folder that they lie in, and returns their
/// folders. A folder that was named by its path may have the id of another run here.
std::set<fs::path> withdraw(const std::vector<run::RunFolder>& folders) {
  std::map<fs::path, std::vector<std::string>> ids;  // by runs folder
  for (const run::RunFolder& folder : folders)
    ids[folder.path().parent_path()].push_back(folder.id());
  std::set<fs::path> withdrawn;
  for (const auto& [runs_dir, here] : ids) {
    if (!path_exists(queue::queue_folder(runs_dir))) continue;
    queue::Queue queue(runs_dir);
    for (const std::string& id : queue::cancel_queued(queue, here)) withdrawn.insert(runs_dir / id);
  }
  return withdrawn;
}

/// Of a run that was neither asked to stop nor taken out of the queue.
std::string idle_text(const run::RunFolder& folder) {
  const std::string owner = who_alone_stops(folder, folder.path().parent_path());
  if (!owner.empty()) return left_text(owner);
  const run::RunState state = folder.state();
  return run::name_of(state) +
         (state == run::RunState::not_started ? ", not queued" : ", not running");
}

int stop(const Context& context, const RunsStopOptions& options) {
  const std::vector<run::RunFolder> folders = runs_to_stop(context, options);
  const std::string stopping = options.now ? "stopping now" : "stopping after saving a checkpoint";
  // Active ones first: the queue may be locked for a while. And those that were started meanwhile.
  AskedToStop active;
  stop_active(folders, options, active);
  const std::set<fs::path> withdrawn = withdraw(folders);
  stop_active(folders, options, active);
  const std::set<fs::path>& asked = active.asked;
  nlohmann::json list = nlohmann::json::array();
  ExitCode exit_code = ExitCode::done;
  for (const run::RunFolder& folder : folders) {
    std::string what = asked.count(folder.path()) > 0       ? stopping
                       : withdrawn.count(folder.path()) > 0 ? "removed from the queue"
                                                            : idle_text(folder);
    const auto problem = active.problems.find(folder.path());
    if (problem != active.problems.end() && asked.count(folder.path()) == 0) {
      what = "not asked to stop: " + problem->second;
      exit_code = ExitCode::failed;
    }
    if (asked.count(folder.path()) > 0) {
      const run::StoppedProcesses stopped = folder.stopped_processes();
      if (stopped.supervisor != 0) {
        what = "asked to stop, but " + stopped.text();
        exit_code = ExitCode::failed;
      } else if (!options.now && !stopped.text().empty()) {
        // Its supervisor takes it for hung after a while.
        std::cerr << "note: " << tables::printable(folder.id()) << ": " << stopped.text() << "\n";
      }
    }
    list.push_back({{"run", folder.id()}, {"what", what}});
    if (!options.json) std::cout << tables::printable(folder.id()) << ": " << what << "\n";
  }
  if (options.json) {
    print_json(list);
    return static_cast<int>(exit_code);
  }
  if (!asked.empty() && !options.now)
    std::cerr << "note: 'forge runs stop --now' does not wait for a worker that does not stop\n";
  if (folders.empty()) {
    std::cout << "no active or queued runs\n";
  }
  return static_cast<int>(exit_code);
}

void add_runs_stop(const Command& runs) {
  const auto [command, options] =
      runs.add_command("stop", "Save and stop runs, and remove queued ones", stop);
  command.details("The command that started a run continues it, and so does 'forge runs resume'.")
      .examples(
          "forge runs stop train_llama-deb27d\n"
          "forge runs stop \"train_canon_*\"\n"
          "forge runs stop --where status=running\n"
          "forge runs stop --all")
      .see_also("forge runs resume, forge status");
  add_run_selector(command, options.runs);
  command.add_flag("--all", options.all, "Stop every active and queued run");
  command.add_flag("--now", options.now, "Do not save: training since the last checkpoint is lost");
  add_json_option(command, options.json);
}

struct RunsSaveOptions {
  std::string name;
  double wait_seconds = 120;
  bool json = false;
};

/// The active worker's description of itself; nullopt before it has sent one.
std::optional<worker::Hello> active_worker(const run::RunFolder& folder) {
  std::optional<worker::Hello> hello;
  run::for_each_event(folder.events_file(), [&](const run::StoredEvent& stored) {
    if (stored.name == "attempt") hello.reset();
    if (stored.event && std::holds_alternative<worker::Hello>(*stored.event))
      hello = std::get<worker::Hello>(*stored.event);
  });
  return hello;
}

void require_running(const run::RunFolder& folder) {
  if (folder.state() == run::RunState::running) return;
  throw Error("run '" + folder.id() + "' is not running: it is " + run::name_of(folder.state()),
              "its checkpoints are in " + shown_path(folder.checkpoints()),
              ExitCode::failed);
}

/// Waits until the worker has described itself, and throws Error where it cannot save on request.
void require_saving(const run::RunFolder& folder, double seconds) {
  const double deadline = steady_seconds() + seconds;
  std::optional<worker::Hello> hello;
  RunWait wait(folder, "the worker of run '" + folder.id() + "' to start");
  while (true) {
    wait.tell();
    require_running(folder);
    hello = active_worker(folder);
    if (hello || steady_seconds() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!hello) {
    throw Error("the worker of run '" + folder.id() + "' has not started yet",
                "try again when it trains",
                ExitCode::failed);
  }
  if (hello->saves_on_request) return;
  throw Error("backend " + hello->backend + " cannot save on request",
              "'forge runs stop' saves and stops; 'forge runs resume' continues",
              ExitCode::failed);
}

/// The next checkpoint; nullopt where the run ends or the time is up before.
std::optional<worker::CheckpointSaved> wait_for_checkpoint(const run::RunFolder& folder,
                                                           run::Follower& follower,
                                                           double seconds) {
  const double deadline = steady_seconds() + seconds;
  RunWait wait(folder, "run '" + folder.id() + "' to save a checkpoint");
  while (true) {
    wait.tell();
    const run::Update update = follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event && std::holds_alternative<worker::CheckpointSaved>(*stored.event))
        return std::get<worker::CheckpointSaved>(*stored.event);
    }
    if (update.over || steady_seconds() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int save_checkpoint(const Context& context, const RunsSaveOptions& options) {
  const run::RunFolder folder = context.find_run(options.name);
  require_saving(folder, options.wait_seconds);
  run::Follower follower(folder);
  follower.skip_to_end();
  folder.request_save();
  nlohmann::json json = {{"run", folder.id()}, {"saved", false}, {"step", nullptr}, {"path", ""}};
  const bool waits = options.wait_seconds > 0;
  const auto saved =
      waits ? wait_for_checkpoint(folder, follower, options.wait_seconds) : std::nullopt;
  if (saved) {
    const std::string path = (folder.path() / saved->path).string();
    json.update({{"saved", true}, {"step", saved->step}, {"path", path}});
    if (!options.json) {
      std::cout << tables::printable(folder.id()) << ": saved step " << saved->step << ", "
                << human_bytes(double(saved->bytes)) << " in " << shown_path(path) << "\n";
    }
  }
  if (options.json) print_json(json);
  if (saved || !waits) {
    if (!waits && !options.json)
      std::cout << tables::printable(folder.id()) << ": save requested\n";
    return 0;
  }
  throw Error("run '" + folder.id() + "' " +
                  (folder.state() == run::RunState::running
                       ? "has not saved within " + human_duration(options.wait_seconds)
                       : "ended before it saved"),
              quoted_command("forge runs logs " + shell_quoted(folder.id())) + " shows why",
              ExitCode::failed);
}

void add_runs_save(const Command& runs) {
  const auto [command, options] =
      runs.add_command("save", "Save a checkpoint of an active run now", save_checkpoint);
  command.details("Waits until the checkpoint is written. It counts toward train.keep_checkpoints.")
      .examples(
          "forge runs save train_llama-deb27d\n"
          "forge runs save train_llama-deb27d --wait 0       request it and return")
      .see_also("forge runs stop");
  add_run_argument(command, options.name);
  command
      .add_option(
          "--wait <SECONDS>", options.wait_seconds, "Maximum seconds to wait; 0 does not wait")
      .at_least(0)
      .show_default();
  add_json_option(command, options.json);
}

struct RunsResumeOptions {
  RunSelector runs;
  QueueOptions queue;
  bool json = false;
};

/// The record of the run that a folder goes on as. A copy by hand, or a renamed folder, is a run of
/// its own name: its record has that of the run that it was.
run::RunRecord record_of(const run::RunFolder& folder) {
  run::RunRecord record = folder.record();
  record.id = folder.id();
  return record;
}

/// A stopped run, with its request updated for this machine.
PendingRun prepare_resume(const Context& context, const run::RunFolder& folder, int jobs) {
  const run::RunRecord record = record_of(folder);
  worker::Request request = run::read_request(folder);
  request.experiment = context.find_files(request.experiment,
                                          record.workspace,
                                          record.project,
                                          run::moved_workspace(folder, record, request.run_dir));
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  context.require_allowed_command(record.id, record.identity, experiment);
  run::require_same_program(record, experiment);
  const worker::BackendInfo& backend =
      context.describe_backend(experiment, request.device, request.threads);
  run::require_same_backend(record, backend);
  const int processes = experiment.parallel.processes.count;
  run::require_processes(experiment, {}, backend);
  const run::Identity& identity = record.identity;
  const data::PreparedData data =
      data::prepare(experiment,
                    user_cache_dir(),
                    ProgressLine("preparing data").phase_reporter(),
                    false,
                    {identity.data_fingerprint, identity.tokenizer_fingerprint});
  print_new_warnings(data.warnings);
  const std::string workspace = context.workspace_with(record.project);
  if (!workspace.empty())
    context.workspace_id(workspace);  // it is given one, which the run records
  run::refresh_request(folder, request, data, workspace);
  // As the supervisor will: an unrecorded checkpoint after a crash is trained again.
  const run::FoundCheckpoint found = folder.find_checkpoint();
  print_warnings(texts_of(found.damaged,
                          [&](const std::string& problem) { return record.id + ": " + problem; }));
  const int attempt = folder.status().attempt;
  const bool is_gap = attempt > 0 && !found.recorded && found.damaged.empty();
  const std::string checkpoint =
      is_gap || found.folder.empty() ? request.resume_from : found.folder;
  const std::string from =
      checkpoint.empty() ? "from the start"
                         : "from step " + std::to_string(*weights::checkpoint_step(checkpoint));
  return {record.id,
          "resuming " + from + " of " + std::to_string(experiment.train.max_steps),
          {record, folder, run::Action::resume, attempt},
          queue::resource_request(
              backend.environment, request.device, jobs, usable_cores(), processes)};
}

/// A run that is active. It is asked for again where it stops before its end, as another user's
/// search may stop it.
PendingRun active_run(const Context& context, const run::RunFolder& folder, int jobs) {
  const run::RunRecord record = record_of(folder);
  PendingRun run{folder.id(), "", {record, folder, run::Action::running}, {}};
  try {
    const worker::Request request = run::read_request(folder);
    const config::Experiment experiment = config::experiment_from_json(request.experiment);
    context.require_allowed_command(record.id, record.identity, experiment);
    const worker::BackendInfo& backend =
        context.describe_backend(experiment, request.device, request.threads);
    run.demand = queue::resource_request(backend.environment,
                                         request.device,
                                         jobs,
                                         usable_cores(),
                                         experiment.parallel.processes.count);
  } catch (const Error& problem) {
    std::cerr << "note: " << tables::printable(folder.id())
              << " is only followed: " << tables::printable(problem.message()) << "\n";
    if (!problem.hint().empty()) std::cerr << "hint: " << problem.hint() << "\n";
  }
  return run;
}

/// A run whose files this user may not read and write.
PendingRun unprepared(const run::RunFolder& folder) {
  return {folder.id(), "", {record_of(folder), folder, run::Action::resume}, {}};
}

/// Why a run cannot be resumed, "" where it can.
std::string resume_problem(const Context& context, const run::RunFolder& folder) {
  std::error_code error;
  if (!fs::equivalent(folder.path().parent_path(), context.runs_dir(), error))
    throw Error(
        "run '" + folder.id() + "' is in another runs folder",
        "FORGE_RUNS_DIR=" + shell_quoted(folder.path().parent_path().string()) + " selects it",
        ExitCode::failed);
  if (!run::is_run_name(folder.id()))
    throw Error("'" + folder.id() + "' is no name of a run", "rename the folder", ExitCode::failed);
  const run::RunStatus status = folder.status();
  folder.require_undamaged(status);
  switch (status.state) {
    case run::RunState::completed: return "is completed";
    default: return "";  // one that runs or is queued is followed: so its queue is served
  }
}

/// None where nothing is to be done, which it says.
std::optional<PendingRun> pending_run(const Context& context,
                                      const run::RunFolder& folder,
                                      const QueueOptions& queue) {
  wait_until_stopped(folder);
  manage::require_not_removed(folder);
  const std::string reason = resume_problem(context, folder);
  if (!reason.empty()) {
    std::cerr << tables::printable(folder.id()) << " " << reason << "\n";
    return std::nullopt;
  }
  if (folder.is_running()) {
    std::cerr << tables::printable(folder.id()) << " is running already"
              << (queue.detach
                      ? ""
                      : ", following it (Ctrl-C leaves it to other commands that ask for it)")
              << "\n";
    return active_run(context, folder, queue.jobs);
  }
  if (queue::closed_path(folder)) return unprepared(folder);  // it fails alone
  const std::filesystem::path runs_dir = folder.path().parent_path();
  if (queue::is_queued_by_other_user(runs_dir, folder.id()) ||
      queue::waits_elsewhere(runs_dir, folder.id())) {
    // It is started as that user, or that host, asked for it, with their paths.
    PendingRun run = active_run(context, folder, queue.jobs);
    if (!run.demand.devices.empty()) run.planned.action = run::Action::resume;
    return run;
  }
  return prepare_resume(context, folder, queue.jobs);
}

int resume(const Context& context, const RunsResumeOptions& options) {
  allow_detaching();
  const std::vector<run::RunFolder> folders = selected_runs(context, options.runs);
  std::vector<PendingRun> runs;
  ExitCode worst = ExitCode::done;  // of those that cannot be resumed
  for (const run::RunFolder& folder : folders) {
    try {
      if (auto run = pending_run(context, folder, options.queue)) runs.push_back(std::move(*run));
    } catch (const Error& problem) {
      if (folders.size() == 1) throw;
      report_damaged(folder.id(), problem);
      const bool is_storage = problem.exit_code() == ExitCode::storage;
      worst = is_storage || worst == ExitCode::storage ? ExitCode::storage : ExitCode::failed;
    }
  }
  if (runs.empty() && worst != ExitCode::done) return static_cast<int>(worst);
  if (runs.empty()) {
    std::cerr << "nothing to resume\n";
    if (options.json) std::cout << "[]\n";
    return 0;
  }
  const ExecutedRuns executed = [&] {
    Interrupts interrupts;
    return execute_runs(context, runs, options.queue, interrupts, options.json);
  }();
  if (!executed.detached) print_results(context, executed.ended, options.json);
  const bool went_well = executed.exit_code == static_cast<int>(ExitCode::done);
  return went_well ? static_cast<int>(worst) : executed.exit_code;
}

void add_runs_resume(const Command& runs) {
  const auto [command, options] =
      runs.add_command("resume", "Resume stopped or failed runs", resume);
  command
      .details(
          "A run continues from its newest sound checkpoint with the config stored in its folder. "
          "Its losses are bit-equal to those of a run that never stopped. A run whose backend, "
          "device, threads or data have changed is refused.")
      .examples(
          "forge runs resume train_llama-deb27d\n"
          "forge runs resume --where status=stopped --detach\n"
          "forge runs resume \"train_canon_*\" --where status=failed")
      .see_also("forge run, forge runs stop");
  add_run_selector(command, options.runs);
  add_queue_options(command, options.queue);
  add_allow_command_option(command);
  add_json_option(command, options.json, "Print results as JSON");
}

}  // namespace

void add_runs_control(const Command& runs) {
  add_runs_stop(runs);
  add_runs_save(runs);
  add_runs_resume(runs);
}

}  // namespace forge::app
