#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "backends/backends.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/run/allowed_command.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/withdraw.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

struct SuperviseOptions {
  std::string dir;  ///< the run's folder, or with --queue a runs folder
  bool keeps_queue = false;
  int lease = -1;
  std::string device;
  int64_t stop_after = 0;
};

/// Runs an action for other runs; its failure must not end this run.
void try_to(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& problem) {
    std::cerr << as_error(problem).message() << "\n";  // in supervisor.log
  }
}

/// Supervises the run, with these leases of its devices. `has_held` becomes true when it held the
/// run's lock, and no more.
int supervise_run(const Context& context,
                  const SuperviseOptions& options,
                  const run::RunFolder& folder,
                  const std::vector<int>& leases,
                  const std::function<void(queue::IfLocked)>& dispatch_queue,
                  bool& has_held) {
  const std::filesystem::path runs_dir = folder.path().parent_path();
  const config::Experiment experiment =
      config::experiment_from_json(run::read_request(folder).experiment);
  run::require_allowed_command(folder.id(), folder.record().identity, experiment);
  const auto backend = context.backend(experiment);
  run::SupervisorOptions supervision;
  supervision.retry_waits = run::chosen_retry_waits();
  if (!options.device.empty()) supervision.devices = split(options.device, ',');
  supervision.stop_after = options.stop_after;
  supervision.leases = leases;
  supervision.forget_descriptions = [] { backends::forget_descriptions(user_cache_dir()); };
  supervision.periodic_task = [&] { dispatch_queue(queue::IfLocked::skip); };
  supervision.at_end = [&](int exit_code) {
    has_held = true;
    const bool failed =
        exit_code != run::supervised_completed && exit_code != run::supervised_stopped;
    try_to([&] { queue::finish_queued_run(runs_dir, folder.id(), failed); });
  };
  return run::supervise(folder, *backend, context.launcher(), supervision);
}

int supervise(const Context& context, const SuperviseOptions& options) {
  std::signal(SIGUSR1, SIG_IGN);  // a scheduler may send it to all of a job: the worker saves
  const std::filesystem::path path = std::filesystem::absolute(options.dir).lexically_normal();
  if (options.keeps_queue) {
    queue::keep_queue(path, context.program());
    return run::supervised_completed;
  }
  const run::RunFolder folder(path);
  // Of several devices the leases are one behind the other.
  const auto count = std::max<size_t>(1, split(options.device, ',').size());
  std::vector<int> leases;
  for (int i = 0; options.lease >= 0 && i < static_cast<int>(count); ++i)
    leases.push_back(options.lease + i);
  const auto dispatch_queue = [&](queue::IfLocked if_locked) {
    try_to([&] { queue::dispatch(folder.path().parent_path(), context.program(), if_locked); });
  };
  const auto hand_on = [&](int exit_code) {
    for (const int lease : leases) queue::release_lease(lease);  // for the next run
    const std::filesystem::path runs_dir = folder.path().parent_path();
    // Where no keeper can be started, or the queue cannot be read at this moment, this process is
    // the last one that can look after it.
    bool is_last = true;
    try_to([&] {
      const queue::DispatchResult done =
          queue::dispatch(runs_dir, context.program(), queue::IfLocked::wait);
      is_last = done.needs_keeper && done.keeper == 0;
    });
    if (is_last) try_to([&] { queue::keep_queue(runs_dir, context.program()); });
    return exit_code;
  };
  bool has_held = false;
  try {
    return hand_on(supervise_run(context, options, folder, leases, dispatch_queue, has_held));
  } catch (const Error& problem) {
    // Until a run's lock is taken its starter waits, and holds the queue: it goes on by itself.
    if (has_held) hand_on(static_cast<int>(problem.exit_code()));
    if (has_held || !may_pass(problem)) throw;
    std::cerr << describe(problem) << "\n";
    return run::supervised_refused;
  }
}

}  // namespace

void add_supervise(const Command& app) {
  // Hidden: 'forge run' calls this, as a cluster's scheduler would.
  const auto [command, options] = app.add_command("supervise", "", supervise);
  command.hidden();
  command.add_option("DIR", options.dir, "Run folder").required();
  command.add_flag("--queue", options.keeps_queue, "Start what waits in this runs folder's queue");
  command.add_option("--lease", options.lease, "Descriptor to keep open during the run");
  command.add_option("--device", options.device, "Device instead of the request's; or A,B,…");
  command.add_option("--stop-after", options.stop_after, "Step of a rung to stop at");
}

}  // namespace forge::app
