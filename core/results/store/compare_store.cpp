#include "core/results/store/compare_store.h"

#include <poll.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/results/store/database.h"
#include "core/run/runs_dir.h"

namespace forge::store {
namespace {

std::map<std::string, RunSummary> runs_by_id(const ResultStore& store) {
  RunFilter all;
  all.archived = true;
  std::map<std::string, RunSummary> runs;
  for (RunSummary& run : store.runs(all)) {
    std::string id = run.id;
    runs.emplace(std::move(id), std::move(run));
  }
  return runs;
}

/// Adds the runs that a supervisor or a worker may change now.
void add_active(const fs::path& runs_dir, std::set<std::string>& active) {
  for (const run::RunFolder& folder : run::list_runs(runs_dir)) {
    const run::RunState state = folder.state();
    if (state == run::RunState::running || state == run::RunState::queued)
      active.insert(folder.id());
  }
}

/// A value of a column, short enough for a line.
std::string value_text(const nlohmann::json& value) {
  constexpr size_t most_bytes = 60;
  const std::string text = json_text(value);
  return text.size() <= most_bytes ? text : text.substr(0, most_bytes) + "…";
}

/// A number that is none has no place in the index but that of a missing one.
bool is_same_value(const nlohmann::json& a, const nlohmann::json& b) {
  const auto is_none = [](const nlohmann::json& value) {
    return value.is_null() || (value.is_number_float() && std::isnan(value.get<double>()));
  };
  return a == b || (is_none(a) && is_none(b));
}

void compare(const RunSummary& stored, const RunSummary& found, StoreComparison& comparison) {
  const nlohmann::json said = columns_of(stored), is = columns_of(found);
  for (const std::string& column : column_names()) {
    if (is_same_value(said.at(column), is.at(column))) continue;
    comparison.differences.push_back({stored.id,
                                      column + " is " + value_text(said.at(column)) +
                                          " and by the folder " + value_text(is.at(column))});
  }
}

/// What is wrong with a run's name, "" for nothing: it is found by the name of its folder, and
/// stands in tables under the config that its run.json names.
std::string wrong_name(const run::RunFolder& folder) {
  run::RunRecord record;
  try {
    record = folder.record();
  } catch (const Error&) {
    return "";  // removed meanwhile, or damaged, of which the stores tell
  }
  if (record.id != folder.id())
    return "the folder's name is not the run's, '" + tables::printable(record.id) + "'";
  if (run::names_its_config(record)) return "";
  return "its name is none of config '" + tables::printable(record.config) +
         "', which run.json names";
}

/// Other tables, each with the column that names what its rows are about, and with what they are.
struct Table {
  const char *name, *key, *what;
};
constexpr Table compared_tables[] = {
    {"problems", "run_id", "what is wrong with its files"},
    {"configs", "run_id", "the config"},
    {"environments", "run_id", "what it ran on"},
    {"train_metrics", "run_id", "the training metrics"},
    {"evaluations", "run_id", "the evaluations"},
    {"lost_evaluations", "run_id", "the evaluations of lost attempts"},
    {"lost_train_metrics", "run_id", "the training metrics of lost attempts"},
    {"scores", "run_id", "the scores"},
    {"benchmarks", "id", "the measurement"},
};

/// The keys of rows that only one of both databases has.
std::vector<std::string> differing_keys(SQLite::Database& database, const Table& table) {
  const std::string name = table.name;
  const auto only_in = [&](const std::string& one, const std::string& other) {
    return "SELECT * FROM (SELECT * FROM " + one + "." + name + " EXCEPT SELECT * FROM " + other +
           "." + name + ")";
  };
  SQLite::Statement statement(database,
                              std::string("SELECT DISTINCT ") + table.key + " FROM (" +
                                  only_in("main", "built") + " UNION ALL " +
                                  only_in("built", "main") + ") ORDER BY 1");
  std::vector<std::string> keys;
  while (statement.executeStep()) keys.push_back(statement.getColumn(0).getString());
  return keys;
}

void compare_tables(const fs::path& path,
                    const fs::path& built,
                    const std::set<std::string>& active,
                    const CountProgress& progress,
                    StoreComparison& comparison) {
  const std::unique_ptr<SQLite::Database> database = open_database(path);
  SQLite::Statement attach(*database, "ATTACH ? AS built");
  attach.bind(1, built.string());
  attach.exec();
  size_t done = 0;
  for (const Table& table : compared_tables) {
    if (progress) progress(done++, std::size(compared_tables));
    for (const std::string& key : differing_keys(*database, table)) {
      if (active.count(key) == 0)
        comparison.differences.push_back(
            {key, std::string(table.what) + ": not what the files say"});
    }
  }
}

}  // namespace

namespace {

/// At one moment, as far as the runs stand still.
StoreComparison compare_once(const fs::path& path,
                             const fs::path& runs_dir,
                             const SyncWatch& watch) {
  const ScratchFolder aside(fs::absolute(path).parent_path() /
                            (std::string(aside_prefix) + "compared-" + process_digits()));
  const fs::path built = aside.path() / "forge.sqlite";
  StoreComparison comparison;
  std::set<std::string> active;
  {
    ResultStore store(path), anew(built);
    add_active(runs_dir, active);
    store.sync(runs_dir, watch);
    comparison.warnings = anew.sync(runs_dir, watch).warnings;
    add_active(runs_dir, active);
    const std::map<std::string, RunSummary> stored = runs_by_id(store), found = runs_by_id(anew);
    for (const auto& [id, run] : found) {
      const auto known = stored.find(id);
      if (active.count(id) != 0) continue;
      ++comparison.compared;
      if (watch.progress) watch.progress(static_cast<size_t>(comparison.compared), found.size());
      if (known == stored.end()) {
        comparison.differences.push_back({id, "the store does not know it"});
      } else {
        compare(known->second, run, comparison);
      }
      const std::string wrong = wrong_name(run::RunFolder(runs_dir / id));
      if (!wrong.empty()) comparison.differences.push_back({id, wrong, true});
    }
    for (const auto& [id, run] : stored) {
      if (found.count(id) == 0 && active.count(id) == 0)
        comparison.differences.push_back({id, "there is no such run"});
    }
    comparison.active = static_cast<int64_t>(active.size());
  }
  with_store_errors(path, [&] { compare_tables(path, built, active, watch.progress, comparison); });
  std::stable_sort(
      comparison.differences.begin(),
      comparison.differences.end(),
      [](const StoreDifference& a, const StoreDifference& b) { return a.run < b.run; });
  return comparison;
}

/// Drops the differences of runs and measurements that had none before.
void keep_those_of(const std::set<std::string>& before, std::vector<StoreDifference>& found) {
  const auto is_new = [&](const StoreDifference& difference) {
    return before.count(difference.run) == 0;
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_new), found.end());
}

}  // namespace

StoreComparison compare_store(const fs::path& path,
                              const fs::path& runs_dir,
                              const SyncWatch& watch) {
  StoreComparison comparison = compare_once(path, runs_dir, watch);
  // Both stores read the files one after the other, and others write meanwhile: a run that begins,
  // ends, is noted or removed between the two differs once. What was tampered with differs always.
  constexpr int more_looks = 3;
  constexpr int pause = 400;  // milliseconds: longer than a run is between two states
  for (int look = 0; look < more_looks && !comparison.differences.empty(); ++look) {
    std::set<std::string> before;
    for (const StoreDifference& difference : comparison.differences) before.insert(difference.run);
    ::poll(nullptr, 0, pause);
    comparison = compare_once(path, runs_dir, watch);
    keep_those_of(before, comparison.differences);
  }
  return comparison;
}

}  // namespace forge::store
