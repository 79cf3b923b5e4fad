#include "core/results/tables/row_sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/run_times.h"
#include "core/run/identity.h"
#include "core/run/input_files.h"

namespace forge::tables {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

run::Identity identity_without_seed(const store::ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  run::Identity identity;
  identity.experiment = run::identity_config(run.config);
  identity.experiment.erase("seed");
  identity.data_fingerprint = summary.data_fingerprint;
  identity.tokenizer_fingerprint = summary.tokenizer_fingerprint;
  identity.backend = summary.backend;
  identity.device_type = summary.device_type;
  identity.threads = static_cast<int>(summary.threads);
  identity.numerics_version = static_cast<int>(summary.numerics_version);
  identity.initial_weights = summary.initial_weights_hash;
  identity.program = summary.program;
  return identity;
}

bool are_tuned_alike(const ConfiguredRun& a, const ConfiguredRun& b, const TableSpec& table) {
  const auto set_of = [&](const ConfiguredRun& run) {
    run::Identity identity = identity_of_set(run, table);
    identity.threads = 0;
    for (const char* what : {"device name", "environment"}) identity.experiment.erase(what);
    return run::identity_hash(identity);
  };
  return set_of(a) == set_of(b);
}

std::string experiment_key(const ConfiguredRun& run) {
  return run::identity_hash(identity_without_seed(run));
}

run::Identity setup_for(const std::string& metric, const ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  run::Identity setup = identity_without_seed(run);
  if (metric == results::train_loss_name) {
    const nlohmann::json* const steps = find_value(run.config, "train.log_every");
    setup.experiment["train"]["log_every"] = steps ? *steps : nlohmann::json();
  }
  if (!metric.empty() && results::metric_named(metric).depends_on_device) {
    nlohmann::json& train = setup.experiment["train"];
    train["recompute"] = summary.recompute.empty() ? "none" : summary.recompute;
    train["micro_batch_size"] =
        summary.micro_batch_size ? nlohmann::json(*summary.micro_batch_size) : nlohmann::json();
    setup.experiment["parallel"]["processes"] = store::processes_value(summary);
    setup.experiment["device_name"] = summary.device_name;
    setup.experiment["environment"] = numerics_variables_of(run);
  }
  return setup;
}

std::string seeds_text(const std::set<int64_t>& seeds) {
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (const int64_t seed : seeds)
    if (texts.size() < most) texts.push_back(std::to_string(seed));
  return join(texts, ", ") +
         (seeds.size() > most ? " and " + std::to_string(seeds.size() - most) + " more" : "");
}

bool has_mixed_attempts(const store::RunSummary& run) {
  return store::is_mixed(run.recompute) || store::is_mixed(run.device_name) ||
         store::is_mixed(run.processes);
}

run::Identity identity_of_set(const ConfiguredRun& run, const TableSpec& table) {
  run::Identity identity = identity_without_seed(run);
  nlohmann::json leaves = nlohmann::json::object();
  for (const auto& [key, value] : run::dotted_leaves(identity.experiment)) {
    const bool varies =
        is_varied_by(table, run.summary.config, key) || follows_value(table, run.config, key);
    if (key == table.by || !varies) leaves[key] = value;
  }
  leaves["device name"] = run.summary.device_name;
  leaves["environment"] = numerics_variables_of(run);
  identity.experiment = std::move(leaves);
  return identity;
}

bool is_completed(const ConfiguredRun* run) {
  return run->summary.status == run::RunState::completed;
}

std::string state_text(const store::RunSummary& run) {
  const std::string percent = std::to_string(store::progress_percent(run)) + " %";
  switch (run.status) {
    case run::RunState::running: return "running " + percent;
    case run::RunState::stopped: return "stopped at " + percent;
    case run::RunState::failed: return run.diverged != 0 ? "diverged" : "failed";
    default: return run::name_of(run.status);
  }
}

std::string difference_text(const run::Identity& own, const run::Identity& shown) {
  std::vector<std::string> parts;
  for (const run::IdentityDifference& difference : run::identity_differences(own, shown)) {
    const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
    const bool is_hash = difference.what.find("fingerprint") != std::string::npos ||
                         difference.what == "initial_weights" || difference.what == "program";
    parts.push_back(is_hash ? "other " + difference.what
                            : difference.what + " " + text(difference.left) +
                                  ", the run shown has " + text(difference.right));
  }
  return first_of(parts);
}

namespace {

/// Seeds that compute the same are one draw, not several; "" for a loss that no other seed had, or
/// that is not finite, as any run that diverges may end.
std::string why_no_other_draw(const store::RunSummary& run,
                              std::map<double, int64_t>& seed_of_loss) {
  const std::optional<double> loss = run.metric(results::eval_loss_name);
  if (!loss || !std::isfinite(*loss)) return "";
  const auto [first, is_new] = seed_of_loss.emplace(*loss, run.seed);
  if (is_new) return "";
  return "its loss is that of seed " + std::to_string(first->second) +
         " to the last bit: they count as one run";
}

/// Runs that differ in nothing but their seeds.
struct Alike {
  Runs runs;                ///< newest first
  std::set<int64_t> seeds;  ///< of the completed ones
  bool is_current = false;  ///< a completed one is of the config as it is now

  auto rank() const { return std::make_pair(is_current, seeds.size()); }
};

/// Of runs sorted newest first those that are one sample: alike but for the seed, of the config as
/// it is now if such runs completed, else with completed runs of the most seeds, and of several
/// such groups that of the newest run. Runs of another learning rate, say, measure something else
/// and must never be averaged with them.
Runs runs_of_one_sample(const Runs& runs,
                        std::vector<ExcludedRuns>& excluded,
                        const std::string& metric,
                        const IsCurrent& is_current) {
  if (runs.size() < 2) return runs;
  const auto identity_of = [&](const ConfiguredRun& run) { return setup_for(metric, run); };
  std::vector<Alike> groups;
  std::map<std::string, size_t> places;
  for (const ConfiguredRun* run : runs) {
    const auto [place, is_new] =
        places.emplace(run::identity_hash(identity_of(*run)), groups.size());
    if (is_new) groups.emplace_back();
    Alike& group = groups[place->second];
    group.runs.push_back(run);
    if (!is_completed(run)) continue;
    group.seeds.insert(run->summary.seed);
    if (is_current && is_current(*run)) group.is_current = true;
  }
  const auto shown =
      std::max_element(groups.begin(), groups.end(), [](const Alike& a, const Alike& b) {
        return a.rank() < b.rank();
      });
  const run::Identity identity = identity_of(*shown->runs.front());
  for (const Alike& group : groups) {
    if (&group == &*shown) continue;
    const std::string differs = difference_text(identity_of(*group.runs.front()), identity);
    for (const ConfiguredRun* run : group.runs)
      exclude(run->summary, is_completed(run) ? differs : state_text(run->summary), excluded);
  }
  return shown->runs;
}

}  // namespace

/// Newest first; the names decide between runs of one moment, so that the order is always the same.
Runs newest_first(const std::vector<ConfiguredRun>& runs) {
  Runs sorted;
  for (const ConfiguredRun& run : runs) sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(), [](const ConfiguredRun* a, const ConfiguredRun* b) {
    return std::tie(begun_at(a->summary), a->summary.id) >
           std::tie(begun_at(b->summary), b->summary.id);
  });
  return sorted;
}

namespace {

/// Whether the seeds have one loss to the last bit: then they are one run. Where only some are
/// equal the row keeps them all, or its mean would be that of those that differ
/// (check_completeness).
bool have_one_loss(const std::map<int64_t, const store::RunSummary*>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const auto& each) {
    return have_same_loss(*each.second, *runs.begin()->second);
  });
}

}  // namespace

bool have_same_loss(const store::RunSummary& a, const store::RunSummary& b) {
  const double left = a.metric(results::eval_loss_name).value_or(std::nan(""));
  const double right = b.metric(results::eval_loss_name).value_or(std::nan(""));
  return left == right || (std::isnan(left) && std::isnan(right));
}

std::string why_repeated(const store::RunSummary& run) {
  return run.repeats.empty() ? ""
                             : "continues a run that repeats an older one with another loss, and a "
                               "seed's first run counts";
}

Sample sample_of(const Runs& candidates,
                 std::vector<ExcludedRuns>& excluded,
                 const std::string& metric,
                 const IsCurrent& is_current) {
  const Runs runs = runs_of_one_sample(candidates, excluded, metric, is_current);
  Sample sample;
  std::set<int64_t> seeds;
  std::map<double, int64_t> seed_of_loss;
  std::vector<std::pair<const store::RunSummary*, std::string>> not_shown;
  std::map<int64_t, const store::RunSummary*> firsts;
  for (auto each = runs.rbegin(); each != runs.rend(); ++each)
    if (is_completed(*each)) firsts.emplace((*each)->summary.seed, &(*each)->summary);
  const bool are_one = have_one_loss(firsts);
  for (const ConfiguredRun* each : runs) {
    const store::RunSummary& run = each->summary;
    std::string reason;
    if (!is_completed(each)) {
      reason = state_text(run);
    } else if (const store::RunSummary& first = *firsts.at(run.seed); !have_same_loss(run, first)) {
      reason = "repeats " + first.id + " with another loss, and a seed's first run counts";
    } else if (!seeds.insert(run.seed).second) {
      reason = "older than the run shown";
    } else if (sample.run && varied_by_seed(each->config) == "nothing") {
      reason = "its seed varies nothing: train.initial_weights and data.order_seed are fixed";
    } else if (are_one) {
      reason = why_no_other_draw(run, seed_of_loss);
    }
    if (reason.empty()) {
      if (!sample.run) sample.run = run;
      sample.runs.push_back(run);
    } else {
      not_shown.emplace_back(&run, std::move(reason));
    }
  }
  for (auto each = runs.rbegin(); each != runs.rend(); ++each) {  // the oldest one first
    const store::RunSummary& run = (*each)->summary;
    const auto has_its_seed = [&](const store::RunSummary& other) {
      return other.seed == run.seed;
    };
    const auto any_of = [&](const std::vector<store::RunSummary>& list) {
      return std::any_of(list.begin(), list.end(), has_its_seed);
    };
    if (is_completed(*each) && any_of(sample.runs) && !any_of(sample.first_runs))
      sample.first_runs.push_back(run);
  }
  for (const ConfiguredRun* each : runs) {
    const run::RunState state = each->summary.status;
    if (state != run::RunState::failed && state != run::RunState::stopped) continue;
    const int64_t seed = each->summary.seed;
    const bool is_shown = seeds.count(seed) > 0;
    (is_shown ? sample.repeated : sample.ended_early).insert(seed);
    if (!is_shown && each->summary.diverged != 0) sample.diverged.insert(seed);
  }
  if (!sample.run && !runs.empty()) sample.run = runs.front()->summary;
  for (const auto& [run, reason] : not_shown) {
    const bool is_told = !sample.completed() && run->diverged != 0;  // that all of it diverged
    if (run->id != sample.run->id && !is_told) exclude(*run, reason, excluded);
  }
  std::sort(sample.runs.begin(), sample.runs.end(), [](const auto& a, const auto& b) {
    return a.seed < b.seed;
  });
  return sample;
}

void exclude(const store::RunSummary& run,
             const std::string& reason,
             std::vector<ExcludedRuns>& excluded) {
  const auto found = std::find_if(excluded.begin(), excluded.end(), [&](const ExcludedRuns& entry) {
    return entry.config == run.config && entry.reason == reason;
  });
  if (found != excluded.end()) {
    found->runs.push_back(run.id);
  } else {
    excluded.push_back({run.config, reason, {run.id}});
  }
}

double disturbing_load(const store::RunSummary& run) {
  return run.device_type == "cuda" ? 0.25 : 0.05;
}

bool was_loaded(const store::RunSummary& run) {
  return run.busy_elsewhere.value_or(0) >= disturbing_load(run) || run.shared_device != 0 ||
         run.stopped_seconds.has_value();
}

bool was_loaded(const Sample& sample) {
  return std::any_of(sample.runs.begin(), sample.runs.end(), [](const store::RunSummary& run) {
    return was_loaded(run);
  });
}

std::string load_text(const store::RunSummary& run) {
  std::vector<std::string> parts;
  if (run.busy_elsewhere.value_or(0) >= disturbing_load(run))
    parts.push_back("other processes kept " + results::percent_text(*run.busy_elsewhere) +
                    " of the machine busy");
  if (run.shared_device != 0) parts.emplace_back("another process held memory of its GPU");
  if (run.stopped_seconds)
    parts.push_back("its worker was stopped for " + human_duration(*run.stopped_seconds));
  return join(parts, " and ");
}

std::string load_text(const Sample& sample) {
  const auto rank = [](const store::RunSummary& run) {
    return std::make_tuple(
        run.shared_device, run.stopped_seconds.value_or(0), run.busy_elsewhere.value_or(0));
  };
  const auto most =
      std::max_element(sample.runs.begin(), sample.runs.end(), [&](const auto& a, const auto& b) {
        return rank(a) < rank(b);
      });
  return most == sample.runs.end() ? "" : load_text(*most);
}

std::string unreliable_timing_text(const std::vector<std::string>& names, const Sample& sample) {
  return join(names, ", ") + ": " + load_text(sample) + (names.size() > 1 ? " at the most" : "") +
         ": timing unreliable; measure with 'forge bench' on an idle machine";
}

std::string changed_inputs_text(const store::RunSummary& run) {
  return run.changed_inputs.empty() ? "" : run::changed_inputs_text(run.changed_inputs);
}

std::string changed_inputs_text(const Sample& sample) {
  std::vector<std::string> runs;
  for (const store::RunSummary& run : sample.runs) {
    if (!run.changed_inputs.empty()) runs.push_back(run.id + ": " + changed_inputs_text(run));
  }
  return join(runs, "; ");
}

}  // namespace forge::tables
