#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"

namespace forge::tables {

/// Whether the run told something. A poor run is stopped, and one that diverges fails: they do as
/// well, unless they ended before their first step.
bool tells(const store::ConfiguredRun& run);

/// All runs that may have been tried for a table's rows, shown or not.
class MadeRuns {
 public:
  using Runs = std::vector<const store::ConfiguredRun*>;

  /// `shown`: of the project, as the table gets them. Both must outlive it.
  MadeRuns(const std::vector<store::ConfiguredRun>& shown, const AblationOptions& options);

  /// Those of the config, under its name of now.
  Runs of_config(const std::string& config) const;

  /// These and those under the names that their configs had before that time (RunHistory::behind).
  Runs behind(const Runs& of_configs, const std::string& until) const;

  bool is_of_other_model(const store::ConfiguredRun* run) const;

 private:
  Runs of_project_, all_;
  std::set<const store::ConfiguredRun*> of_other_models_;
  RunHistory history_;
};

}  // namespace forge::tables
