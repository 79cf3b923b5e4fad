#include <iostream>

#include "app/commands.h"
#include "app/conduct.h"
#include "app/progress_line.h"
#include "app/run_choice.h"
#include "app/run_outcomes.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/parallel.h"
#include "core/config/json.h"
#include "core/queue/queue.h"
#include "core/run/local_launcher.h"
#include "core/run/renew.h"
#include "core/run/runs_dir.h"
#include "core/store/location.h"

namespace forge::app {
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
  const protocol::Request request = run::request_of(folder);
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  run::LocalLauncher launcher;
  const run::BackendInfo backend =
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
  run::renew_request(folder, request, data);
  const std::string checkpoint = folder.newest_checkpoint();
  const std::string from =
      checkpoint.empty()
          ? "from its beginning"
          : "from step " + std::to_string(std::stoll(fs::path(checkpoint).filename().string()));
  return {record.id,
          "going on " + from + " of " + std::to_string(experiment.train.max_steps),
          {record, folder, run::Action::resume},
          queue::demand_of(backend.environment, request.device, jobs, usable_cores())};
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
