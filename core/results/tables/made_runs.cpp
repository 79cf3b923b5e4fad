#include "core/results/tables/made_runs.h"

#include <algorithm>
#include <iterator>

#include "core/results/tables/row_sample.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = MadeRuns::Runs;

Runs all_of(const std::vector<const std::vector<ConfiguredRun>*>& lists) {
  Runs runs;
  for (const auto* list : lists)
    for (const ConfiguredRun& run : *list) runs.push_back(&run);
  return runs;
}

std::vector<const store::RunSummary*> summaries_of(const Runs& runs) {
  std::vector<const store::RunSummary*> summaries;
  for (const ConfiguredRun* run : runs) summaries.push_back(&run->summary);
  return summaries;
}

}  // namespace

bool tells(const ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  return is_completed(&run) || summary.diverged != 0 ||
         (store::is_final(summary.status) && summary.step > 0);
}

MadeRuns::MadeRuns(const std::vector<ConfiguredRun>& shown, const AblationOptions& options)
    : of_project_(
          all_of({&shown, &options.filtered_out, &options.archived, &options.other_models})),
      all_(all_of({&shown,
                   &options.filtered_out,
                   &options.archived,
                   &options.other_models,
                   &options.elsewhere})),
      history_(summaries_of(all_), options.repetitions) {
  for (const ConfiguredRun& run : options.other_models) of_other_models_.insert(&run);
}

Runs MadeRuns::of_config(const std::string& config) const {
  Runs runs;
  std::copy_if(of_project_.begin(),
               of_project_.end(),
               std::back_inserter(runs),
               [&](const ConfiguredRun* run) { return run->summary.config == config; });
  return runs;
}

Runs MadeRuns::behind(const Runs& of_configs, const std::string& until) const {
  const std::set<std::string> ids = history_.behind(summaries_of(of_configs), until);
  Runs runs;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(runs), [&](const ConfiguredRun* run) {
    return ids.count(run->summary.id) > 0;
  });
  return runs;
}

bool MadeRuns::is_of_other_model(const ConfiguredRun* run) const {
  return of_other_models_.count(run) > 0;
}

}  // namespace forge::tables
