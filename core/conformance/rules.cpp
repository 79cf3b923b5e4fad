#include "core/conformance/rules.h"

#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/weights/checkpoint.h"

namespace forge::conformance {
namespace {

namespace fs = std::filesystem;

std::string at_step(int64_t step) { return " of step " + std::to_string(step); }

void require_number(double value, const std::string& key, int64_t step) {
  if (std::isfinite(value)) return;
  complain("'" + key + "'" + at_step(step) + " is " + shortest(value) + ", no finite number");
}

void require_equal(int64_t value, int64_t wanted, const std::string& what) {
  if (value == wanted) return;
  complain(what + " is " + std::to_string(value) + " instead of " + std::to_string(wanted));
}

/// Listens to the events of a training run in their order.
class TrainingRules {
 public:
  TrainingRules(const protocol::Request& request, int64_t first_step)
      : request_(request),
        train_(request.experiment.at("train")),
        max_steps_(train_.at("max_steps").get<int64_t>()),
        tokens_per_step_(train_.at("batch_size").get<int64_t>() *
                         train_.at("seq_len").get<int64_t>()),
        first_step_(first_step),
        step_(first_step) {}

  void operator()(const protocol::Started& started) {
    if (is_started_) complain("'started' was said twice");
    is_started_ = true;
    require_equal(started.first_step, first_step_, "'first_step' of 'started'");
    require_equal(started.max_steps, max_steps_, "'max_steps' of 'started'");
    require_equal(started.tokens_per_step, tokens_per_step_, "'tokens_per_step' of 'started'");
    parameters_ = started.parameters;
  }

  void operator()(const protocol::TrainMetrics& train) {
    require_started("train");
    const auto log_every = train_.at("log_every").get<int64_t>();
    if (train.step <= step_) {
      complain("'train'" + at_step(train.step) + " came after" + at_step(step_).substr(3),
               "steps count what is done and only grow");
    }
    if (train.step % log_every != 0 && train.step != max_steps_) {
      complain("'train'" + at_step(train.step) + ", though train.log_every is " +
               std::to_string(log_every));
    }
    if (train.step - step_ > log_every)
      complain("no 'train'" + at_step(step_ + log_every), "one is due every train.log_every steps");
    require_equal(train.tokens, train.step * tokens_per_step_, "'tokens'" + at_step(train.step));
    require_number(train.loss, "loss", train.step);
    require_number(train.gradient_norm, "gradient_norm", train.step);
    require_number(train.learning_rate, "learning_rate", train.step);
    require_number(train.tokens_per_second, "tokens_per_second", train.step);
    require_number(train.elapsed_seconds, "elapsed_seconds", train.step);
    step_ = train.step;
  }

  void operator()(const protocol::Evaluation& evaluation) {
    require_started("evaluation");
    require_number(evaluation.loss, "loss", evaluation.step);
    const int64_t scored = request_.evaluation_tokens[0].rows * train_.at("seq_len").get<int64_t>();
    require_equal(evaluation.tokens, scored, "'tokens' of 'evaluation'" + at_step(evaluation.step));
    evaluated_ = evaluation;
  }

  void operator()(const protocol::CheckpointSaved& saved) {
    require_started("checkpoint");
    const std::string wanted = "checkpoints/" + weights::checkpoint_name(saved.step);
    if (saved.path != wanted) complain("'path'" + at_step(saved.step) + " is not " + wanted);
    const fs::path folder = fs::path(request_.run_dir) / wanted;
    if (!fs::is_directory(folder)) {
      complain("there is no " + wanted + " in the run folder when 'checkpoint' is said",
               "write it aside, sync, rename, and only then say so");
    }
    weights::CheckpointState state;
    state.step = saved.step;
    weights::seal_checkpoint(folder, state);
    weights::read_checkpoint_state(folder);
    saved_ = saved.step;
  }

  void operator()(const protocol::Finished& finished) {
    require_started("finished");
    if (is_finished_) complain("'finished' was said twice");
    is_finished_ = true;
    require_number(finished.train_loss, "train_loss", finished.step);
    require_number(finished.tokens_per_second, "tokens_per_second", finished.step);
    require_number(finished.wall_seconds, "wall_seconds", finished.step);
    require_equal(finished.parameters, parameters_, "'parameters' of 'finished'");
    require_equal(finished.step, step_, "'step' of 'finished'");
    if (saved_ != finished.step) {
      complain("no checkpoint" + at_step(finished.step) + " before 'finished'",
               "the last one is of the last step, however training ends");
    }
    if (finished.completed) require_completed(finished);
  }

  template <class Other>
  void operator()(const Other&) {}

  void require_finished() const {
    if (is_finished_) return;
    complain("the last word was not 'finished'",
             "end its line with a newline and flush it before leaving");
  }

 private:
  void require_started(const char* event) const {
    if (!is_started_) complain(std::string("'") + event + "' came before 'started'");
    if (is_finished_) complain(std::string("'") + event + "' came after 'finished'");
  }

  void require_completed(const protocol::Finished& finished) const {
    require_equal(finished.step, max_steps_, "'step' of a 'finished' that is completed");
    if (!evaluated_ || evaluated_->step != max_steps_)
      complain("no 'evaluation'" + at_step(max_steps_), "one is due at the end");
    if (!finished.eval_loss || *finished.eval_loss != evaluated_->loss)
      complain("'eval_loss' of 'finished' is not the loss of the last 'evaluation'");
  }

  const protocol::Request& request_;
  const nlohmann::json& train_;
  int64_t max_steps_;
  int64_t tokens_per_step_;
  int64_t first_step_;
  int64_t step_;
  int64_t parameters_ = 0;
  int64_t saved_ = -1;
  bool is_started_ = false;
  bool is_finished_ = false;
  std::optional<protocol::Evaluation> evaluated_;
};

}  // namespace

void complain(const std::string& text, const std::string& hint) { throw Error(text, {}, hint); }

void require_opening(const Transcript& transcript) {
  if (!transcript.wrong_line.empty()) complain(transcript.wrong_line, transcript.wrong_hint);
  if (transcript.was_killed) {
    complain("nothing new was heard for too long, or it did not come to an end",
             "send 'progress' at least every second, and leave when all is said");
  }
  const std::string ended = "it ended with " + transcript.exit.describe();
  if (transcript.events.empty())
    complain(ended + " and said nothing", "the first event is 'hello'");
  const auto* hello = std::get_if<protocol::Hello>(&transcript.events[0]);
  if (!hello) {
    complain("the first event was '" + std::string(protocol::name_of(transcript.events[0])) + "'",
             "it must be 'hello'");
  }
  if (hello->protocol != protocol::version) {
    complain("'protocol' is " + std::to_string(hello->protocol),
             "forge speaks version " + std::to_string(protocol::version));
  }
  if (hello->backend.empty()) complain("'backend' of 'hello' is empty");
  if (transcript.last<protocol::Failed>()) return;
  if (transcript.events.size() < 2 ||
      !std::holds_alternative<protocol::Environment>(transcript.events[1])) {
    complain("'hello' was not followed by 'environment'",
             "a line counts when its newline has come: flush after each");
  }
}

void require_exit(const Transcript& transcript, int code) {
  if (transcript.exit.signal == 0 && transcript.exit.code == code) return;
  complain("it ended with " + transcript.exit.describe(),
           "exit status " + std::to_string(code) + " says what happened");
}

void require_training(const Transcript& transcript,
                      const protocol::Request& request,
                      int64_t first_step) {
  require_opening(transcript);
  if (const auto* failed = transcript.last<protocol::Failed>())
    complain("it failed: " + failed->message, failed->hint);
  TrainingRules rules(request, first_step);
  for (const protocol::Event& event : transcript.events) std::visit(rules, event);
  rules.require_finished();
}

void require_refusal(const Transcript& transcript, const std::string& of_what) {
  require_opening(transcript);
  const auto* failed = transcript.last<protocol::Failed>();
  if (!failed || failed->message.empty()) {
    complain("there was no 'failed' with a message for " + of_what,
             "say what cannot be done before leaving");
  }
  require_exit(transcript, protocol::exit_wrong_request);
}

}  // namespace forge::conformance
