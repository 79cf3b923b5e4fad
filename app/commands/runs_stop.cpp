#include <iostream>
#include <set>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/queue/dispatch.h"
#include "core/run/run_model.h"

namespace forge::app {
namespace {

struct Options {
  std::vector<std::string> names;
  bool all = false;
  bool now = false;
};

bool is_active(const run::RunFolder& folder, const std::filesystem::path& runs_dir) {
  return folder.state() == run::RunState::running || queue::is_queued(runs_dir, folder.id());
}

/// The runs that were named, or all that run or wait.
std::vector<run::RunFolder> chosen_runs(const Context& context, const Options& options) {
  if (options.all != options.names.empty())
    throw Error("name the runs to stop, or give --all for every one that runs or waits",
                {},
                "'forge status' lists them",
                ExitCode::usage);
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<run::RunFolder> folders;
  for (const std::string& name : options.names) folders.push_back(run::named_run(runs_dir, name));
  if (!options.all) return folders;
  for (const run::RunFolder& folder : run::list_runs(runs_dir)) {
    if (is_active(folder, runs_dir)) folders.push_back(folder);
  }
  return folders;
}

int stop(const Context& context, const Options& options) {
  const std::vector<run::RunFolder> folders = chosen_runs(context, options);
  if (folders.empty()) std::cout << "nothing runs and nothing waits\n";
  // First what waits: or else it would take the place of what stops.
  std::vector<std::string> ids;
  for (const run::RunFolder& folder : folders) ids.push_back(folder.id());
  const std::vector<std::string> withdrawn =
      ids.empty() ? ids : queue::withdraw(context.runs_dir(), ids);
  const std::set<std::string> waited(withdrawn.begin(), withdrawn.end());
  for (const run::RunFolder& folder : folders) {
    if (waited.count(folder.id()) > 0) {
      std::cout << folder.id() << ": waits no more\n";
      continue;
    }
    if (folder.state() != run::RunState::running) {
      std::cout << folder.id() << ": " << run::name_of(folder.state()) << ", does not run\n";
      continue;
    }
    folder.request_stop(options.now ? run::Stop::now : run::Stop::save);
    std::cout << folder.id()
              << (options.now ? ": stops now\n" : ": saves after this step and stops\n");
  }
  return 0;
}

}  // namespace

void add_runs_stop(const Command& runs, Program& program) {
  auto options = std::make_shared<Options>();
  const Command command = runs.add_subcommand(
      "stop", "Let runs save and stop, and take those that wait out of the queue");
  command.footer(
      "The command that started a run goes on from where it stopped.\n"
      "\n"
      "Examples:\n"
      "  forge runs stop train_llama-deb27d\n"
      "  forge runs stop --all");
  command.add_option("RUN", options->names, "Ids or beginnings of them, or folders")
      .type_name("RUN|DIR");
  command.add_flag("--all", options->all, "Every run that runs or waits");
  command.add_flag("--now",
                   options->now,
                   "Without saving: what came after the last checkpoint is "
                   "trained again");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return stop(c, *options); };
  });
}

}  // namespace forge::app
