#include "core/results/tables/repetitions.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"

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
  std::vector<const RunSummary*> by_end;
  for (const RunSummary& run : runs)
    if (run.status == run::RunState::completed) by_end.push_back(&run);
  std::sort(by_end.begin(), by_end.end(), [](const RunSummary* a, const RunSummary* b) {
    return std::tie(a->updated, a->id) < std::tie(b->updated, b->id);
  });
  FirstRuns first_runs;
  std::unordered_map<std::string, const RunSummary*> first_of_key;
  for (const RunSummary* run : by_end) {
    const RunSummary* first = run;
    const std::vector<std::string> keys = keys_of(*run);
    for (const std::string& key : keys) {
      const auto found = first_of_key.find(key);
      if (found != first_of_key.end() && found->second->updated <= run->created &&
          found->second->updated <= first->updated)
        first = found->second;
    }
    for (const std::string& key : keys) first_of_key.emplace(key, first);
    if (first != run) first_runs.emplace(run->id, *first);
  }
  return first_runs;
}

namespace {

std::array<std::string, 3> name_of(const RunSummary& run) {
  return {run.workspace, run.project, run.config};
}

}  // namespace

RunHistory::RunHistory(const Runs& runs, const FirstRuns& repetitions) : repetitions_(repetitions) {
  for (const RunSummary* run : runs) {
    by_name_[name_of(*run)].push_back(run);
    if (run->status == run::RunState::completed) alike_[first_id_of(*run)].push_back(run);
  }
}

std::set<std::string> RunHistory::behind(const Runs& runs,
                                         const std::optional<std::string>& until) const {
  std::set<std::string> ids;
  Runs to_follow;
  const auto add_name_of = [&](const RunSummary& run) {
    for (const RunSummary* each : by_name_.at(name_of(run)))
      if (ids.insert(each->id).second) to_follow.push_back(each);
  };
  for (const RunSummary* run : runs) add_name_of(*run);
  while (!to_follow.empty()) {
    const RunSummary& run = *to_follow.back();
    to_follow.pop_back();
    const auto alike = alike_.find(first_id_of(run));
    if (alike == alike_.end() || (until && run.created > *until)) continue;
    for (const RunSummary* other : alike->second)
      if (other->updated <= run.created && ids.count(other->id) == 0) add_name_of(*other);
  }
  return ids;
}

const std::string& RunHistory::first_id_of(const RunSummary& run) const {
  const auto first = repetitions_.find(run.id);
  return first == repetitions_.end() ? run.id : first->second.id;
}

}  // namespace forge::tables
