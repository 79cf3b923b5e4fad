#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "app/commands.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/queue/dispatch.h"
#include "core/run/local_launcher.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

struct SuperviseOptions {
  std::string run_dir;
  int lease = -1;
  std::string device;
};

/// What goes wrong with other runs is no reason to give up this one.
void try_to(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& problem) {
    std::cerr << problem.message() << "\n";  // in supervisor.log
  }
}

int supervise(const Context& context, const SuperviseOptions& options) {
  const run::RunFolder folder(std::filesystem::absolute(options.run_dir).lexically_normal());
  const std::filesystem::path runs_dir = folder.path().parent_path();
  const protocol::Request request = protocol::request_from_line(read_file(folder.request_file()));
  const auto backend = context.backend(config::experiment_from_json(request.experiment));
  const auto start_what_waits = [&] {
    try_to([&] { queue::dispatch(runs_dir, context.program()); });
  };
  run::SupervisorOptions supervision;
  if (const char* waits = std::getenv("FORGE_RETRY_WAITS"))
    supervision.retry_waits = run::retry_waits_from_text(waits);
  supervision.device = options.device;
  supervision.lease = options.lease;
  supervision.meanwhile = start_what_waits;
  supervision.at_end = [&](int exit_code) {
    const bool failed =
        exit_code != run::supervised_completed && exit_code != run::supervised_stopped;
    try_to([&] { queue::finish(runs_dir, folder.id(), failed); });
  };
  run::LocalLauncher launcher;
  const int exit_code = run::supervise(folder, *backend, launcher, supervision);
  if (options.lease >= 0) ::close(options.lease);  // for the next run, which may begin at once
  if (exit_code != run::supervised_storage) start_what_waits();
  return exit_code;
}

}  // namespace

void add_supervise(const Command& app, Program& program) {
  auto options = std::make_shared<SuperviseOptions>();
  // No group: `forge run` calls this, as a cluster's scheduler would; it is not in the help.
  const Command command =
      app.add_hidden_subcommand("supervise", "Run the worker of a run folder until it ends");
  command.add_option("run_dir", options->run_dir, "Run folder").required();
  command.add_option("--lease", options->lease, "Descriptor to be held while the run goes on");
  command.add_option("--device", options->device, "Instead of that of the run's request");
  command.callback([&program, options] {
    program.action = [options](const Context& context) { return supervise(context, *options); };
  });
}

}  // namespace forge::app
