#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/set_place.h"

/// What a table says is real. All that it tests is one family: the rows of every column against the
/// baseline, which row is the best, and the claims.
namespace forge::tables {

/// What the runs of a table say of one of its claims.
struct JudgedClaim {
  Verdict verdict = Verdict::not_decidable;
  std::string claim;         ///< "Canon-B has a lower eval loss than Llama"
  std::string reason;        ///< the measured value with its interval, or what is missing
  bool is_measured = false;  ///< `reason` is the measured value
  /// How large an error must be allowed for the runs to decide it; none: they do not test it.
  std::optional<double> p;
  bool asked_afterwards = false;    ///< when some of the runs were there already
  std::string changed_inputs = {};  ///< changed_inputs_text of the rows that it is about
  SetPlace place = {};              ///< of the rows that it is about
};

/// The claims of the table, in its order, with the verdict that the runs suggest and the p of that
/// one test. A claim is about runs of its profile and of the configs as they are now; if others are
/// shown it is not decidable, and its reason says what they suggest.
///
/// A verdict takes several seeds. For one seed the reason says what it suggests, for an accuracy or
/// validity with the sampling error of its cases. With best_of, every value must have a completed
/// run. p is 1 − the largest confidence at which the interval of the value lies within what is
/// claimed, or outside; of a difference it is that of the paired test if the seeds match, else of
/// Welch's. It is adjusted for the looks that were taken (row_comparison.h). A claim about metrics
/// that no seed changes is decided without a test.
std::vector<JudgedClaim> measured_claims(const Ablation& ablation);

/// How many of the claims that the table declares are tested, or would be if their runs were there
/// and compared: those about the profile that is shown and not about the models alone. So are those
/// that it does not judge because it has rows by a key.
size_t claims_to_test(const Ablation& ablation);

/// Cells and claims with what may be concluded from them.
struct Verdicts {
  CellsByMetric cells;  ///< of the primary metric and of every column
  std::vector<JudgedClaim> claims;
};

/// Half of the 5 % error that a table may make is for its primary metric, half for all other
/// columns and the claims; what one of them does not need goes to the others (Holm's procedure with
/// weights, statistics::weighted_holm_adjusted). All that the table declares counts, tested or not.
/// So at most 5 % of tables call anything real that is not. Comparisons of later sets of runs
/// (other_sets.h) have an error of their own, and no other comparison is surer or less sure for
/// them.
Verdicts verdicts_of(const Ablation& ablation);

/// "not decidable: Canon-B has a lower eval loss than Llama (no run of canon_b)"
std::string verdict_line(const JudgedClaim& judged);

}  // namespace forge::tables
