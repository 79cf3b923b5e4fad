#include "core/results/tables/row_builder.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/table_design.h"
#include "core/run/program_hash.h"

namespace forge::tables {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

namespace {

/// Files of configs that cannot be read now, such as those of a disk which is not mounted. Where
/// the runs of a config say that they were edited, none is known to be of the config as it is now.
class UnknownFiles {
 public:
  /// `which` stands for the file, `hash` for what the run read of it.
  void add(const std::string& what,
           const nlohmann::json& which,
           const std::string& hash,
           const ConfiguredRun* run) {
    runs_[{what, which}][hash].push_back(run);
  }

  void add_to(ConfigDifferences& differences) const {
    constexpr size_t shown = 12;  // digits, as elsewhere
    for (const auto& [file, by_hash] : runs_) {
      if (by_hash.size() < 2) continue;
      for (const auto& [hash, runs] : by_hash)
        for (const ConfiguredRun* run : runs)
          differences[run].push_back(file.first + " " + hash.substr(0, shown) +
                                     " (now unknown: it cannot be read)");
    }
  }

 private:
  /// By kind and file, then by hash.
  std::map<std::pair<std::string, nlohmann::json>, std::map<std::string, Runs>> runs_;
};

/// The newest version of each backend's numerics that a run was made with: a mistake in it was
/// mended since the others were made.
std::map<std::string, int> newest_numerics(const Runs& runs) {
  std::map<std::string, int> newest;
  for (const ConfiguredRun* run : runs) {
    int& version = newest.try_emplace(run->summary.backend, 0).first->second;
    version = std::max(version, int(run->summary.numerics_version));
  }
  return newest;
}

ConfigDifferences find_config_differences(const TableSpec& table,
                                          const Runs& runs,
                                          const AblationOptions& options) {
  ConfigDifferences differences;
  if (!options.current_config) return differences;
  UnknownFiles unknown;
  const std::map<std::string, int> numerics = newest_numerics(runs);
  std::map<nlohmann::json, std::string> programs;  // of sections `external`
  for (const ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    const nlohmann::json& current =
        options.current_config(summary.config, summary.profile, summary.device_type);
    if (current.is_null()) {
      const bool has_config =
          !options.current_config(summary.config, "", summary.device_type).is_null();
      if (has_config && !summary.profile.empty())
        differences[run] = {"profile " + summary.profile + ", which the config has not now"};
      continue;
    }
    std::string& program = programs[current.value("external", nlohmann::json())];
    if (program.empty() && !summary.program.empty())
      program = run::program_hash(config::experiment_from_json(current).external);
    CurrentFiles files{program};
    const nlohmann::json here = with_current_paths(run->config, current);
    if (options.current_data) files.data = options.current_data(here);
    const nlohmann::json* const weights = find_value(current, "train.initial_weights");
    if (options.current_weights && !summary.initial_weights_hash.empty() && weights)
      files.initial_weights = options.current_weights(current);
    std::vector<std::string> found = differences_from_config(*run, current, files, table);
    if (const int newest = numerics.at(summary.backend);
        summary.numerics_version > 0 && summary.numerics_version < newest)
      found.push_back("numerics " + std::to_string(summary.numerics_version) + " (now " +
                      std::to_string(newest) + ")");
    if (options.current_data && files.data.data.empty())
      unknown.add("the text",
                  {summary.config, here.value("data", nlohmann::json())},
                  summary.data_fingerprint,
                  run);
    if (options.current_weights && files.initial_weights.empty() && weights)
      unknown.add(
          "the initial weights", {summary.config, *weights}, summary.initial_weights_hash, run);
    if (!found.empty()) differences[run] = std::move(found);
  }
  unknown.add_to(differences);
  return differences;
}

/// Whether the config has the run's profile by itself, without --set.
bool has_own_profile(const store::RunSummary& run, const CurrentConfig& current_config) {
  if (!current_config) return true;
  const nlohmann::json current = current_config(run.config, "", run.device_type);
  return !current.is_object() || current.value("profile", run.profile) == run.profile;
}

/// The other tables that runs were made to tune, by the runs' keys. The first run of a key says so
/// for all: who repeats it knows what it found.
std::map<std::string, std::string> tables_tuned(const TableSpec& table,
                                                const Runs& runs,
                                                const FirstRuns& repetitions) {
  std::map<std::string, const store::RunSummary*> first_of_key;
  for (const ConfiguredRun* run : runs) {
    const store::RunSummary*& first = first_of_key[run->summary.key];
    if (!first || made_at(run->summary) < made_at(*first)) first = &run->summary;
  }
  std::map<std::string, std::string> tuned;
  for (const auto& [key, run] : first_of_key) {
    const auto repeated = repetitions.find(run->id);
    const std::string other =
        table_tuned_by(repeated == repetitions.end() ? *run : repeated->second, table);
    if (!other.empty()) tuned[key] = other;
  }
  return tuned;
}

}  // namespace

RowBuilder::RowBuilder(const TableSpec& table,
                       const std::string& profile,
                       const Runs& runs,
                       const AblationOptions& options)
    : table_(table),
      profile_(profile),
      current_config_(options.current_config),
      differences_(find_config_differences(table, runs, options)),
      is_current_([this](const ConfiguredRun& run) { return differences_.count(&run) == 0; }),
      tuned_(tables_tuned(table, runs, options.repetitions)) {
  const auto has_profile = [&](const ConfiguredRun* run) {
    return profile.empty() || run->summary.profile == profile;
  };
  Runs of_profile;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(of_profile), has_profile);
  // Runs that no row can choose must not decide what the others are compared with.
  Runs eligible;
  std::copy_if(
      of_profile.begin(), of_profile.end(), std::back_inserter(eligible), [&](const auto* run) {
        return why_never_shown(run->summary).empty() &&
               (!table.best_of || why_not_chosen(*table.best_of, *run).empty());
      });
  // One more try of a quick profile must not take the place of what the configs themselves ask for.
  shown_ =
      choose_group(table, eligible.empty() ? of_profile : eligible, [&](const ConfiguredRun& run) {
        return is_current_(run) && has_own_profile(run.summary, options.current_config);
      });
  for (const ConfiguredRun* run : runs) {
    Candidate candidate{run, group_of(*run, table), has_profile(run), {}};
    if (candidate.has_profile) {
      const std::vector<Condition> conditions = conditions_of(*run, table);
      candidate.violations = violations(conditions, *shown_);
      candidate.is_of_other_backend = differs_in_backend_alone(conditions, *shown_);
    }
    candidates_.push_back(std::move(candidate));
  }
  for (const RowSpec& row : table.rows) admit_other_backend(row);
  for (Candidate& candidate : candidates_) {
    const std::string why = why_never_shown(candidate.run->summary);
    if (!why.empty()) candidate.violations.push_back(why);
  }
  if (table.budget) check_budgets(options.benchmarks);
}

std::vector<AblationRow> RowBuilder::rows_of(const RowSpec& spec,
                                             std::vector<ExcludedRuns>& excluded) const {
  std::map<std::string, Runs> groups;
  for (const Candidate& candidate : candidates_) {
    if (is_of(candidate, spec) && reason_against(candidate).empty())
      groups[candidate.group].push_back(candidate.run);
  }
  if (groups.empty()) groups[""];
  std::vector<AblationRow> rows;
  std::set<std::string> shown;
  std::vector<ExcludedRuns> not_chosen;
  for (const auto& [group, runs] : groups) {
    AblationRow& row = rows.emplace_back();
    row.spec = spec;
    row.group = group;
    fill(row, runs, not_chosen);
    if (!row.run) fill_incomparable(row);
    add_config_differences(row);
    for (const store::RunSummary& run : row.runs) shown.insert(run.id);
  }
  for (const Candidate& candidate : candidates_) {
    const std::string reason = reason_against(candidate);
    const store::RunSummary& run = candidate.run->summary;
    if (is_of(candidate, spec) && !reason.empty() && shown.count(run.id) == 0)
      exclude(run, reason, excluded);
  }
  excluded.insert(excluded.end(), not_chosen.begin(), not_chosen.end());
  return rows;
}

bool RowBuilder::would_show(const ConfiguredRun& run) const {
  const auto is_of_row = [&](const RowSpec& row) { return row.config == run.summary.config; };
  const bool has_profile = profile_.empty() || run.summary.profile == profile_;
  return shown_ && has_profile && why_never_shown(run.summary).empty() &&
         std::any_of(table_.rows.begin(), table_.rows.end(), is_of_row) &&
         (!table_.best_of || why_not_chosen(*table_.best_of, run).empty()) &&
         violations(conditions_of(run, table_), *shown_).empty();
}

const ConfiguredRun* RowBuilder::find(const std::string& id) const {
  return std::find_if(candidates_.begin(),
                      candidates_.end(),
                      [&](const Candidate& candidate) { return candidate.run->summary.id == id; })
      ->run;
}

std::string RowBuilder::why_never_shown(const store::RunSummary& run) const {
  const auto tuned = tuned_.find(run.key);
  if (tuned == tuned_.end()) return why_repeated(run);
  return "made to tune the table " + tuned->second + ": no other one shows it";
}

bool RowBuilder::is_of(const Candidate& candidate, const RowSpec& spec) {
  return candidate.run->summary.config == spec.config;
}

void RowBuilder::admit_other_backend(const RowSpec& row) {
  const Candidate* newest = nullptr;
  for (const Candidate& candidate : candidates_) {
    if (!is_of(candidate, row) || !candidate.has_profile || !is_completed(candidate.run)) continue;
    if (candidate.violations.empty()) return;
    if (!newest && candidate.is_of_other_backend) newest = &candidate;
  }
  if (!newest) return;
  const std::string backend = newest->run->summary.backend;
  for (Candidate& candidate : candidates_) {
    if (is_of(candidate, row) && candidate.is_of_other_backend &&
        candidate.run->summary.backend == backend)
      candidate.violations.clear();
  }
}

SpeedRow RowBuilder::speed_row(const std::string& config,
                               const std::vector<store::RunSummary>& runs) const {
  std::set<SpeedSettings> trained;
  for (const store::RunSummary& run : runs) trained.insert(speed_settings_of(*find(run.id)));
  const auto why_not_its_own = [this, config, trained](const benchmark::Record& record) {
    for (const SpeedSettings& own : trained) {
      const std::string why = why_of_other_training(record, own, "the runs", table_);
      if (!why.empty()) return why;
    }
    if (!trained.empty() || !current_config_) return std::string();
    const nlohmann::json current =
        current_config_(config, profile_.empty() ? record.profile : profile_, record.device.type);
    if (current.is_null()) return std::string();
    return why_of_other_training(record, speed_settings_of(current), "the config", table_);
  };
  return {config, why_not_its_own};
}

void RowBuilder::check_budgets(const std::vector<benchmark::Record>& benchmarks) {
  Runs comparable;
  for (const Candidate& candidate : candidates_) {
    if (reason_against(candidate).empty()) comparable.push_back(candidate.run);
  }
  std::vector<SpeedRow> rows;
  for (const RowSpec& row : table_.rows) {
    Runs own;
    std::copy_if(comparable.begin(),
                 comparable.end(),
                 std::back_inserter(own),
                 [&](const ConfiguredRun* run) { return run->summary.config == row.config; });
    std::vector<ExcludedRuns> ignored;
    rows.push_back(speed_row(row.config, sample_of(own, ignored, "", is_current_).runs));
  }
  const BudgetCheck budget(table_, comparable, std::move(rows), benchmarks, is_current_);
  for (Candidate& candidate : candidates_) {
    std::string violation = budget.violation(*candidate.run);
    if (!violation.empty()) candidate.violations.push_back(std::move(violation));
  }
}

std::string RowBuilder::reason_against(const Candidate& candidate) const {
  if (!candidate.has_profile)
    return "profile " + candidate.run->summary.profile + ", this table shows " + profile_;
  return candidate.violations.empty() ? "" : candidate.violations.front();
}

void RowBuilder::fill(AblationRow& row,
                      const Runs& runs,
                      std::vector<ExcludedRuns>& excluded) const {
  if (table_.best_of) {
    fill_best(table_, runs, is_current_, row, excluded);
  } else {
    static_cast<Sample&>(row) = sample_of(runs, excluded, "", is_current_);
  }
}

void RowBuilder::add_config_differences(AblationRow& row) const {
  if (!row.completed()) return;
  const auto found = differences_.find(find(row.run->id));
  if (found != differences_.end()) row.differs_from_config = found->second;
}

void RowBuilder::fill_incomparable(AblationRow& row) const {
  Runs similar;
  for (const Candidate& candidate : candidates_) {
    if (!is_of(candidate, row.spec) || !is_completed(candidate.run)) continue;
    if (!candidate.has_profile || candidate.group != row.group) continue;
    if (candidate.violations.empty()) continue;
    if (table_.best_of && !why_not_chosen(*table_.best_of, *candidate.run).empty()) continue;
    if (similar.empty()) row.violations = candidate.violations;
    if (candidate.violations == row.violations) similar.push_back(candidate.run);
  }
  if (similar.empty()) return;
  std::vector<ExcludedRuns> ignored;  // what is not comparable is excluded with its reason anyway
  row.points.clear();
  fill(row, similar, ignored);
}

}  // namespace forge::tables
