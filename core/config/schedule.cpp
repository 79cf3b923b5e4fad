#include "core/config/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::config {
namespace {

constexpr double pi = 3.14159265358979323846;

/// 1 at progress 0, 0 at progress 1, along half a cosine; the reverse where `sign` is -1.
double half_cosine(double progress, double sign = 1) {
  return (1 + sign * std::cos(pi * progress)) / 2;
}

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

// The factors below are those of Meta Lingua's schedulers, their behaviour at the last step and
// beyond it included.

/// Part of the way from the end of the warm-up to the end of the run.
double progress_of(const ScheduleConfig& schedule, int64_t step, int64_t max_steps) {
  return static_cast<double>(step - schedule.warmup_steps) /
         static_cast<double>(max_steps - schedule.warmup_steps);
}

double cosine(const ScheduleConfig& schedule, int64_t step, int64_t max_steps) {
  const double lowest = schedule.lr_min_ratio;
  if (step > max_steps || max_steps <= schedule.warmup_steps) return lowest;
  const double steps_of_cycle = static_cast<double>(max_steps) * schedule.cycle_length;
  const double cycle = std::floor(static_cast<double>(step) / steps_of_cycle);
  const double sign = std::fmod(cycle, 2) == 0 ? 1 : -1;
  const double bent = std::pow(progress_of(schedule, step, max_steps), schedule.cosine_theta);
  return lowest + (1 - lowest) * half_cosine(bent / schedule.cycle_length, sign);
}

double linear(const ScheduleConfig& schedule, int64_t step, int64_t max_steps) {
  if (step > max_steps || max_steps <= schedule.warmup_steps) return schedule.lr_min_ratio;
  const double progress = progress_of(schedule, step, max_steps);
  return progress * schedule.lr_min_ratio + (1 - progress);
}

double inv_sqrt(const ScheduleConfig& schedule, int64_t step) {
  const double warmup = std::pow(static_cast<double>(schedule.warmup_steps), schedule.exp_factor);
  const double now = std::pow(static_cast<double>(step), schedule.exp_factor);
  return std::max(warmup / now, schedule.lr_min_ratio);
}

double wsd(const ScheduleConfig& schedule, int64_t step, int64_t max_steps) {
  const auto cycle =
      static_cast<int64_t>(static_cast<double>(max_steps) * schedule.cycle_length);  // steps
  // The end of the run belongs to the cycle that ends there.
  const int64_t end = step == max_steps ? max_steps : cycle * (step / cycle + 1);
  const auto decay = static_cast<int64_t>(static_cast<double>(end) * schedule.decay_fraction);
  if (step <= end - decay) return 1;
  const double progress = static_cast<double>(step - (end - decay)) / static_cast<double>(decay);
  return 1 / (progress * (1 / schedule.lr_min_ratio) + (1 - progress));
}

}  // namespace

const std::vector<std::string>& schedule_types() {
  static const std::vector<std::string> types = {
      "infinite_lr", "cosine", "linear", "inv_sqrt", "wsd", "constant"};
  return types;
}

double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step, int64_t max_steps) {
  if (step < schedule.warmup_steps) {
    return lr * (static_cast<double>(step) / static_cast<double>(schedule.warmup_steps));
  }
  if (schedule.type == "infinite_lr") return infinite_lr(schedule, lr, step);
  if (schedule.type == "cosine") return lr * cosine(schedule, step, max_steps);
  if (schedule.type == "linear") return lr * linear(schedule, step, max_steps);
  if (schedule.type == "inv_sqrt") return lr * inv_sqrt(schedule, step);
  if (schedule.type == "wsd") return lr * wsd(schedule, step, max_steps);
  if (schedule.type == "constant") return lr;
  throw Error("schedule.type '" + schedule.type + "' is not one of " + join(schedule_types(), ", "),
              did_you_mean(schedule.type, schedule_types()));
}

}  // namespace forge::config
