#include "core/run/event_order.h"

#include "core/base/error.h"
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
      batch_size_(train.batch_size),
      tokens_per_step_(int64_t{train.batch_size} * train.seq_len),
      gradient_slots_(train.gradient_slots),
      processes_(processes),
      evaluates_(train.eval_rows > 0) {}

void EventChecker::check(const worker::Event& event) {
  worker::require_plausible(event);
  if (std::holds_alternative<worker::Hello>(event)) {
    require_first("hello", said_hello_);
  } else if (const auto* started = std::get_if<worker::Started>(&event)) {
    check_start(*started);
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    take_step("train", metrics->step);
  } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
    take_step("evaluation", evaluation->step);
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
  require_micro_batch(started.micro_batch_size.value_or(batch_size_));
  step_ = first_step_ = started.first_step;
}

void EventChecker::check_end(const worker::Finished& finished) {
  take_step("finished", finished.step);
  if (finished.completed && finished.step != max_steps_) {
    throw Error("it finished as completed at step " + std::to_string(finished.step) + " of " +
                    std::to_string(max_steps_),
                "'completed' is true after train.max_steps steps alone");
  }
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
  if (is_evaluated) worker::require_same_loss(*evaluation_, finished);
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

void EventChecker::require_micro_batch(int64_t rows) const {
  if (rows >= 1 && rows <= batch_size_) return;
  throw Error("'micro_batch_size' of 'started' is " + std::to_string(rows) + ", and a step has " +
                  std::to_string(batch_size_) + " rows",
              "it is the number of a step's rows that are computed at once");
}

}  // namespace forge::run
