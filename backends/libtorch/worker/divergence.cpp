#include "backends/libtorch/worker/divergence.h"

#include <cmath>

#include "core/base/text.h"
#include "core/config/schedule.h"

namespace forge::libtorch {
namespace {

std::string figures(const StepWindow& means, const config::Experiment& experiment) {
  const double rate = config::learning_rate(experiment.schedule,
                                            experiment.optimizer.lr,
                                            means.last_step - 1,
                                            experiment.train.max_steps);
  return "loss " + shortest(means.loss) + ", gradient norm " + shortest(means.gradient_norm) +
         ", learning rate " + shortest(rate);
}

/// Name of the first weight that holds an infinity or nan, "".
std::string first_broken(const NamedTensors& weights) {
  for (const auto& [name, weight] : weights) {
    if (!at::isfinite(weight).all().item<bool>()) return name;
  }
  return "";
}

}  // namespace

void DivergenceDetector::add(const StepWindow& window, double& first_loss) {
  if (window.steps == 0) return;
  const auto steps = static_cast<double>(window.steps);
  last_ = {window.last_step, window.steps, window.loss / steps, window.gradient_norm / steps};
  if (first_loss == 0 && is_finite()) first_loss = last_.loss;
  if (is_finite() && is_sane(last_.loss, first_loss)) {
    bad_steps_ = 0;
    last_good_ = last_;
  } else {
    bad_steps_ += window.steps;
  }
}

bool DivergenceDetector::is_sane(double loss, double first_loss) const {
  const double guessing = std::log(std::max(2, experiment_.model.vocab_size));
  return std::isfinite(loss) && loss <= exploded * std::max(guessing, first_loss);
}

bool DivergenceDetector::is_finite() const {
  return std::isfinite(last_.loss) && std::isfinite(last_.gradient_norm);
}

std::string DivergenceDetector::diagnosis(const NamedTensors& weights) const {
  std::string text =
      is_finite() ? "the training loss exploded" : "the training loss is not a finite number";
  text += ": step " + std::to_string(last_.last_step) + " has " + figures(last_, experiment_);
  if (last_good_.steps > 0) {
    text += "; it was good up to step " + std::to_string(last_good_.last_step) + ", with " +
            figures(last_good_, experiment_);
  }
  const std::string broken = first_broken(weights);
  if (!broken.empty()) text += "; '" + broken + "' holds numbers that are not finite";
  return text;
}

}  // namespace forge::libtorch
