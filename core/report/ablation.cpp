#include "core/report/ablation.h"

#include <algorithm>
#include <tuple>

#include "core/report/comparison.h"
#include "core/report/setup.h"

namespace forge::report {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

std::string state_text(const store::RunSummary& run) {
  const std::string percent = std::to_string(store::progress_percent(run)) + " %";
  switch (run.status) {
    case run::RunState::running: return "running " + percent;
    case run::RunState::stopped: return "stopped at " + percent;
    default: return run::name_of(run.status);
  }
}

/// Newest first; the names decide between runs of one moment, so that the order is always the same.
Runs newest_first(const std::vector<ConfiguredRun>& runs) {
  Runs sorted;
  for (const ConfiguredRun& run : runs) sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(), [](const ConfiguredRun* a, const ConfiguredRun* b) {
    return std::tie(a->summary.created, a->summary.id) >
           std::tie(b->summary.created, b->summary.id);
  });
  return sorted;
}

void leave_out(const store::RunSummary& run,
               const std::string& reason,
               std::vector<LeftOut>& left_out) {
  for (LeftOut& entry : left_out) {
    if (entry.config == run.config && entry.reason == reason) {
      ++entry.runs;
      return;
    }
  }
  left_out.push_back({run.config, reason, 1});
}

/// Builds the rows of a table one after the other.
class Builder {
 public:
  Builder(const TableSpec& table, const std::string& profile, Runs runs)
      : table_(table), profile_(profile), runs_(std::move(runs)) {
    Runs candidates;
    for (const ConfiguredRun* run : runs_) {
      if (has_wanted_profile(*run)) candidates.push_back(run);
    }
    group_ = choose_group(table_, candidates);
  }

  /// The run that the row shows, or null; the others of its config are left out.
  const ConfiguredRun* choose(const RowSpec& row, std::vector<LeftOut>& left_out) const {
    Runs comparable;
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config != row.config) continue;
      if (const auto reason = reason_against(*run)) {
        leave_out(run->summary, *reason, left_out);
      } else {
        comparable.push_back(run);
      }
    }
    const ConfiguredRun* shown = nullptr;
    for (const ConfiguredRun* run : comparable) {
      if (!shown && run->summary.status == run::RunState::completed) shown = run;
    }
    if (!shown && !comparable.empty()) shown = comparable.front();
    for (const ConfiguredRun* run : comparable) {
      if (run != shown) leave_out(run->summary, reason_beside(run->summary), left_out);
    }
    return shown;
  }

 private:
  bool has_wanted_profile(const ConfiguredRun& run) const {
    return profile_.empty() || run.summary.profile == profile_;
  }

  std::optional<std::string> reason_against(const ConfiguredRun& run) const {
    if (!has_wanted_profile(run)) {
      return "profile " + run.summary.profile + ", this table shows " + profile_;
    }
    return difference(conditions_of(run, table_), *group_);
  }

  /// Why a run is not shown though it is comparable.
  static std::string reason_beside(const store::RunSummary& run) {
    if (run.status == run::RunState::completed) return "older than the run shown";
    return state_text(run);
  }

  const TableSpec& table_;
  std::string profile_;
  Runs runs_;
  std::optional<std::vector<Condition>> group_;  ///< set where a run has the wanted profile
};

std::optional<double> change(double own, double baseline) {
  if (!(own > 0) || !(baseline > 0)) return std::nullopt;
  return own / baseline - 1;
}

void add_changes(const store::RunSummary& baseline, AblationRow& row) {
  if (!row.completed() || row.run->id == baseline.id) return;
  row.throughput_change =
      change(row.run->tokens_per_second.value_or(0), baseline.tokens_per_second.value_or(0));
  row.memory_change = change(static_cast<double>(row.run->peak_memory_bytes.value_or(0)),
                             static_cast<double>(baseline.peak_memory_bytes.value_or(0)));
}

/// The runs of the table's own configs.
Runs of_table(const TableSpec& table, const Runs& runs) {
  Runs own;
  for (const ConfiguredRun* run : runs) {
    const auto is_its_row = [&](const RowSpec& row) { return row.config == run->summary.config; };
    if (std::any_of(table.rows.begin(), table.rows.end(), is_its_row)) own.push_back(run);
  }
  return own;
}

}  // namespace

Ablation build_ablation(const TableSpec& table,
                        const std::vector<ConfiguredRun>& runs,
                        const AblationOptions& options) {
  Ablation ablation;
  ablation.table = table;
  ablation.profile = options.profile;
  ablation.published = options.published;
  const Builder builder(table, options.profile, of_table(table, newest_first(runs)));
  Runs completed;
  for (const RowSpec& spec : table.rows) {
    AblationRow row;
    row.spec = spec;
    if (const ConfiguredRun* run = builder.choose(spec, ablation.left_out)) {
      row.run = run->summary;
      if (row.completed()) completed.push_back(run);
      if (ablation.profile.empty()) ablation.profile = run->summary.profile;
    }
    const PublishedFigure* figure =
        options.published ? options.published->find(spec.config) : nullptr;
    if (figure) row.published = *figure;
    ablation.rows.push_back(std::move(row));
  }
  for (const AblationRow& baseline : ablation.rows) {
    if (baseline.spec.config != table.baseline || !baseline.completed()) continue;
    for (AblationRow& row : ablation.rows) add_changes(*baseline.run, row);
  }
  ablation.setup = describe_setup(completed);
  return ablation;
}

std::string state_text(const AblationRow& row) {
  return row.run ? state_text(*row.run) : "missing";
}

std::string command_for(const AblationRow& row, const Ablation& ablation) {
  const std::string command = "forge run " + row.spec.config;
  return ablation.profile.empty() ? command : command + " --set profile=" + ablation.profile;
}

}  // namespace forge::report
