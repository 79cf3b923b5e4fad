#include "app/run_choice.h"

#include <iostream>
#include <set>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/project/names.h"
#include "core/run/run_model.h"
#include "core/store/location.h"
#include "core/store/result_store.h"
#include "core/store/run_query.h"

namespace forge::app {
namespace {

/// Ids of the runs that a query selects, looked at anew.
std::vector<std::string> ids_like(const fs::path& runs_dir, const store::RunQuery& query) {
  std::vector<std::string> ids;
  if (!fs::exists(runs_dir)) return ids;
  store::ResultStore store(store::store_path(runs_dir));
  for (const std::string& warning : store.sync(runs_dir).warnings)
    std::cerr << "warning: " << warning << "\n";
  store::RunFilter filter;
  filter.archived = true;
  for (const store::RunSummary& run : store::select(store.runs(filter), query))
    ids.push_back(run.id);
  return ids;
}

std::vector<run::RunFolder> named(const fs::path& runs_dir, const std::vector<std::string>& names) {
  std::vector<run::RunFolder> folders;
  std::set<fs::path> seen;
  const auto add = [&](run::RunFolder folder) {
    if (seen.insert(folder.path()).second) folders.push_back(std::move(folder));
  };
  for (const std::string& name : names) {
    if (!project::is_pattern(name)) {
      add(run::named_run(runs_dir, name));
      continue;
    }
    store::RunQuery query;
    query.patterns = {name};
    const std::vector<std::string> ids = ids_like(runs_dir, query);
    if (ids.empty())
      throw Error("no run is like '" + name + "'", {}, "'forge runs --archived' lists them all");
    for (const std::string& id : ids) add(run::RunFolder(runs_dir / id));
  }
  return folders;
}

}  // namespace

void add_run_choice(const Command& command, RunChoice& choice) {
  command.add_option("RUN", choice.names, "Ids, beginnings of them, patterns, or folders")
      .type_name("RUN|DIR");
  command
      .add_option("--where",
                  choice.conditions,
                  "COLUMN=VALUE as for 'forge runs'; may be repeated: all must hold")
      .type_name("CONDITION")
      .repeated();
}

std::vector<run::RunFolder> chosen_runs(const Context& context, const RunChoice& choice) {
  if (choice.names.empty() && choice.conditions.empty()) {
    throw Error("name the runs, or say with --where which ones",
                {},
                "'forge runs' lists them",
                ExitCode::usage);
  }
  const fs::path runs_dir = context.runs_dir();
  std::vector<run::RunFolder> folders = named(runs_dir, choice.names);
  if (choice.conditions.empty()) return folders;
  store::RunQuery query;
  query.conditions = choice.conditions;
  const std::vector<std::string> ids = ids_like(runs_dir, query);
  if (choice.names.empty()) {
    for (const std::string& id : ids) folders.emplace_back(runs_dir / id);
    return folders;
  }
  const std::set<std::string> meets(ids.begin(), ids.end());
  std::vector<run::RunFolder> both;
  for (run::RunFolder& folder : folders) {
    if (meets.count(folder.id()) > 0) both.push_back(std::move(folder));
  }
  return both;
}

}  // namespace forge::app
