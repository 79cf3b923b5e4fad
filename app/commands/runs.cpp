#include <unistd.h>

#include <iostream>

#include "app/commands.h"
#include "app/run_report.h"
#include "app/terminal.h"
#include "core/base/fs.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

int list_runs(const Context& context, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<store::RunSummary> runs;
  if (std::filesystem::exists(runs_dir)) {
    store::ResultStore store(store::store_path(runs_dir));
    for (const std::string& warning : store.sync(runs_dir).warnings)
      std::cerr << "warning: " << warning << "\n";
    runs = store.runs();
  }
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const store::RunSummary& run : runs) list.push_back(to_json(run));
    std::cout << list.dump(2) << "\n";
  } else if (runs.empty()) {
    std::cerr << "no runs in " << shown_path(runs_dir) << "; 'forge run CONFIG' makes one\n";
  } else {
    std::cout << result_table(runs, use_colour(STDOUT_FILENO));
  }
  return 0;
}

}  // namespace

void add_runs(CLI::App& app, Program& program) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("runs", "List runs, running ones too, newest first");
  command->add_flag("--json", *json, "As JSON");
  command->callback([&program, json] {
    program.action = [json](const Context& c) { return list_runs(c, *json); };
  });
}

}  // namespace forge::app
