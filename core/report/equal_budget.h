#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

/// The evaluation losses of a run, by step.
using Evaluations = std::function<std::vector<store::LossPoint>(const std::string& run_id)>;

/// Fills in what the rows' losses were when each had been given as much as the others: as much
/// training time as the row that was done first took for all its tokens, and as many floating point
/// operations as the row that needs the fewest. At equal tokens a dearer model has had more of
/// both. Time is tokens over the row's speed, evaluations and pauses left out; operations are those
/// of core/model/arithmetic.h. Between two evaluations the loss is taken to be straight in the
/// logarithm of the tokens; before the first one it is not known, nor is it for a row that breaks
/// the comparison or, for time, was run on another device than the baseline.
///
/// A run that has not come to its end has not come to the end of its schedule either: the loss of a
/// run that was made for the smaller budget may be lower.
///
/// `flops_per_token` is asked for the newest run of a row.
void add_equal_budgets(Ablation& ablation,
                       const Evaluations& evaluations,
                       const std::function<double(const store::RunSummary&)>& flops_per_token);

/// The loss after so many tokens; NaN before the first evaluation and for none. Behind the last one
/// it is the last one's.
double loss_after(double tokens, const std::vector<store::LossPoint>& evaluations);

}  // namespace forge::report
