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

/// Of the last window's loss: it is no number in both, or in none.
void require_same_kind(const worker::TrainMetrics& last, const worker::Finished& finished) {
  const double said = finished.train_loss.value_or(last.loss);
  if (std::isfinite(last.loss) == std::isfinite(said)) return;
  throw Error("'finished' says that train_loss is " + shortest(said) + ", and 'train' of step " +
                  std::to_string(last.step) + " said " + shortest(last.loss),
              "train_loss is the loss of the last window");
}

bool are_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Of an event that is of the same step as the one before it.
void require_same(const std::string& event, int64_t step, double before, double now) {
  if (are_same(before, now)) return;
  throw Error("it said '" + event + "' of step " + std::to_string(step) +
                  " twice, with the losses " + shortest(before) + " and " + shortest(now),
              "a worker reports each step once, or again with the same numbers");
}

void require_equal(const std::string& name, int64_t said, int64_t asked, const std::string& hint) {
  if (said == asked) return;
  throw Error("'" + name + "' of 'started' is " + std::to_string(said) + ", and the config has " +
                  std::to_string(asked),
              hint);
}

/// 0 where a source does not say how many rows it has.
int64_t targets_of(const std::vector<worker::TokenSource>& sources, int seq_len) {
  int64_t targets = 0;
  for (const worker::TokenSource& source : sources) {
    if (source.rows == 0) return 0;
    targets += source.rows * seq_len;
  }
  return targets;
}

bool scores_all_targets(const worker::TokenSource& source) {
  const bool has_task = !source.task.empty();
  return !has_task && !source.pad_id && !source.document_start && !source.short_last_row;
}

}  // namespace

EventChecker::EventChecker(const config::TrainConfig& train,
                           const std::vector<worker::TokenSource>& evaluation_tokens,
                           int processes)
    : max_steps_(train.max_steps),
      batch_size_(train.batch_size),
      tokens_per_step_(int64_t{train.batch_size} * train.seq_len),
      gradient_slots_(train.gradient_slots),
      processes_(processes),
      evaluation_targets_(targets_of(evaluation_tokens, train.seq_len)),
      scores_all_targets_(
          std::all_of(evaluation_tokens.begin(), evaluation_tokens.end(), scores_all_targets)),
      evaluates_(train.eval_rows > 0) {}

void EventChecker::check(const worker::Event& event) {
  worker::require_plausible(event);
  if (std::holds_alternative<worker::Hello>(event)) {
    require_first("hello", said_hello_);
  } else if (const auto* started = std::get_if<worker::Started>(&event)) {
    check_start(*started);
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    if (train_ && train_->step == metrics->step)
      require_same("train", metrics->step, train_->loss, metrics->loss);
    take_step("train", metrics->step);
    train_ = *metrics;
  } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
    if (evaluation_ && evaluation_->step == evaluation->step) {
      require_same("evaluation", evaluation->step, evaluation_->loss, evaluation->loss);
      require_same("evaluation",
                   evaluation->step,
                   evaluation_->validation_loss.value_or(std::nan("")),
                   evaluation->validation_loss.value_or(std::nan("")));
    }
    take_step("evaluation", evaluation->step);
    require_all_rows(*evaluation);
    evaluation_ = *evaluation;
  } else if (const auto* saved = std::get_if<worker::CheckpointSaved>(&event)) {
    require_within("checkpoint", saved->step);  // it may be older than the last step
  } else if (const auto* finished = std::get_if<worker::Finished>(&event)) {
    check_end(*finished);
  } else if (const auto* failed = std::get_if<worker::Failed>(&event)) {
    check_failure(*failed);
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
  parameters_ = started.parameters;
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
  if (train_) require_same_kind(*train_, finished);
  if (started_ && finished.parameters != parameters_) {
    throw Error("'parameters' of 'finished' is " + with_thousands(finished.parameters) +
                    ", and of 'started' " + with_thousands(parameters_),
                "both are the number of weights of the model");
  }
}

void EventChecker::check_failure(const worker::Failed& failed) const {
  if (!failed.diverged || started_) return;
  throw Error("it said that it diverged before it said 'started': " + failed.message,
              "'diverged' is of numbers that training came to");
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

void EventChecker::require_all_rows(const worker::Evaluation& evaluation) const {
  const int64_t tokens = evaluation.tokens;
  if (evaluation_targets_ == 0) return;
  if (scores_all_targets_ ? tokens == evaluation_targets_ : tokens <= evaluation_targets_) return;
  throw Error("'tokens' of the evaluation of step " + std::to_string(evaluation.step) + " is " +
                  with_thousands(tokens) + ", and its rows have " +
                  with_thousands(evaluation_targets_) + " targets",
              "it is the number of scored targets of all rows of evaluation_tokens");
}

void EventChecker::require_micro_batch(int64_t rows) const {
  if (rows >= 1 && rows <= batch_size_) return;
  throw Error("'micro_batch_size' of 'started' is " + std::to_string(rows) + ", and a step has " +
                  std::to_string(batch_size_) + " rows",
              "it is the number of a step's rows that are computed at once");
}

}  // namespace forge::run
