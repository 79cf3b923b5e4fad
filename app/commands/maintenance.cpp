#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/manage/doctor.h"
#include "core/manage/garbage.h"
#include "core/results/store/compare_store.h"
#include "core/results/store/result_store.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

using manage::Finding;
using manage::Health;

std::vector<manage::BackendReport> ask_backends(const Context& context) {
  std::vector<manage::BackendReport> reports;
  for (backends::ListedBackend& backend :
       backends::list_backends(context.backend_folders(),
                               context.program(),
                               context.launcher(),
                               [&](const config::DeclaredBackend& declared) {
                                 return context.is_forges_own(declared.external);
                               }))
    reports.push_back({backend.name, std::move(backend.info), backend.problem, backend.was_asked});
  return reports;
}

std::vector<Finding> examine(const Context& context) {
  std::vector<Finding> findings = manage::check_machine();
  const auto add = [&](const std::vector<Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  const std::vector<manage::BackendReport> backends = ask_backends(context);
  add({manage::check_gpu(backends)});
  for (const manage::BackendReport& report : backends)
    add(manage::check_backend(report, report.name == "libtorch"));
  add(manage::check_runs_folder(context.runs_dir()));
  LateProgress progress("checking the store");
  add({manage::check_queue(context.runs_dir()),
       manage::check_store(context.runs_dir(), watch_with(progress)),
       manage::check_cache(user_cache_dir())});
  const char* path = std::getenv("PATH");
  add({manage::check_build_tools(path ? path : "")});
  return findings;
}

void print_findings(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.what.size());
  const std::string indent(9 + width + 2, ' ');
  for (const Finding& finding : findings) {
    const std::string& health = name_of(finding.health);
    const Style style = finding.health == Health::ok        ? Style::green
                        : finding.health == Health::warning ? Style::yellow
                                                            : Style::red;
    std::cout << styled(health, style) << std::string(9 - health.size(), ' ') << finding.what
              << std::string(width - finding.what.size() + 2, ' ')
              << tables::printable(finding.text) << "\n";
    if (!finding.hint.empty())
      std::cout << indent << "hint: " << tables::printable(finding.hint) << "\n";
  }
}

int doctor(const Context& context, bool json) {
  const std::vector<Finding> findings = examine(context);
  const auto count = [&](Health health) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.health == health;
    });
  };
  const auto problems = count(Health::problem), warnings = count(Health::warning);
  if (json) {
    const auto list = json_list(findings, [](const Finding& finding) { return to_json(finding); });
    print_json(nlohmann::json{{"findings", list}, {"problems", problems}, {"warnings", warnings}});
  } else {
    print_findings(findings);
    std::cout << "\n"
              << problems << (problems == 1 ? " problem, " : " problems, ") << warnings
              << (warnings == 1 ? " warning\n" : " warnings\n");
  }
  return problems > 0 ? 1 : 0;
}

struct GcOptions {
  manage::GarbageOptions search;
  bool cache = false;
  bool yes = false;
  bool verbose = false;
  bool json = false;
};

std::string words_for(manage::GarbageKind kind) {
  switch (kind) {
    case manage::GarbageKind::removed_run: return "removed runs";
    case manage::GarbageKind::surplus_checkpoint:
      return "checkpoints beyond train.keep_checkpoints";
    case manage::GarbageKind::damaged_checkpoint: return "damaged checkpoints";
    case manage::GarbageKind::misnamed_checkpoint:
      return "whole checkpoints under the name of another step";
    case manage::GarbageKind::leftover: return "leftovers of interrupted work";
    case manage::GarbageKind::prepared_data: return "prepared data that no run here uses";
  }
  return "";
}

void print_garbage(const std::vector<manage::Garbage>& garbage, bool verbose) {
  struct Sum {
    int64_t count = 0, bytes = 0;
  };
  std::map<manage::GarbageKind, Sum> sums;
  for (const manage::Garbage& item : garbage) {
    ++sums[item.kind].count;
    sums[item.kind].bytes += item.bytes;
  }
  std::vector<std::vector<std::string>> lines = {{"What", "Count", "Size"}};
  for (const auto& [kind, sum] : sums) {
    lines.push_back({words_for(kind), std::to_string(sum.count), human_bytes(double(sum.bytes))});
  }
  std::cout << aligned(lines, {1, 2});
  if (!verbose) return;
  std::vector<std::vector<std::string>> items;
  for (const manage::Garbage& item : garbage)
    items.push_back({human_bytes(double(item.bytes)), shown_path(item.path), item.reason});
  std::cout << "\n" << aligned(items, {0});
}

bool confirm(const std::string& bytes) {
  std::cerr << "free " << bytes << "? This cannot be undone. [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

manage::GarbageSearch find(const std::filesystem::path& runs_dir, const GcOptions& options) {
  manage::GarbageOptions search = options.search;
  search.now = unix_time();
  if (options.cache) search.cache_dir = user_cache_dir();
  LateProgress progress("searching runs");
  return manage::find_garbage(runs_dir, search, progress.reporter());
}

int collect(const Context& context, const GcOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const auto [garbage, left_out] = find(runs_dir, options);
  for (const std::string& run : left_out)
    std::cerr << "warning: left out " << tables::printable(run) << "\n";
  int64_t total = 0;
  for (const manage::Garbage& item : garbage) total += item.bytes;
  if (!options.json) {
    if (garbage.empty()) {
      std::cout << "nothing to free in " << shown_path(runs_dir)
                << (options.cache ? " and the cache\n" : "; --cache includes prepared data\n");
      return 0;
    }
    print_garbage(garbage, options.verbose);
  }
  const auto holds = [&, &garbage = garbage](manage::GarbageKind kind) {
    return std::any_of(
        garbage.begin(), garbage.end(), [&](const auto& item) { return item.kind == kind; });
  };
  if (holds(manage::GarbageKind::misnamed_checkpoint))
    std::cerr << "note: a checkpoint under the name of another step is of use again once it is "
                 "renamed: --verbose lists them\n";
  if (holds(manage::GarbageKind::prepared_data))
    std::cerr << "note: other runs folders share the cache: their runs prepare again what they "
                 "still need, where the text is there\n";
  const std::string bytes = human_bytes(double(total));
  const bool can_ask = !options.json && is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
  manage::Freed freed;
  const bool frees = !garbage.empty() && (options.yes || (can_ask && confirm(bytes)));
  LateProgress progress("freeing");
  if (frees) freed = manage::free_garbage(runs_dir, garbage, progress.reporter());
  for (const std::string& kept : freed.kept)
    std::cerr << "warning: kept " << tables::printable(kept) << "\n";
  if (options.json) {
    const auto list = json_list(garbage, [](const auto& item) { return to_json(item); });
    print_json(nlohmann::json{{"garbage", list},
                              {"bytes", total},
                              {"freed", freed.count},
                              {"freed_bytes", freed.bytes},
                              {"kept", freed.kept},
                              {"left_out", left_out}});
  } else if (frees) {
    std::cout << "freed " << human_bytes(double(freed.bytes)) << "\n";
  } else {
    std::cout << "nothing was freed; --yes frees " << bytes << "\n";
  }
  return freed.kept.empty() ? 0 : 1;
}

int rebuild(const Context& context, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  const std::filesystem::path path = store::store_path(runs_dir);
  LateProgress progress("reading runs");
  const store::SyncReport report = store::reindex(path, runs_dir, watch_with(progress));
  print_warnings(report.warnings);
  if (json)
    return print_json(nlohmann::json{
        {"store", path.string()}, {"runs", report.added}, {"benchmarks", report.benchmarks}});
  std::cout << "rebuilt " << shown_path(path) << " from " << report.added << " run folders and "
            << report.benchmarks << " benchmarks\n";
  return 0;
}

int compare(const Context& context, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  if (!is_folder(runs_dir))
    throw Error("there is no runs folder '" + shown_path(runs_dir) + "'",
                "the first 'forge run' makes it; FORGE_RUNS_DIR names another one",
                ExitCode::failed);
  const std::filesystem::path path = store::store_path(runs_dir);
  LateProgress progress("checking the store");
  const store::StoreComparison comparison =
      store::compare_store(path, runs_dir, watch_with(progress));
  const bool differs = !comparison.differences.empty();
  print_warnings(comparison.warnings);
  if (json) {
    const auto list = json_list(comparison.differences, [](const auto& found) -> nlohmann::json {
      return {{"run", found.run}, {"what", found.what}};
    });
    print_json(nlohmann::json{{"store", path.string()},
                              {"compared", comparison.compared},
                              {"active", comparison.active},
                              {"differences", list}});
    return differs ? 1 : 0;
  }
  for (const store::StoreDifference& found : comparison.differences)
    std::cout << tables::printable(found.run + ": " + found.what) << "\n";
  std::cout << shown_path(path) << ": " << counted(comparison.compared, "run") << " compared, "
            << counted(comparison.differences.size(), "difference") << " from the run folders";
  if (comparison.active > 0) std::cout << "; " << comparison.active << " active not compared";
  std::cout << "\n";
  const auto is_of_folder = [](const store::StoreDifference& found) { return found.is_of_folder; };
  const auto& all = comparison.differences;
  if (!std::all_of(all.begin(), all.end(), is_of_folder))
    std::cerr << "hint: 'forge store reindex' builds it anew from the run folders\n";
  if (std::any_of(all.begin(), all.end(), is_of_folder))
    std::cerr << "hint: a run folder has the name of its run; take copies and renamed ones out of "
                 "the runs folder\n";
  return differs ? 1 : 0;
}

}  // namespace

void add_doctor(const Command& app) {
  const auto [command, json] =
      app.add_command("doctor", "Check machine, backends and folders", doctor);
  command
      .details(
          "A problem prevents runs or makes them unsafe; then the exit code is 1. A warning is "
          "something slow or soon to become a problem.")
      .examples("forge doctor\nforge doctor --json")
      .see_also("forge backends, forge gc");
  add_json_option(command, json);
}

void add_gc(const Command& app) {
  const auto [command, options] = app.add_command("gc", "Find and free unused disk space", collect);
  command
      .details(
          "Finds removed runs, surplus, damaged and misnamed checkpoints, and leftovers of "
          "interrupted work. "
          "Active and queued runs are never touched. Nothing is freed without confirmation.")
      .examples(
          "forge gc\n"
          "forge gc --verbose --cache\n"
          "forge gc --older-than 0 --yes       free removed runs now")
      .see_also("forge runs rm, forge runs undo, forge doctor");
  command
      .add_option("--older-than <DAYS>",
                  options.search.days,
                  "Keep removed runs and prepared data for this many days")
      .at_least(0)
      .show_default();
  command.add_flag("--cache", options.cache, "Include prepared data in the user's cache");
  command.add_flag("--verify",
                   options.search.read_all,
                   "Read every byte of checkpoints to find damage, not only their sizes");
  command.add_flag("-v,--verbose", options.verbose, "List each folder");
  command.add_flag("--yes", options.yes, "Do not ask for confirmation");
  add_json_option(command, options.json, "Print JSON; frees nothing without --yes");
}

void add_store(const Command& app) {
  const Command store = app.add_command("store", "Manage the index of runs").requires_subcommand();
  const auto [command, json] =
      store.add_command("reindex", "Rebuild the index from the run folders", rebuild);
  command.see_also("forge store check");
  add_json_option(command, json);
  const auto [check, check_json] =
      store.add_command("check", "Compare the index with the run folders", compare);
  check
      .details(
          "Reads all run folders anew, and tells where the index says something else: another "
          "program has changed it. Then the exit code is 1. 'forge doctor' does the same.")
      .see_also("forge store reindex, forge doctor");
  add_json_option(check, check_json);
}

}  // namespace forge::app
