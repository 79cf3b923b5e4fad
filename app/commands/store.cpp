#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/run/runs_dir.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

int rebuild(const Context& context, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  const std::filesystem::path path = store::store_path(runs_dir);
  const store::SyncReport report = store::reindex(path, runs_dir);
  for (const std::string& warning : report.warnings) std::cerr << "warning: " << warning << "\n";
  if (json) {
    print_json(nlohmann::json{
        {"store", path.string()}, {"runs", report.added}, {"benchmarks", report.benchmarks}});
  } else {
    std::cout << "rebuilt " << shown_path(path) << " from " << report.added << " run folders and "
              << report.benchmarks << " benchmarks\n";
  }
  return 0;
}

}  // namespace

void add_store(const Command& app, Program& program) {
  const Command store =
      app.add_subcommand("store", "The index over the run folders").requires_subcommand();
  auto json = std::make_shared<bool>(false);
  const Command command =
      store.add_subcommand("reindex", "Build the index anew from the run folders");
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, json] {
    program.action = [json](const Context& c) { return rebuild(c, *json); };
  });
}

}  // namespace forge::app
