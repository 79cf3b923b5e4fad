#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace forge::run {

/// How the runs of a sweep are compared on their way, and how few of them go on: asynchronous
/// successive halving (ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning",
/// arXiv:1810.05934). A run stops at rungs, after `first`, first * eta, first * eta^2, … steps; of
/// those that have reached a rung the best 1/eta go on to the next one, and the last rung is the
/// run's full length.
struct HalvingRule {
  int64_t first = 0;  ///< step of the first rung
  int64_t eta = 3;    ///< one of `eta` runs goes on
  /// eval_loss, validation_loss or the name of a score of every evaluation. "": not said, and
  /// validation_loss where the runs have it, else eval_loss.
  std::string by;
  /// Which values of it are good; none: not said, and the lowest as long as nobody settles it.
  std::optional<bool> take_highest = {};

  bool takes_highest() const { return take_highest.value_or(false); }

  bool is_by_score() const { return !by.empty() && by != "eval_loss" && by != "validation_loss"; }
};

/// The steps of the rungs, the last one max_steps. Throws Error where none is before max_steps.
std::vector<int64_t> rung_steps(const HalvingRule& rule, int64_t max_steps);

/// Why a run stopped at a rung: "stopped at 400 of 1,600 steps by halving".
std::string halved_text(int64_t step, int64_t max_steps);
/// Whether a stopped run's reason is that.
bool is_halved(const std::string& reason);

/// A run of a search as far as it is known. Rungs are counted from 0.
struct Contestant {
  std::vector<double> losses;  ///< at the rungs that it has reached; lower is better
  int aim = -1;                ///< the rung to which it was sent, -1: it has not begun
  bool is_active = false;      ///< it is on its way there: it runs, or waits in the queue
  bool is_out = false;         ///< it failed on its way there, which counts as the worst loss

  /// Whether it has reached the rung that it was sent to.
  bool has_arrived() const { return int(losses.size()) > aim; }
};

/// A run that may be sent to a rung.
struct NextRun {
  size_t contestant = 0;
  int rung = 0;
  /// No run that is still on its way could change this. Otherwise it is the best guess so far,
  /// for a device that would have nothing to do.
  bool is_certain = true;
};

/// Whether a loss is lower than another one; one that is not finite is the worst.
bool is_better(double loss, double other);

/// Of those that have a loss after the last rung the one with the lowest, the earlier of equal
/// ones; none where no such loss is finite.
std::optional<size_t> best_contestant(const std::vector<Contestant>& contestants, int rungs);

/// The runs that may begin or go on now, in this order: those that have not begun or were
/// interrupted, then the promotions of the lowest rung, best first. Where all that can reach a rung
/// have, its best 1/eta go on, at least one; before, the best 1/eta of those that have. Among equal
/// losses the earlier run is better. One that is not finite is never promoted. So with one run at a
/// time this is successive halving, and with several no device waits for the slowest run.
std::vector<NextRun> next_runs(const std::vector<Contestant>& contestants, int64_t eta, int rungs);

/// How far they come where one run goes on at a time. Who is sent on is as good there as at the
/// rung before, and the worst where it has not begun.
std::vector<Contestant> expected_end(std::vector<Contestant> contestants, int64_t eta, int rungs);

/// How many have reached each rung.
std::vector<int64_t> counts_at(const std::vector<Contestant>& contestants, int rungs);
/// How many of `runs` reach each rung at most, however they overtake each other: each may be better
/// than all before it.
std::vector<int64_t> most_counts(int64_t runs, int64_t eta, int rungs);

/// The steps that `counts` runs train up to the rungs, no step twice.
int64_t total_steps(const std::vector<int64_t>& counts, const std::vector<int64_t>& rung_steps);

/// "9 runs to step 200, 3 to step 600, 1 to step 1,600".
std::string counts_text(const std::vector<int64_t>& counts, const std::vector<int64_t>& rung_steps);

}  // namespace forge::run
