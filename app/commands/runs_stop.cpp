#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/commands.h"
#include "app/output.h"
#include "app/run_choice.h"
#include "core/base/error.h"
#include "core/queue/dispatch.h"
#include "core/run/run_model.h"

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
  folder.request_stop(now ? run::Stop::now : run::Stop::save);
  return now ? "stops now" : "saves after this step and stops";
}

int stop(const Context& context, const RunsStopOptions& options) {
  const std::vector<run::RunFolder> folders = runs_to_stop(context, options);
  // First what waits: or else it would take the place of what stops.
  std::vector<std::string> ids;
  for (const run::RunFolder& folder : folders) ids.push_back(folder.id());
  const std::vector<std::string> withdrawn =
      ids.empty() ? ids : queue::withdraw(context.runs_dir(), ids);
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

}  // namespace forge::app
