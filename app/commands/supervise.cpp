#include "app/commands.h"
#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/run/local_launcher.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

int supervise(const Context& context, const std::string& run_dir) {
  const run::RunFolder folder(std::filesystem::absolute(run_dir).lexically_normal());
  const protocol::Request request = protocol::request_from_line(read_file(folder.request_file()));
  const auto backend = context.backend(config::experiment_from_json(request.experiment));
  run::LocalLauncher launcher;
  return run::supervise(folder, *backend, launcher);
}

}  // namespace

void add_supervise(const Command& app, Program& program) {
  auto run_dir = std::make_shared<std::string>();
  // No group: `forge run` calls this, as a cluster's scheduler would; it is not in the help.
  const Command command =
      app.add_hidden_subcommand("supervise", "Run the worker of a run folder until it ends");
  command.add_option("run_dir", *run_dir, "Run folder").required();
  command.callback([&program, run_dir] {
    program.action = [run_dir](const Context& context) { return supervise(context, *run_dir); };
  });
}

}  // namespace forge::app
