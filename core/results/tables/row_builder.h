#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/comparability.h"

/// Which runs the rows of a table show.
namespace forge::tables {

/// In what each run differs from its config as it is now; runs that do not have no entry.
using ConfigDifferences = std::map<const store::ConfiguredRun*, std::vector<std::string>>;

/// Builds the rows of a table, config by config.
class RowBuilder {
 public:
  RowBuilder(const TableSpec& table,
             const std::string& profile,
             const std::vector<const store::ConfiguredRun*>& runs,
             const AblationOptions& options);

  /// The rows of a config, one a group. Its other runs are excluded.
  std::vector<AblationRow> rows_of(const RowSpec& spec, std::vector<ExcludedRuns>& excluded) const;

  /// Whether the table would show the run, or choose by it, if it were not hidden.
  bool would_show(const store::ConfiguredRun& run) const;

  /// The run of that id, which is one of the table's.
  const store::ConfiguredRun* find(const std::string& id) const;

  /// What a measurement of a row must agree with: how these runs were trained, or without any the
  /// config as it is now.
  SpeedRow speed_row(const std::string& config, const std::vector<store::RunSummary>& runs) const;

 private:
  /// A run of the table's configs.
  struct Candidate {
    const store::ConfiguredRun* run = nullptr;
    std::string group;
    bool has_profile = false;             ///< the one that the table shows
    std::vector<std::string> violations;  ///< of the table's conditions; "" is none of these
    bool is_of_other_backend = false;     ///< and violates nothing else
  };

  static bool is_of(const Candidate& candidate, const RowSpec& spec);

  /// Why the run is none that rows may show, however it was trained; "" if it may be.
  std::string why_never_shown(const store::RunSummary& run) const;

  /// Where no run of the table's backend completed the config, lets completed ones of another
  /// backend fill its row: of one backend, that of the newest.
  void admit_other_backend(const RowSpec& row);

  /// Marks the runs that use more or less than the table's budget.
  void check_budgets(const std::vector<benchmark::Record>& benchmarks);

  /// "" for a run that is comparable.
  std::string reason_against(const Candidate& candidate) const;

  void fill(AblationRow& row,
            const std::vector<const store::ConfiguredRun*>& runs,
            std::vector<ExcludedRuns>& excluded) const;

  void add_config_differences(AblationRow& row) const;

  /// Lets a row without comparable runs show the newest completed run, with the other seeds that
  /// violate the same conditions. A run that the row would not show if it were comparable, of a
  /// value that best_of does not list, is not shown here either.
  void fill_incomparable(AblationRow& row) const;

  const TableSpec& table_;
  const std::string profile_;
  const CurrentConfig current_config_;
  const ConfigDifferences differences_;
  const IsCurrent is_current_;
  const std::map<std::string, std::string> tuned_;  ///< other tables that runs tuned, by run keys
  std::optional<std::vector<Condition>> shown_;     ///< the table's conditions; none without runs
  std::vector<Candidate> candidates_;
};

}  // namespace forge::tables
