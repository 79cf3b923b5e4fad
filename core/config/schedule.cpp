#include "core/config/schedule.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::config {
namespace {

constexpr double pi = 3.14159265358979323846;

/// 1 at progress 0, 0 at progress 1, along half a cosine.
double half_cosine(double progress) { return (1 + std::cos(pi * progress)) / 2; }

double infinite_lr(const ScheduleConfig& schedule, double lr, int64_t step) {
  const double constant = schedule.constant_lr;
  const int64_t cooled = step - schedule.warmup_steps;
  if (cooled < schedule.cooldown_steps) {
    const double progress =
        static_cast<double>(cooled) / static_cast<double>(schedule.cooldown_steps);
    return constant + (lr - constant) * half_cosine(progress);
  }
  if (schedule.checkpoint_step >= 0 && step >= schedule.checkpoint_step) {
    const double annealed = static_cast<double>(step - schedule.checkpoint_step);
    return schedule.min_lr + (constant - schedule.min_lr) * std::exp(-annealed / schedule.tau);
  }
  return schedule.cooldown_steps == 0 ? lr : constant;
}

double cosine(const ScheduleConfig& schedule, double lr, int64_t step, int64_t max_steps) {
  if (step >= max_steps) return lr * schedule.lr_min_ratio;
  const double progress = static_cast<double>(step - schedule.warmup_steps) /
                          static_cast<double>(max_steps - schedule.warmup_steps);
  return lr * (schedule.lr_min_ratio + (1 - schedule.lr_min_ratio) * half_cosine(progress));
}

}  // namespace

double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step, int64_t max_steps) {
  if (step < schedule.warmup_steps) {
    return lr * (static_cast<double>(step) / static_cast<double>(schedule.warmup_steps));
  }
  if (schedule.type == "infinite_lr") return infinite_lr(schedule, lr, step);
  if (schedule.type == "cosine") return cosine(schedule, lr, step, max_steps);
  if (schedule.type == "constant") return lr;
  throw Error("schedule.type '" + schedule.type + "' is not infinite_lr, cosine or constant",
              {},
              did_you_mean(schedule.type, {"infinite_lr", "cosine", "constant"}));
}

}  // namespace forge::config
