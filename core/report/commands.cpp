#include "core/report/commands.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/base/text.h"

namespace forge::report {
namespace {

std::string run_command(const std::vector<std::string>& configs,
                        const Ablation& ablation,
                        std::optional<double> value) {
  std::string command = "forge run " + join(configs, " ");
  if (const auto& best_of = ablation.table.best_of; best_of && best_of->selection_rows > 0)
    command += " --set train.selection_rows=" + std::to_string(best_of->selection_rows);
  if (value) command += " --set " + ablation.table.best_of->key + "=" + shortest(*value);
  if (!ablation.profile.empty()) command += " --set profile=" + ablation.profile;
  return command;
}

/// For each value of best_of the command that runs the rows whose point is wanted.
std::vector<std::string> commands_by_value(const Ablation& ablation,
                                           const std::function<bool(const Point&)>& is_wanted) {
  std::vector<std::string> commands;
  if (!ablation.table.best_of) return commands;
  for (const double value : ablation.table.best_of->values) {
    std::vector<std::string> configs;
    for (const AblationRow& row : ablation.rows) {
      for (const Point& point : row.points) {
        if (point.value == value && is_wanted(point)) configs.push_back(row.spec.config);
      }
    }
    if (!configs.empty()) commands.push_back(run_command(configs, ablation, value));
  }
  return commands;
}

}  // namespace

std::string command_for(const AblationRow& row,
                        const Ablation& ablation,
                        std::optional<double> value) {
  return run_command({row.spec.config}, ablation, value);
}

std::vector<std::string> best_of_commands(const Ablation& ablation) {
  return commands_by_value(ablation, [](const Point&) { return true; });
}

std::vector<std::string> missing_commands(const Ablation& ablation) {
  std::vector<std::string> commands =
      commands_by_value(ablation, [](const Point& point) { return !point.run; });
  if (ablation.table.best_of) return commands;
  for (const AblationRow& row : ablation.rows) {
    if (!row.run) commands.push_back(command_for(row, ablation));
  }
  return commands;
}

std::vector<store::RunSummary> shown_runs(const std::vector<Ablation>& ablations) {
  std::vector<store::RunSummary> runs;
  std::set<std::string> seen;
  const auto add = [&](const Sample& sample) {
    for (const store::RunSummary& run : sample.runs) {
      if (seen.insert(run.id).second) runs.push_back(run);
    }
  };
  for (const Ablation& ablation : ablations) {
    for (const AblationRow& row : ablation.rows) {
      add(row);
      for (const Point& point : row.points) add(point);
    }
  }
  return runs;
}

std::string as_typed(const store::RunSummary& run) {
  const size_t space = std::min(run.command.find(' '), run.command.size());
  const size_t slash = run.command.rfind('/', space);
  return slash == std::string::npos ? run.command : run.command.substr(slash + 1);
}

std::vector<std::string> reproduction_commands(const std::vector<Ablation>& ablations) {
  std::vector<std::string> commands;
  std::set<std::string> seen;
  for (const store::RunSummary& run : shown_runs(ablations)) {
    const std::string command = as_typed(run);
    if (!command.empty() && seen.insert(command).second) commands.push_back(command);
  }
  if (commands.empty()) {
    commands.push_back("forge run --all");
    for (const Ablation& ablation : ablations) {
      for (const std::string& command : best_of_commands(ablation)) commands.push_back(command);
    }
  }
  for (const Ablation& ablation : ablations)
    commands.push_back("forge compare --table " + ablation.table.name);
  return commands;
}

}  // namespace forge::report
