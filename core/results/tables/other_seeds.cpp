#include "core/results/tables/other_seeds.h"

#include <map>
#include <set>

#include "core/base/text.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/row_sample.h"
#include "core/results/tables/table_design.h"

namespace forge::tables {

using store::ConfiguredRun;

std::string rough_experiment_key(const store::RunSummary& run) {
  return join({run.data_fingerprint,
               run.tokenizer_fingerprint,
               run.backend,
               run.program,
               std::to_string(run.numerics_version),
               std::to_string(run.parameters),
               std::to_string(run.max_steps),
               std::to_string(run.tokens_per_step)},
              " ");
}

void add_other_seeds(const std::vector<ConfiguredRun>& runs,
                     const AblationOptions& options,
                     Ablation& ablation) {
  std::map<std::string, std::vector<const ConfiguredRun*>> by_rough_key;
  std::map<std::string, const ConfiguredRun*> by_id;
  for (const auto* list : {&runs,
                           &options.filtered_out,
                           &options.archived,
                           &options.other_models,
                           &options.elsewhere}) {
    for (const ConfiguredRun& run : *list) {
      if (!is_completed(&run)) continue;
      by_rough_key[rough_experiment_key(run.summary)].push_back(&run);
      by_id[run.summary.id] = &run;
    }
  }
  std::map<const ConfiguredRun*, std::string> known_keys;
  const auto key_of = [&](const ConfiguredRun* run) -> const std::string& {
    const auto [key, is_new] = known_keys.try_emplace(run);
    if (is_new) key->second = experiment_key(*run);
    return key->second;
  };
  for (AblationRow& row : ablation.rows) {
    if (row.runs.size() < 2) continue;
    const ConfiguredRun& shown = *by_id.at(row.run->id);
    const std::string own = key_of(&shown);
    std::set<std::string> experiments = {own}, rough_keys = {rough_experiment_key(shown.summary)};
    for (const std::string& id : row.repeats) {
      const auto first = by_id.find(id);
      if (first == by_id.end()) continue;
      experiments.insert(key_of(first->second));
      rough_keys.insert(rough_experiment_key(first->second->summary));
    }
    for (const std::string& rough : rough_keys) {
      for (const ConfiguredRun* run : by_rough_key[rough]) {
        const int64_t seed = run->summary.seed;
        if (shown_of_seed(row, seed) || is_tuning_run(ablation.table, run->summary)) continue;
        const std::string& experiment = key_of(run);
        const bool has_own_name =
            run->summary.project == shown.summary.project && run->summary.config == row.spec.config;
        // Of its own name and experiment they are shown, or said why they are not.
        if (experiments.count(experiment) > 0 && !(has_own_name && experiment == own))
          row.other_seeds.insert(seed);
      }
    }
  }
}

SetupEntry describe_other_seeds(const Ablation& ablation) {
  size_t seeds = 0;
  for (const AblationRow& row : ablation.rows)
    if (row.is_comparable()) seeds += row.other_seeds.size();
  if (seeds == 0) return {};
  return {"Other seeds",
          "the same experiments were also run with " + counted(seeds, "other seed") +
              " under other names or settings that change no number, and the table shows none of "
              "these: its seeds may have been chosen by what they found",
          counted(seeds, "seed") + " of these experiments not shown"};
}

}  // namespace forge::tables
