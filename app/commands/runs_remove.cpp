#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/run_choice.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/upkeep/trash.h"

namespace forge::app {
namespace {

std::string how_many(size_t runs) { return std::to_string(runs) + (runs == 1 ? " run" : " runs"); }

int64_t bytes_of(const upkeep::Removal& removal) {
  int64_t bytes = 0;
  for (const upkeep::RemovedRun& run : removal.runs) bytes += run.bytes;
  return bytes;
}

void print_runs(const upkeep::Removal& removal) {
  std::vector<std::vector<std::string>> lines;
  for (const upkeep::RemovedRun& run : removal.runs)
    lines.push_back({"  " + run.run, run.status, human_bytes(double(run.bytes))});
  std::cout << aligned(lines, {2});
}

int remove(const Context& context, const RunChoice& choice, bool json) {
  const std::vector<run::RunFolder> folders = chosen_runs(context, choice);
  if (folders.empty()) {
    std::cerr << "no run is like that: nothing was removed\n";
    if (json) std::cout << "null\n";
    return 0;
  }
  const upkeep::Removal removal =
      upkeep::remove_runs(context.runs_dir(), folders, context.command_line());
  if (json) {
    print_json(to_json(removal));
    return 0;
  }
  std::cout << "removed " << how_many(removal.runs.size()) << ", "
            << human_bytes(double(bytes_of(removal))) << "\n";
  print_runs(removal);
  std::cerr << "'forge runs undo' brings " << (folders.size() == 1 ? "it" : "them")
            << " back; 'forge gc' frees the space after 7 days\n";
  return 0;
}

int list_removed(const Context& context, bool json) {
  const std::vector<upkeep::Removal> removals = upkeep::list_removals(context.runs_dir());
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const upkeep::Removal& removal : removals) list.push_back(to_json(removal));
    print_json(list);
    return 0;
  }
  if (removals.empty()) std::cerr << "no removed run is there any more\n";
  for (const upkeep::Removal& removal : removals) {
    std::cout << removal.name << "  " << how_many(removal.runs.size()) << ", "
              << human_bytes(double(bytes_of(removal))) << "  " << removal.command << "\n";
    print_runs(removal);
  }
  return 0;
}

int undo(const Context& context, const std::string& name, bool json) {
  const upkeep::Removal removal = upkeep::undo_removal(context.runs_dir(), name);
  if (json) {
    print_json(to_json(removal));
    return 0;
  }
  std::cout << "brought back " << how_many(removal.runs.size()) << "\n";
  print_runs(removal);
  return 0;
}

}  // namespace

void add_runs_rm(const Command& runs, Program& program) {
  auto choice = std::make_shared<RunChoice>();
  auto json = std::make_shared<bool>(false);
  const Command command = runs.add_subcommand("rm", "Remove runs; 'forge runs undo' takes it back");
  command.footer(
      "Their folders move to .trash of the runs folder. Nothing is removed where one of them runs "
      "or\n"
      "waits in the queue.\n"
      "\n"
      "Examples:\n"
      "  forge runs rm train_llama-deb27d\n"
      "  forge runs rm --where status=failed\n"
      "  forge runs rm \"train_canon_*\" --where profile=quick --where tag=trial");
  add_run_choice(command, *choice);
  command.add_flag("--json", *json, "What was removed, as JSON");
  command.callback([&program, choice, json] {
    program.action = [choice, json](const Context& c) { return remove(c, *choice, *json); };
  });
}

void add_runs_undo(const Command& runs, Program& program) {
  auto name = std::make_shared<std::string>();
  auto list = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  const Command command = runs.add_subcommand("undo", "Bring removed runs back");
  command.footer(
      "Examples:\n"
      "  forge runs undo                       the last removal\n"
      "  forge runs undo --list                what can be brought back\n"
      "  forge runs undo 20261122T001500Z      an earlier one");
  command.add_option("removal", *name, "One of --list; without it the last").type_name("REMOVAL");
  command.add_flag("--list", *list, "Only list the removals, the last one first");
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, name, list, json] {
    program.action = [name, list, json](const Context& c) {
      return *list ? list_removed(c, *json) : undo(c, *name, *json);
    };
  });
}

}  // namespace forge::app
