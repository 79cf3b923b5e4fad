#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::config {

/// Known values of schedule.type.
const std::vector<std::string>& schedule_types();

/// Learning rate of step `step` (0-based) for a peak rate `lr` and a run of N = max_steps. With W =
/// warmup_steps all begin with lr*t/W for t < W, so that the first step moves nothing, and with
/// r = lr_min_ratio and x = (t-W)/(N-W) go on:
///   infinite_lr (Forgather's InfiniteLRScheduler):
///     t < W+C: K + (lr-K)/2*(1+cos(pi*(t-W)/C));
///     P >= 0 and t >= P: m + (K-m)*exp(-(t-P)/tau); else K (lr where C is 0)
///     with C cooldown_steps, K constant_lr, P checkpoint_step, m min_lr
///   the others are lr times a factor of Meta Lingua's scheduler:
///   cosine: r + (1-r)/2*(1 +- cos(pi*x^cosine_theta/cycle_length)), + in the even cycles of
///     N*cycle_length steps, - in the odd ones; r after N. At step N itself, which no run takes,
///     the second cycle begins
///   linear: from 1 to r at N, then r
///   inv_sqrt: (W/t)^exp_factor, at least r
///   wsd: 1, and in the last decay_fraction of each cycle 1/(p/r + 1-p) with p its progress
///   constant: 1
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step, int64_t max_steps);

}  // namespace forge::config
