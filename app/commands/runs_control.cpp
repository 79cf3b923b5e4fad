#include <chrono>
#include <iostream>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/follow_runs.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/store/result_store.h"
#include "core/run/event_log.h"
#include "core/run/open_model.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"

namespace forge::app {
namespace {

struct RunsStopOptions {
  RunChoice choice;
  bool all = false;
  bool now = false;
  bool json = false;
};

bool is_active(const run::RunFolder& folder, const std::filesystem::path& runs_dir) {
  return folder.state() == run::RunState::running || queue::is_queued(runs_dir, folder.id());
}

/// The runs that were chosen, or all that run or wait.
std::vector<run::RunFolder> runs_to_stop(const Context& context, const RunsStopOptions& options) {
  const bool chosen = !options.choice.names.empty() || !options.choice.conditions.empty();
  if (options.all == chosen)
    throw Error("name the runs to stop, or give --all for every one that runs or waits",
                {},
                "'forge status' lists them",
                ExitCode::usage);
  if (chosen) return chosen_runs(context, options.choice);
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<run::RunFolder> folders;
  for (const run::RunFolder& folder : run::list_runs(runs_dir)) {
    if (is_active(folder, runs_dir)) folders.push_back(folder);
  }
  return folders;
}

/// Lets a run that is begun stop, and says what becomes of it.
std::string stop_begun(const run::RunFolder& folder, bool now) {
  if (folder.state() != run::RunState::running)
    return run::name_of(folder.state()) + ", does not run";
  folder.request_stop(now ? run::StopRequest::immediately : run::StopRequest::after_checkpoint);
  return now ? "stops now" : "saves after this step and stops";
}

int stop(const Context& context, const RunsStopOptions& options) {
  const std::vector<run::RunFolder> folders = runs_to_stop(context, options);
  // First what waits: or else it would take the place of what stops.
  std::vector<std::string> ids;
  for (const run::RunFolder& folder : folders) ids.push_back(folder.id());
  const std::vector<std::string> withdrawn =
      ids.empty() ? ids : queue::cancel_queued(context.runs_dir(), ids);
  const std::set<std::string> waited(withdrawn.begin(), withdrawn.end());
  nlohmann::json list = nlohmann::json::array();
  for (const run::RunFolder& folder : folders) {
    const std::string what =
        waited.count(folder.id()) > 0 ? "waits no more" : stop_begun(folder, options.now);
    list.push_back({{"run", folder.id()}, {"what", what}});
    if (!options.json) std::cout << folder.id() << ": " << what << "\n";
  }
  if (options.json) {
    print_json(list);
  } else if (folders.empty()) {
    std::cout << "nothing runs and nothing waits\n";
  }
  return 0;
}

}  // namespace

void add_runs_stop(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsStopOptions>();
  const Command command = runs.add_subcommand(
      "stop", "Let runs save and stop, and take those that wait out of the queue");
  command.footer(
      "The command that started a run goes on from where it stopped.\n"
      "\n"
      "Examples:\n"
      "  forge runs stop train_llama-deb27d\n"
      "  forge runs stop \"train_canon_*\"\n"
      "  forge runs stop --where status=running\n"
      "  forge runs stop --all");
  add_run_choice(command, options->choice);
  command.add_flag("--all", options->all, "Every run that runs or waits");
  command.add_flag("--now",
                   options->now,
                   "Without saving: what came after the last checkpoint is "
                   "trained again");
  command.add_flag("--json", options->json, "What becomes of each, as JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return stop(c, *options); };
  });
}

namespace {

struct RunsSaveOptions {
  std::string name;
  double wait_seconds = 120;
  bool json = false;
};

/// The worker that runs now, as it presented itself; nothing where it has not yet.
std::optional<worker::Hello> worker_of(const run::RunFolder& folder) {
  std::optional<worker::Hello> hello;
  for (const run::StoredEvent& stored : run::read_events(folder.events_file())) {
    if (stored.name == "attempt") hello.reset();
    if (stored.event && std::holds_alternative<worker::Hello>(*stored.event))
      hello = std::get<worker::Hello>(*stored.event);
  }
  return hello;
}

void require_running(const run::RunFolder& folder) {
  if (folder.state() == run::RunState::running) return;
  throw Error("run '" + folder.id() + "' does not run: it is " + run::name_of(folder.state()),
              {},
              "what it saved before is in " + shown_path(folder.checkpoints()),
              ExitCode::failed);
}

/// Waits, at most so many seconds, until the worker has said what it can.
void require_able(const run::RunFolder& folder, double seconds) {
  const double deadline = steady_seconds() + seconds;
  std::optional<worker::Hello> hello;
  while (true) {
    require_running(folder);
    hello = worker_of(folder);
    if (hello || steady_seconds() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!hello) {
    throw Error("the worker of run '" + folder.id() + "' has not said yet what it can do",
                {},
                "try again when it trains",
                ExitCode::failed);
  }
  if (hello->saves_on_request) return;
  throw Error("backend " + hello->backend + " does not say that it can save on request",
              {},
              "'forge runs stop' lets it save and stop; 'forge runs resume' goes on from there",
              ExitCode::failed);
}

/// The next checkpoint, or nothing where the run ends or the time is over before.
std::optional<worker::CheckpointSaved> wait_for_checkpoint(run::Follower& follower,
                                                           double seconds) {
  const double deadline = steady_seconds() + seconds;
  while (true) {
    const run::Update update = follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event && std::holds_alternative<worker::CheckpointSaved>(*stored.event))
        return std::get<worker::CheckpointSaved>(*stored.event);
    }
    if (update.over || steady_seconds() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int save(const Context& context, const RunsSaveOptions& options) {
  const run::RunFolder folder = run::find_run_by_name_or_path(context.runs_dir(), options.name);
  require_able(folder, options.wait_seconds);
  run::Follower follower(folder);
  follower.skip_to_end();
  folder.request_save();
  nlohmann::json json = {{"run", folder.id()}, {"saved", false}, {"step", nullptr}, {"path", ""}};
  const bool waits = options.wait_seconds > 0;
  const auto saved = waits ? wait_for_checkpoint(follower, options.wait_seconds) : std::nullopt;
  if (saved) {
    const std::string path = (folder.path() / saved->path).string();
    json.update({{"saved", true}, {"step", saved->step}, {"path", path}});
    if (!options.json) {
      std::cout << folder.id() << ": saved step " << saved->step << ", "
                << human_bytes(double(saved->bytes)) << " in " << shown_path(path) << "\n";
    }
  }
  if (options.json) print_json(json);
  if (saved || !waits) {
    if (!waits && !options.json) std::cout << folder.id() << ": saves after this step\n";
    return 0;
  }
  throw Error(
      "run '" + folder.id() + "' " +
          (folder.state() == run::RunState::running
               ? "was asked to save and has not within " + human_duration(options.wait_seconds)
               : "ended before it saved"),
      {},
      "'forge runs logs " + folder.id() + "' tells why",
      ExitCode::failed);
}

}  // namespace

void add_runs_save(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsSaveOptions>();
  const Command command =
      runs.add_subcommand("save", "Let a run save a checkpoint now and go on training");
  command.footer(
      "Waits until the checkpoint is written. It counts as one of the newest, of which\n"
      "train.keep_checkpoints are kept.\n"
      "\n"
      "Examples:\n"
      "  forge runs save train_llama-deb27d\n"
      "  forge runs save train_llama-deb27d --wait 0       only ask");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_option("--wait", options->wait_seconds, "At most so many seconds; 0: do not wait")
      .non_negative()
      .type_name("SECONDS")
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return save(c, *options); };
  });
}

namespace {

struct RunsResumeOptions {
  RunChoice choice;
  ConductOptions conduct;
  bool detach = false;
  bool json = false;
};

/// What is left to do for a run, with a request that holds here and now.
ToDo renewed(const Context& context, const run::RunFolder& folder, int jobs) {
  const run::RunRecord record = folder.record();
  const worker::Request request = run::read_request(folder);
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  worker::LocalLauncher launcher;
  const worker::BackendInfo backend =
      context.backend(experiment)->describe(launcher, request.device, request.threads);
  run::require_same_backend(record, backend);
  data::PreparedData data;
  {
    ProgressLine line("preparing data");
    data =
        data::prepare(experiment, user_cache_dir(), [&](double fraction, const std::string& phase) {
          line.show_phase(fraction, phase);
        });
  }
  run::refresh_request(folder, request, data);
  const std::string checkpoint = folder.newest_checkpoint();
  const std::string from =
      checkpoint.empty()
          ? "from its beginning"
          : "from step " + std::to_string(std::stoll(fs::path(checkpoint).filename().string()));
  return {record.id,
          "going on " + from + " of " + std::to_string(experiment.train.max_steps),
          {record, folder, run::Action::resume},
          queue::resource_request(backend.environment, request.device, jobs, usable_cores())};
}

/// Why there is nothing to go on with, "" where there is.
std::string obstacle(const Context& context, const run::RunFolder& folder) {
  std::error_code error;
  if (!fs::equivalent(folder.path().parent_path(), context.runs_dir(), error))
    return "lies in another folder of runs, which FORGE_RUNS_DIR can name";
  switch (folder.state()) {
    case run::RunState::completed: return "is completed";
    case run::RunState::running: return "is running already";
    default: break;
  }
  return queue::is_queued(context.runs_dir(), folder.id()) ? "waits in the queue already" : "";
}

int resume(const Context& context, const RunsResumeOptions& options) {
  const fs::path runs_dir = context.runs_dir();
  const std::vector<run::RunFolder> folders = chosen_runs(context, options.choice);
  std::vector<ToDo> runs;
  for (const run::RunFolder& folder : folders) {
    const std::string reason = obstacle(context, folder);
    if (reason.empty()) {
      runs.push_back(renewed(context, folder, options.conduct.jobs));
    } else {
      std::cerr << folder.id() << " " << reason << "\n";
    }
  }
  if (runs.empty()) {
    std::cerr << "nothing to go on with\n";
    if (options.json) std::cout << "[]\n";
    return 0;
  }
  run::make_runs_dir(runs_dir);
  store::ResultStore store(store::store_path(runs_dir));
  enqueue(context, runs, options.conduct);
  if (options.detach) return leave_in_queue(context, runs, options.json);
  return conduct_and_report(context, store, runs, options.json);
}

}  // namespace

void add_runs_resume(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsResumeOptions>();
  const Command command =
      runs.add_subcommand("resume", "Go on with runs that stopped or failed, from their folders");
  command.footer(
      "The command that began them, and the config as it is now, are not needed: a run goes on "
      "with\n"
      "what its folder says, from its newest whole checkpoint, to the same bits as if it had "
      "never\n"
      "stopped. Where backend, device, threads or data are not those of the run, it is refused.\n"
      "\n"
      "Examples:\n"
      "  forge runs resume train_llama-deb27d\n"
      "  forge runs resume --where status=stopped --detach\n"
      "  forge runs resume \"train_canon_*\" --where status=failed");
  add_run_choice(command, options->choice);
  command.add_option("--jobs", options->conduct.jobs, "So many of them at once")
      .positive()
      .type_name("N");
  command.add_option("--priority", options->conduct.priority, "Runs of a larger one begin first")
      .type_name("N")
      .capture_default();
  command.add_flag("--detach", options->detach, "Leave them to the queue");
  command.add_flag("--json", options->json, "Results as JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return resume(c, *options); };
  });
}

}  // namespace forge::app
