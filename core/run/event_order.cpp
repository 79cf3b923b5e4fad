#include "core/run/event_order.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/worker/plausible.h"

namespace forge::run {
namespace {

void require_first(const std::string& event, bool& said) {
  if (said) throw Error("it said '" + event + "' twice");
  said = true;
}

void require_equal(const std::string& name, int64_t said, int64_t asked, const std::string& hint) {
  if (said == asked) return;
  throw Error("'" + name + "' of 'started' is " + std::to_string(said) + ", and the config has " +
                  std::to_string(asked),
              hint);
}

}  // namespace

EventChecker::EventChecker(const config::TrainConfig& train, int processes)
    : max_steps_(train.max_steps),
      tokens_per_step_(int64_t{train.batch_size} * train.seq_len),
      gradient_slots_(train.gradient_slots),
      processes_(processes),
      evaluates_(train.eval_rows > 0) {}

void EventChecker::check(const worker::Event& event) {
  if (std::holds_alternative<worker::Hello>(event)) {
    require_first("hello", said_hello_);
  } else if (const auto* started = std::get_if<worker::Started>(&event)) {
    check_start(*started);
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    take_step("train", metrics->step);
    worker::require_not_negative("loss", metrics->loss);
    worker::require_not_negative("gradient_norm", metrics->gradient_norm);
    worker::require_speed(metrics->tokens_per_second);
    worker::require_not_negative("elapsed_seconds", metrics->elapsed_seconds);
  } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
    take_step("evaluation", evaluation->step);
    worker::require_not_negative("loss", evaluation->loss);
    worker::require_not_negative("validation_loss", evaluation->validation_loss.value_or(0));
    for (const double loss : evaluation->row_losses)
      worker::require_not_negative("row_losses", loss);
    worker::require_not_negative("seconds", evaluation->seconds);
    evaluation_ = *evaluation;
  } else if (const auto* saved = std::get_if<worker::CheckpointSaved>(&event)) {
    require_within("checkpoint", saved->step);  // it may be older than the last step
  } else if (const auto* finished = std::get_if<worker::Finished>(&event)) {
    check_end(*finished);
  }
}

void EventChecker::check_start(const worker::Started& started) {
  const std::string budget = "tokens_per_step is train.batch_size times train.seq_len";
  require_first("started", started_);
  require_within("started", started.first_step);
  require_equal("max_steps", started.max_steps, max_steps_, budget);
  require_equal("tokens_per_step", started.tokens_per_step, tokens_per_step_, budget);
  require_equal("gradient_slots",
                started.gradient_slots.value_or(1),
                gradient_slots_,
                "the worker must add the gradients of train.gradient_slots as a tree, and say so");
  // Each of several that know nothing of the others would write the same checkpoints.
  require_equal("processes",
                started.processes.value_or(1),
                processes_,
                "the worker must train with the processes of its request, and say so");
  step_ = first_step_ = started.first_step;
}

void EventChecker::check_end(const worker::Finished& finished) {
  take_step("finished", finished.step);
  if (finished.completed && finished.step != max_steps_) {
    throw Error("it finished as completed at step " + std::to_string(finished.step) + " of " +
                    std::to_string(max_steps_),
                "'completed' is true after train.max_steps steps alone");
  }
  worker::require_not_negative("eval_loss", finished.eval_loss.value_or(0));
  worker::require_not_negative("train_loss", finished.train_loss.value_or(0));
  worker::require_speed(finished.tokens_per_second.value_or(0));
  worker::require_not_negative("wall_seconds", finished.wall_seconds);
  if (finished.completed && evaluates_ && !finished.eval_loss) {
    throw Error("it finished as completed without eval_loss",
                "the config asks for an evaluation after the last step (train.eval_rows)");
  }
  const bool is_evaluated = evaluation_ && evaluation_->step == finished.step;
  // A worker that only had to finish did not evaluate again.
  if (finished.completed && evaluates_ && !is_evaluated && first_step_ < max_steps_) {
    throw Error(
        "it finished as completed without an 'evaluation' of step " + std::to_string(finished.step),
        "the config asks for an evaluation after the last step (train.eval_rows)");
  }
  if (!finished.eval_loss || !is_evaluated) return;
  const double said = evaluation_->loss, now = *finished.eval_loss;
  constexpr double rounding = 1e-5;
  const bool same = std::abs(said - now) <= rounding * std::max(1.0, std::abs(said));
  if (same || !std::isfinite(said) || !std::isfinite(now)) return;
  throw Error("'finished' says that eval_loss is " + shortest(now) +
                  ", and the evaluation of step " + std::to_string(finished.step) + " said " +
                  shortest(said),
              "eval_loss is the loss of the evaluation after the last step");
}

void EventChecker::take_step(const std::string& event, int64_t step) {
  require_within(event, step);
  if (step < step_) {
    throw Error("'" + event + "' is of step " + std::to_string(step) + ", after step " +
                    std::to_string(step_),
                "steps never go back within an attempt");
  }
  step_ = step;
}

void EventChecker::require_within(const std::string& event, int64_t step) const {
  if (step <= max_steps_) return;
  throw Error("'" + event + "' is of step " + std::to_string(step) + ", and the config has " +
                  std::to_string(max_steps_) + " steps",
              "train.max_steps of the request is the last one");
}

}  // namespace forge::run
