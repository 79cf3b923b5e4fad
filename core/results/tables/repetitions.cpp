#include "core/results/tables/repetitions.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/tables/run_times.h"

namespace forge::tables {
namespace {

using store::RunSummary;

/// The bits of a loss; "" where it is none that could tell runs apart.
std::string bits_of(const RunSummary& run, const std::string& metric) {
  const double loss = run.metric(metric).value_or(0);
  if (!(loss > 0)) return "";
  uint64_t bits = 0;
  std::memcpy(&bits, &loss, sizeof bits);
  return std::to_string(bits);
}

/// Two runs that share one of these have the same numbers.
std::vector<std::string> keys_of(const RunSummary& run) {
  const std::string trained = join(
      {std::to_string(run.seed), std::to_string(run.parameters), std::to_string(run.tokens)}, " ");
  std::vector<std::string> keys;
  for (const std::string metric : {results::eval_loss_name, results::train_loss_name}) {
    const std::string bits = bits_of(run, metric);
    if (bits.empty()) continue;
    const bool is_rounded = statistics::rounding_step({*run.metric(metric)}) > 0;
    if (is_rounded && metric == results::train_loss_name) continue;
    keys.push_back(join({metric, bits, trained, is_rounded ? run.key : ""}, " "));
  }
  return keys;
}

}  // namespace

FirstRuns first_runs_of(const std::vector<RunSummary>& runs) {
  std::vector<const RunSummary*> in_order;
  for (const RunSummary& run : runs)
    if (run.status == run::RunState::completed) in_order.push_back(&run);
  std::sort(in_order.begin(), in_order.end(), [](const RunSummary* a, const RunSummary* b) {
    return std::tie(told_at(*a), a->id) < std::tie(told_at(*b), b->id);
  });
  FirstRuns first_runs;
  std::unordered_map<std::string, const RunSummary*> first_of_key;
  for (const RunSummary* run : in_order) {
    const RunSummary* first = run;
    const std::vector<std::string> keys = keys_of(*run);
    for (const std::string& key : keys) {
      const auto found = first_of_key.find(key);
      if (found != first_of_key.end() && told_at(*found->second) <= made_at(*run) &&
          told_at(*found->second) <= told_at(*first))
        first = found->second;
    }
    for (const std::string& key : keys) first_of_key.emplace(key, first);
    if (first != run) first_runs.emplace(run->id, *first);
  }
  return first_runs;
}

RunHistory::RunHistory(const Runs& runs, const FirstRuns& repetitions) : repetitions_(repetitions) {
  for (const RunSummary* run : runs) {
    by_name_[name_of(*run)].push_back(run);
    if (run->status == run::RunState::completed) alike_[first_id_of(*run)].push_back(run);
  }
  for (const RunSummary* run : runs) {
    const auto [project, config] = name_of(*run);
    for (const RunSummary* older : older_ones_of(*run)) {
      const auto [original, its_config] = name_of(*older);
      if (original == project || its_config != config) continue;
      const auto [time, is_new] = copied_[project].emplace(original, made_at(*run));
      if (!is_new) time->second = std::min(time->second, made_at(*run));
    }
  }
}

std::set<std::string> RunHistory::behind(const Runs& runs,
                                         const std::optional<std::string>& until) const {
  std::set<Name> names;
  std::vector<Name> to_follow;
  const auto add = [&](const Name& name) {
    if (names.insert(name).second) to_follow.push_back(name);
  };
  const auto is_later = [&](const std::string& time) { return until && time > *until; };
  for (const RunSummary* run : runs) add(name_of(*run));
  std::set<std::string> ids;
  while (!to_follow.empty()) {
    const Name name = to_follow.back();
    to_follow.pop_back();
    if (const auto copy = copied_.find(name.first); copy != copied_.end())
      for (const auto& [original, time] : copy->second)
        if (!is_later(time)) add({original, name.second});
    const auto named_so = by_name_.find(name);
    if (named_so == by_name_.end()) continue;
    for (const RunSummary* run : named_so->second) {
      ids.insert(run->id);
      if (is_later(made_at(*run))) continue;
      for (const RunSummary* older : older_ones_of(*run)) add(name_of(*older));
    }
  }
  return ids;
}

RunHistory::Name RunHistory::name_of(const RunSummary& run) {
  return {{run.workspace, run.project}, run.config};
}

const std::string& RunHistory::first_id_of(const RunSummary& run) const {
  const auto first = repetitions_.find(run.id);
  return first == repetitions_.end() ? run.id : first->second.id;
}

RunHistory::Runs RunHistory::older_ones_of(const RunSummary& run) const {
  Runs older;
  const auto alike = alike_.find(first_id_of(run));
  if (alike == alike_.end()) return older;
  for (const RunSummary* other : alike->second)
    if (other->id != run.id && told_at(*other) <= made_at(run)) older.push_back(other);
  return older;
}

}  // namespace forge::tables
