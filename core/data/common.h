#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace forge::data {

/// Reports progress: `fraction` from 0 to 1 within the phase that `phase` names. Called on the
/// thread that started the work. An exception from it ends the work. May be empty.
using Progress = std::function<void(double fraction, const std::string& phase)>;

/// The stream of a generated text: for training or for evaluation. Both are endless.
enum class Split { training, evaluation };

/// What a task asks of a model at an evaluation, for each row beside its loss.
enum class AnswerKind {
  likeliest,          ///< the most probable id at each scored target
  loss,               ///< negative log likelihood of each scored target, in nats
  log_probabilities,  ///< of every id of the task, at each place of the row's first text
  continuation,       ///< what the model writes behind the prompt of the row's first text
};

/// A target that the loss ignores, PyTorch's ignore_index.
constexpr int32_t unscored_target = -100;

}  // namespace forge::data
