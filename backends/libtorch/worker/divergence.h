#pragma once

#include <string>

#include "backends/libtorch/model/model.h"
#include "core/base/error.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// The numbers of training no longer make sense: the same run would come to that again.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// Sums over consecutive steps.
struct StepWindow {
  int64_t last_step = 0;  ///< count of the steps done with the last of them
  int64_t steps = 0;
  double loss = 0;
  double gradient_norm = 0;
};

/// Finds out whether training diverges. A window of steps is bad if its loss or its gradient norm
/// is not finite, or if its mean loss is above `exploded` times the larger of two: the first loss
/// of the run, and the loss of guessing among all tokens.
class DivergenceDetector {
 public:
  static constexpr double exploded = 3;

  explicit DivergenceDetector(const config::Experiment& experiment) : experiment_(experiment) {}

  /// `first_loss` is the mean loss of the run's first steps, 0: it is not known yet. It becomes
  /// known with the first finite one.
  void add(const StepWindow& window, double& first_loss);

  /// A finite loss that has not exploded. What `first_loss` is, see add().
  bool is_sane(double loss, double first_loss) const;
  /// The last window was not bad, and so weights and moments may be kept.
  bool is_good() const { return bad_steps_ == 0; }
  /// train.max_bad_steps bad ones came one after another.
  bool is_diverged() const { return bad_steps_ >= experiment_.train.max_bad_steps; }
  bool is_finite() const;

  /// What happened, for a person: loss and norm now and when they were last good, the learning rate
  /// and which weight is no number any more.
  std::string diagnosis(const NamedTensors& weights) const;

 private:
  const config::Experiment& experiment_;
  StepWindow last_;       ///< means
  StepWindow last_good_;  ///< means; no steps: there was none
  int64_t bad_steps_ = 0;
};

}  // namespace forge::libtorch
