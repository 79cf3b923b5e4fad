#include "app/halving_search.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/run/halving_runs.h"

namespace forge::app {
namespace {

std::string config_of(const CheckedRun& run) {
  return run.resolved.project + ":" + run.resolved.config_name;
}

/// The runs of each config, in their order.
std::vector<std::vector<const CheckedRun*>> by_config(const std::vector<CheckedRun>& runs) {
  std::vector<std::vector<const CheckedRun*>> groups;
  std::map<std::string, size_t> places;
  for (const CheckedRun& run : runs) {
    const auto [found, is_new] = places.try_emplace(config_of(run), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&run);
  }
  return groups;
}

/// Throws Error for a key in which runs differ that have to be alike to be compared.
void require_alike(const CheckedRun& first, const CheckedRun& other) {
  for (const char* key : {"seed",
                          "profile",
                          "data",
                          "tokenizer",
                          "train.max_steps",
                          "train.seq_len",
                          "train.eval_rows",
                          "train.validation_rows",
                          "train.eval_every"}) {
    const nlohmann::json* const left = find_value(first.resolved.json, key);
    const nlohmann::json* const right = find_value(other.resolved.json, key);
    if (!left && !right) continue;
    if (left && right && *left == *right) continue;
    throw Error("halving cannot compare runs that differ in '" + std::string(key) +
                    "': " + first.label + " and " + other.label,
                std::string(key) == "seed" ? "search with one seed, and train the best with several"
                                           : "leave it out of the sweep");
  }
}

void require_evaluation(const CheckedRun& run, const run::HalvingRule& rule) {
  const config::Experiment& experiment = run.resolved.experiment;
  if (rule.by == "validation_loss" && experiment.train.validation_rows == 0)
    throw Error(
        run.label + ": halving compares validation_loss, and the run has no validation rows",
        "--set train.validation_rows=200 holds some back, or compare eval_loss");
  if (rule.is_by_score() && experiment.data.source != "task")
    throw Error(run.label + ": halving compares " + rule.by +
                    ", and only a synthetic task has scores (data.source is " +
                    experiment.data.source + ")",
                "compare eval_loss");
  const config::TrainConfig& train = experiment.train;
  if (train.eval_every > 0 && rule.first % train.eval_every == 0) return;
  throw Error(run.label + ": halving compares runs after " + with_thousands(rule.first) +
                  " steps, and train.eval_every is " + std::to_string(train.eval_every),
              "'first' is a multiple of train.eval_every: --set train.eval_every=" +
                  std::to_string(rule.first) + " evaluates there");
}

std::vector<int64_t> steps_of(const CheckedRun& run, const run::HalvingRule& rule) {
  return run::rung_steps(rule, run.resolved.experiment.train.max_steps);
}

std::string value_text(const run::HalvingRule& rule, double loss) {
  return rule.by + " " + results::fixed_text(rule.takes_highest() ? -loss : loss, 4);
}

}  // namespace

run::HalvingRule settled_rule(run::HalvingRule rule, const std::vector<CheckedRun>& runs) {
  const bool can_choose = std::all_of(runs.begin(), runs.end(), [](const CheckedRun& run) {
    return run.resolved.experiment.train.validation_rows > 0;
  });
  if (rule.by.empty()) rule.by = can_choose ? "validation_loss" : "eval_loss";
  if (!rule.take_highest) rule.take_highest = results::metric_named(rule.by).higher_is_better();
  return rule;
}

void check_halving(const std::vector<CheckedRun>& runs, const run::HalvingRule& rule) {
  const results::Metric metric = results::metric_named(rule.by);
  if (rule.is_by_score() && metric.source != results::Source::task)
    throw Error("halving cannot compare " + rule.by + ", which not every evaluation has",
                "compare validation_loss, eval_loss or a score of the task; best_of in a table "
                "chooses among the completed runs by " +
                    rule.by);
  for (const auto& group : by_config(runs)) {
    for (const CheckedRun* run : group) {
      require_alike(*group.front(), *run);
      require_evaluation(*run, rule);
    }
    steps_of(*group.front(), rule);
  }
}

HalvingSearch::HalvingSearch(std::vector<HalvedRun> runs, const run::HalvingRule& rule)
    : rule_(rule), runs_(std::move(runs)) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const auto [found, is_new] = places.try_emplace(config_of(*runs_[i].checked), groups_.size());
    if (is_new) groups_.push_back({steps_of(*runs_[i].checked, rule_), {}, {}});
    Group& group = groups_[found->second];
    members_.push_back({found->second, group.runs.size()});
    group.runs.push_back(i);
    group.contestants.emplace_back();
    read(i);
  }
}

run::Contestant& HalvingSearch::contestant(size_t run) {
  return groups_[members_[run].group].contestants[members_[run].place];
}

const run::Contestant& HalvingSearch::contestant(size_t run) const {
  return groups_[members_[run].group].contestants[members_[run].place];
}

void HalvingSearch::read(size_t run) {
  contestant(run) = run::read_contestant(
      runs_[run].pending.planned.folder, rule_, groups_[members_[run].group].rung_steps);
}

namespace {

bool has_active(const std::vector<run::Contestant>& contestants) {
  return std::any_of(contestants.begin(), contestants.end(), [](const auto& contestant) {
    return contestant.is_active;
  });
}

}  // namespace

void HalvingSearch::on_end(size_t number, const Outcome& outcome) {
  const size_t run = sent_[number];
  const int aim = contestant(run).aim;
  try {
    read(run);
  } catch (const Error& problem) {
    if (!problem_) problem_ = problem;  // the same of every run
    contestant(run).is_out = true;
  }
  run::Contestant& now = contestant(run);
  // Where it stopped at a rung, that may be a lower one, to which another command had sent it.
  if (!outcome.status.halved) now.aim = std::max(now.aim, aim);
  now.is_active = false;
  const run::RunState state = outcome.status.state;
  const bool went_well = state == run::RunState::completed || state == run::RunState::stopped;
  Group& group = groups_[members_[run].group];
  const bool is_withdrawn = outcome.ending != Ending::ended;
  const bool by_hand = is_withdrawn || (state == run::RunState::stopped && !outcome.status.halved);
  const bool is_last = !has_active(group.contestants);
  group.is_left = by_hand && is_last;
  if (run::is_stopped_with_all(outcome.status.reason) || (is_withdrawn && is_last))
    group.is_given_up = true;
  // One that a person stopped on its way, or that failed, waits for the next command.
  if (is_withdrawn || !went_well || !now.has_arrived()) now.is_out = true;
}

PendingRun HalvingSearch::sent(Group& group, const run::NextRun& next) {
  const size_t number = group.runs[next.contestant];
  run::Contestant& contestant = group.contestants[next.contestant];
  PendingRun pending = runs_[number].pending;
  const int64_t step = group.rung_steps[size_t(next.rung)];
  pending.stop_after = step;
  if (!contestant.losses.empty()) {
    const size_t last = contestant.losses.size() - 1;
    pending.planned.action = run::Action::resume;
    pending.planned.attempt = pending.planned.folder.status().attempt;
    pending.made.clear();
    pending.what = "goes on to step " + with_thousands(step) + ", with " +
                   value_text(rule_, contestant.losses[last]) + " at step " +
                   with_thousands(group.rung_steps[last]);
  } else {
    pending.what += ", at first to step " + with_thousands(step);
  }
  contestant.aim = next.rung;
  contestant.is_active = true;
  group.knows_others = false;
  sent_.push_back(number);
  return pending;
}

std::vector<PendingRun> HalvingSearch::next(const Following& now) {
  std::vector<PendingRun> pending;
  if (!began_) {
    began_ = true;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].pending.planned.action != run::Action::running) continue;
      contestant(i).aim = std::max(contestant(i).aim, int(contestant(i).losses.size()));
      contestant(i).is_active = true;
      sent_.push_back(i);
      // The queue would take no step for its last one.
      const std::vector<int64_t>& steps = groups_[members_[i].group].rung_steps;
      pending.push_back(runs_[i].pending);
      pending.back().stop_after = steps[std::min(size_t(contestant(i).aim), steps.size() - 1)];
    }
  }
  most_running_ = std::max(most_running_, now.running);
  const bool is_device_free = now.waiting == 0 && now.running < most_running_;
  for (Group& group : groups_) {
    if (group.is_given_up) continue;
    group.is_left = false;  // this command goes on: somebody took one of its values out
    for (const run::NextRun& run : current(group, pending.empty() && is_device_free))
      pending.push_back(sent(group, run));
  }
  return pending;
}

std::vector<run::NextRun> HalvingSearch::current(Group& group, bool may_guess) {
  while (true) {
    std::vector<run::NextRun> next =
        run::next_runs(group.contestants, rule_.eta, int(group.rung_steps.size()));
    std::vector<run::NextRun> chosen;
    std::copy_if(next.begin(), next.end(), std::back_inserter(chosen), [](const auto& run) {
      return run.is_certain;
    });
    if (chosen.empty() && !next.empty() && may_guess) chosen = {next.front()};
    bool is_news = false;
    for (const run::NextRun& run : chosen) {
      const run::Contestant before = group.contestants[run.contestant];
      read(group.runs[run.contestant]);
      const run::Contestant& now = group.contestants[run.contestant];
      is_news = is_news || now.aim != before.aim || now.losses.size() != before.losses.size();
    }
    if (is_news || (chosen.empty() && take_others_news(group))) continue;
    return chosen;
  }
}

bool HalvingSearch::take_others_news(Group& group) {
  if (has_active(group.contestants) || group.knows_others) return false;
  group.knows_others = true;
  bool is_news = false;
  for (size_t place = 0; place < group.runs.size(); ++place) {
    const run::RunFolder& folder = runs_[group.runs[place]].pending.planned.folder;
    try {
      const run::Contestant now = run::read_contestant(folder, rule_, group.rung_steps);
      if (now.losses.size() <= group.contestants[place].losses.size()) continue;
      group.contestants[place] = now;
      is_news = true;
    } catch (const Error&) {
      // What it lacks was said where this search met it.
    }
  }
  return is_news;
}

std::vector<std::string> HalvingSearch::ranked_ids() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (contestant(i).aim >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    const std::vector<double>& ours = contestant(left).losses;
    const std::vector<double>& theirs = contestant(right).losses;
    if (members_[left].group != members_[right].group)
      return members_[left].group < members_[right].group;
    if (ours.size() != theirs.size()) return ours.size() > theirs.size();
    return !ours.empty() && run::is_better(ours.back(), theirs.back());
  });
  return texts_of(order, [&](size_t run) { return runs_[run].pending.planned.record.id; });
}

std::string HalvingSearch::summary() const {
  std::string text;
  for (const Group& group : groups_) {
    const std::vector<int64_t> counts =
        run::counts_at(group.contestants, int(group.rung_steps.size()));
    const int64_t all = int64_t(group.runs.size()) * group.rung_steps.back();
    text += "halving " + runs_[group.runs.front()].checked->resolved.config_name + " by " +
            rule_.by + ": " + run::counts_text(counts, group.rung_steps) + "; " +
            with_thousands(run::total_steps(counts, group.rung_steps)) + " of " +
            with_thousands(all) + " steps\n" + best_text(group);
  }
  return text;
}

bool HalvingSearch::ends_without_best() const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    const int rungs = int(group.rung_steps.size());
    return !group.is_stopped() && run::next_runs(group.contestants, rule_.eta, rungs).empty() &&
           !run::best_contestant(group.contestants, rungs);
  });
}

std::string HalvingSearch::best_text(const Group& group) const {
  if (group.is_stopped()) return "there is no best yet: the search was stopped before its end\n";
  const std::optional<size_t> best =
      run::best_contestant(group.contestants, int(group.rung_steps.size()));
  if (!best)
    return "there is no best: no run has a finite " + rule_.by + " after " +
           with_thousands(group.rung_steps.back()) + " steps\n";
  return "the best is " + tables::printable(runs_[group.runs[*best]].pending.label) + " with " +
         value_text(rule_, group.contestants[*best].losses.back()) + "\n";
}

HalvingOutlook foresee_halving(const std::vector<CheckedRun>& runs,
                               const std::vector<std::optional<run::RunFolder>>& folders,
                               const run::HalvingRule& rule) {
  HalvingOutlook outlook{std::vector<int64_t>(runs.size()), std::vector<bool>(runs.size()), ""};
  for (const auto& group : by_config(runs)) {
    const std::vector<int64_t> steps = steps_of(*group.front(), rule);
    const int rungs = int(steps.size());
    std::vector<run::Contestant> now;
    for (const CheckedRun* run : group) {
      const auto& folder = folders[size_t(run - runs.data())];
      now.push_back(folder ? run::read_contestant(*folder, rule, steps) : run::Contestant());
    }
    const std::vector<run::Contestant> end = run::expected_end(now, rule.eta, rungs);
    for (size_t i = 0; i < group.size(); ++i) {
      const auto number = size_t(group[i] - runs.data());
      const size_t reached = end[i].losses.size();
      outlook.ends[number] = reached == 0 ? 0 : steps[reached - 1];
      outlook.is_out[number] =
          reached == now[i].losses.size() && reached > 0 && reached < steps.size();
    }
    const auto done = run::counts_at(now, rungs), counts = run::counts_at(end, rungs);
    const int64_t left = run::total_steps(counts, steps) - run::total_steps(done, steps);
    const auto count = int64_t(group.size());
    outlook.text += "halving " + group.front()->resolved.config_name + " by " + rule.by + ": " +
                    run::counts_text(counts, steps) + ": " +
                    with_thousands(run::total_steps(counts, steps)) + " of " +
                    with_thousands(count * steps.back()) + " steps; ";
    if (left == 0) {
      outlook.text += "none is left, the search is over\n";
    } else if (done.front() > 0) {
      outlook.text += with_thousands(left) + " are left\n";
    } else {
      outlook.text +=
          "at most " +
          with_thousands(run::total_steps(run::most_counts(count, rule.eta, rungs), steps)) +
          " where several run at once and each is better than those before\n";
    }
  }
  return outlook;
}

}  // namespace forge::app
