#pragma once

#include <cstdint>

#include "core/config/experiment.h"

namespace forge::config {

/// Learning rate of step `step` (0-based) for a peak rate `lr` and a run of `max_steps`.
///   infinite_lr (Forgather's InfiniteLRScheduler):
///     t < W: lr*t/W; t < W+C: K + (lr-K)/2*(1+cos(pi*(t-W)/C));
///     P >= 0 and t >= P: m + (K-m)*exp(-(t-P)/tau); else K (lr where C is 0)
///     with W warmup_steps, C cooldown_steps, K constant_lr, P checkpoint_step, m min_lr
///   cosine (lingua): t < W: lr*t/W; then to lr*lr_min_ratio along half a cosine at max_steps
///   constant: lr after the warm-up
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step, int64_t max_steps);

}  // namespace forge::config
