#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/follow_runs.h"
#include "app/launch.h"
#include "core/base/error.h"
#include "core/run/halving.h"
#include "core/run/run_folder.h"

namespace forge::app {

/// The rule with what it leaves open: what is compared, and which values of it are good.
run::HalvingRule settled_rule(run::HalvingRule rule, const std::vector<CheckedRun>& runs);

/// Throws Error where the runs cannot be compared at the rule's rungs: other lengths, seeds or
/// data, or no evaluation there. Runs of different configs are not compared with each other.
void check_halving(const std::vector<CheckedRun>& runs, const run::HalvingRule& rule);

/// A run of a search that is prepared.
struct HalvedRun {
  const CheckedRun* checked = nullptr;
  PendingRun pending;
};

/// The runs of a sweep under successive halving, each config a search of its own. Everything that
/// decides is read from the run folders, so that the same command goes on with a search that was
/// interrupted, and two processes may drive one search.
class HalvingSearch : public RunSource {
 public:
  HalvingSearch(std::vector<HalvedRun> runs, const run::HalvingRule& rule);

  size_t size() const override { return runs_.size(); }
  void on_end(size_t number, const Outcome& outcome) override;
  std::vector<PendingRun> next(const Following& now) override;

  /// Why the runs could not be compared, none: they could.
  const std::optional<Error>& problem() const { return problem_; }
  /// Whether the search of a config is over and none of its runs has a finite loss at the end.
  bool ends_without_best() const;
  /// Ids of the runs that have begun: those that came furthest first, then by what was compared.
  std::vector<std::string> ranked_ids() const;
  /// "halving by eval_loss: 9 runs to step 200, 3 to step 600, 1 to step 1,600; …", a line for each
  /// config.
  std::string summary() const;

 private:
  /// The runs of one config.
  struct Group {
    std::vector<int64_t> rung_steps;
    std::vector<size_t> runs;  ///< numbers among all
    std::vector<run::Contestant> contestants;
    bool knows_others = false;  ///< take_others_news
    /// The last run that was under way was stopped or withdrawn by a person, or by Ctrl-C.
    bool is_left = false;
    /// All runs were stopped or withdrawn: the search goes on with the next command.
    bool is_given_up = false;

    bool is_stopped() const { return is_left || is_given_up; }
  };
  struct Member {
    size_t group = 0;
    size_t place = 0;  ///< in the group
  };

  run::Contestant& contestant(size_t run);
  const run::Contestant& contestant(size_t run) const;
  void read(size_t run);
  /// "the best is train_llama (optimizer.lr=0.003) with eval_loss 1.2345"; "" before one is
  /// completed.
  std::string best_text(const Group& group) const;
  /// The group's runs to be sent on now, as their folders say: another process may drive the same
  /// search.
  std::vector<run::NextRun> current(Group& group, bool may_guess);
  /// At the end of the group's search: whether other commands have trained runs of it further since
  /// they were looked at, which counts here, too.
  bool take_others_news(Group& group);
  PendingRun sent(Group& group, const run::NextRun& next);

  run::HalvingRule rule_;
  std::vector<HalvedRun> runs_;
  std::vector<Group> groups_;
  std::vector<Member> members_;  ///< of each run
  std::vector<size_t> sent_;     ///< numbers of the runs that were given out, in order
  std::optional<Error> problem_;
  bool began_ = false;
  size_t most_running_ = 0;  ///< at once, until now: so many devices there are at least
};

/// What a search will take where one run is made at a time, as far as its runs have come.
struct HalvingOutlook {
  std::vector<int64_t> ends;  ///< of each run: the step up to which it is trained
  std::vector<bool> is_out;   ///< whether it has reached a rung from which others go on
  /// "9 runs to step 200, …: 5,200 of 14,400 steps; at most …", or how many are left of a search
  /// that has begun; a line for each config.
  std::string text;
};

/// `folders` are those of the runs; none: it is not known which.
HalvingOutlook foresee_halving(const std::vector<CheckedRun>& runs,
                               const std::vector<std::optional<run::RunFolder>>& folders,
                               const run::HalvingRule& rule);

}  // namespace forge::app
