#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/results/store/run_summary.h"

/// Runs that are older ones, made again under another name or with a setting that changes no
/// number.
namespace forge::tables {

/// By the id of a run, the first one with its numbers.
using FirstRuns = std::map<std::string, store::RunSummary>;

/// Finds the completed runs that found what an older one had found: with the same seed, the same
/// number of parameters and tokens, and the last loss of the evaluation or of the training equal to
/// the last bit. So the config's name, its project and every setting that changes no number may
/// differ, and so may the evaluation where the training is the same. The older one must have
/// told a loss before the repetition was made (made_at), or nobody knew what it would find. A loss
/// of few digits may be equal by chance (statistics::rounding_step): of the evaluation it counts
/// where the identities are equal too. `runs`: of all configs, projects and workspaces, archived or
/// not. Takes time in proportion to their number, but for their sorting.
FirstRuns first_runs_of(const std::vector<store::RunSummary>& runs);

/// Under which names runs were made, of which some are older ones made again: a config that was
/// renamed, or copied into another project, is what it was before. A project is a copy of another
/// one from the time on when it repeated a run of a config of the same name: then all its configs
/// are what those of their names were there.
class RunHistory {
 public:
  /// Both must outlive it.
  RunHistory(const std::vector<const store::RunSummary*>& runs, const FirstRuns& repetitions);

  /// The ids of all runs, whatever became of them, with the name of one of these, with an older
  /// name of it, and so on. Repetitions made after `until` lead to no others.
  std::set<std::string> behind(const std::vector<const store::RunSummary*>& runs,
                               const std::optional<std::string>& until = {}) const;

 private:
  using Runs = std::vector<const store::RunSummary*>;
  using Project = std::pair<std::string, std::string>;  ///< workspace, path
  using Name = std::pair<Project, std::string>;         ///< config

  static Name name_of(const store::RunSummary& run);
  const std::string& first_id_of(const store::RunSummary& run) const;
  Runs older_ones_of(const store::RunSummary& run) const;

  const FirstRuns& repetitions_;
  std::map<Name, Runs> by_name_;
  std::map<std::string, Runs> alike_;  ///< completed ones by the first one's id
  /// By a copy, when it first repeated a run of each project that it is a copy of.
  std::map<Project, std::map<Project, std::string>> copied_;
};

}  // namespace forge::tables
