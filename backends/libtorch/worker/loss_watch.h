#pragma once

#include <string>

#include "backends/libtorch/model/llama_canon.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// Sums over steps that came one after another.
struct Stretch {
  int64_t last_step = 0;  ///< count of the steps done with the last of them
  int64_t steps = 0;
  double loss = 0;
  double gradient_norm = 0;
};

/// Tells whether the losses of a training run still make sense. A stretch of steps is bad where its
/// loss or its gradient norm is no finite number, or where it explodes: its mean loss is above
/// `exploded` times the first one or, where that is more, what guessing among all tokens gives.
class LossWatch {
 public:
  static constexpr double exploded = 3;

  explicit LossWatch(const config::Experiment& experiment) : experiment_(experiment) {}

  /// `first_loss` is the mean loss of the run's first steps, 0: it is not known yet. It becomes
  /// known with the first finite one.
  void take(const Stretch& stretch, double& first_loss);

  /// A finite loss that has not exploded. What `first_loss` is, see take().
  bool makes_sense(double loss, double first_loss) const;
  /// The last stretch was not bad, and so weights and moments may be kept.
  bool is_good() const { return bad_steps_ == 0; }
  /// train.max_bad_steps bad ones came one after another.
  bool is_over() const { return bad_steps_ >= experiment_.train.max_bad_steps; }
  bool is_finite() const;

  /// What happened, for a person: loss and norm now and when they were last good, the learning rate
  /// and which weight is no number any more.
  std::string diagnosis(const NamedTensors& weights) const;

 private:
  const config::Experiment& experiment_;
  Stretch last_;       ///< means
  Stretch last_good_;  ///< means; no steps: there was none
  int64_t bad_steps_ = 0;
};

}  // namespace forge::worker
