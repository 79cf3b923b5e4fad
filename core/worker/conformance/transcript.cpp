#include "core/worker/conformance/transcript.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/weights/checkpoint.h"
#include "core/worker/plausible.h"

namespace forge::conformance {
namespace {

constexpr double poll_seconds = 0.2;

/// Repeating the same progress is no sign of life.
bool is_new(const std::vector<worker::Event>& events, const worker::Event& event) {
  const auto* progress = std::get_if<worker::Progress>(&event);
  if (!progress) return true;
  for (auto before = events.rbegin(); before != events.rend(); ++before) {
    const auto* other = std::get_if<worker::Progress>(&*before);
    if (!other) continue;
    return other->step != progress->step || other->phase != progress->phase ||
           other->fraction != progress->fraction;
  }
  return true;
}

}  // namespace

Transcript run_worker(
    worker::Launcher& launcher,
    const worker::Launch& launch,
    double patience_seconds,
    double longest_seconds,
    const std::function<void(const worker::Event&, worker::RunningWorker&)>& on_event) {
  Transcript transcript;
  const auto worker = launcher.start(launch);
  const double began = steady_seconds();
  double heard = began;
  while (true) {
    const worker::Output output = worker->next(poll_seconds);
    const double now = steady_seconds();
    if (const auto* exit = std::get_if<worker::ExitStatus>(&output)) {
      transcript.exit = *exit;
      return transcript;
    }
    if (const auto* line = std::get_if<worker::OutputLine>(&output);
        line && !transcript.was_killed) {
      try {
        worker::Event event = worker::event_from_line(line->text);
        if (is_new(transcript.events, event)) {
          transcript.longest_silence = std::max(transcript.longest_silence, now - heard);
          heard = now;
        }
        transcript.events.push_back(event);
        if (on_event) on_event(event, *worker);
      } catch (const Error& problem) {
        transcript.wrong_line = problem.message();
        transcript.wrong_hint = problem.hint();
      }
    }
    const bool gives_up = !transcript.wrong_line.empty() || now - heard > patience_seconds ||
                          now - began > longest_seconds;
    if (!gives_up || transcript.was_killed) continue;
    worker->kill();
    transcript.was_killed = true;
  }
}

namespace {

namespace fs = std::filesystem;

std::string at_step(int64_t step) { return " of step " + std::to_string(step); }

void require_number(double value, const std::string& key, int64_t step) {
  if (std::isfinite(value)) return;
  throw Error("'" + key + "'" + at_step(step) + " is " + shortest(value) + ", no finite number");
}

void require_equal(int64_t value, int64_t wanted, const std::string& what) {
  if (value == wanted) return;
  throw Error(what + " is " + std::to_string(value) + " instead of " + std::to_string(wanted));
}

/// Listens to the events of a training run in their order.
class TrainingRules {
 public:
  TrainingRules(const worker::Request& request, int64_t first_step)
      : request_(request),
        train_(request.experiment.at("train")),
        max_steps_(train_.at("max_steps").get<int64_t>()),
        tokens_per_step_(train_.at("batch_size").get<int64_t>() *
                         train_.at("seq_len").get<int64_t>()),
        first_step_(first_step),
        step_(first_step) {}

  void operator()(const worker::Started& started) {
    if (is_started_) throw Error("'started' was said twice");
    is_started_ = true;
    require_equal(started.first_step, first_step_, "'first_step' of 'started'");
    require_equal(started.max_steps, max_steps_, "'max_steps' of 'started'");
    require_equal(started.tokens_per_step, tokens_per_step_, "'tokens_per_step' of 'started'");
    parameters_ = started.parameters;
  }

  void operator()(const worker::TrainMetrics& train) {
    require_started("train");
    const auto log_every = train_.at("log_every").get<int64_t>();
    if (train.step <= step_) {
      throw Error("'train'" + at_step(train.step) + " came after" + at_step(step_).substr(3),
                  "steps count what is done and only grow");
    }
    if (train.step % log_every != 0 && train.step != max_steps_) {
      throw Error("'train'" + at_step(train.step) + ", though train.log_every is " +
                  std::to_string(log_every));
    }
    if (train.step - step_ > log_every)
      throw Error("no 'train'" + at_step(step_ + log_every),
                  "one is due every train.log_every steps");
    require_equal(train.tokens, train.step * tokens_per_step_, "'tokens'" + at_step(train.step));
    require_number(train.loss, "loss", train.step);
    require_number(train.gradient_norm, "gradient_norm", train.step);
    step_ = train.step;
  }

  void operator()(const worker::Evaluation& evaluation) {
    require_started("evaluation");
    require_number(evaluation.loss, "loss", evaluation.step);
    const int64_t scored = request_.evaluation_tokens[0].rows * train_.at("seq_len").get<int64_t>();
    require_equal(evaluation.tokens, scored, "'tokens' of 'evaluation'" + at_step(evaluation.step));
    if (!evaluation.row_losses.empty())
      require_equal(static_cast<int64_t>(evaluation.row_losses.size()),
                    request_.evaluation_tokens[0].rows,
                    "the number of 'row_losses'" + at_step(evaluation.step));
    evaluated_ = evaluation;
  }

  void operator()(const worker::CheckpointSaved& saved) {
    require_started("checkpoint");
    const std::string wanted = "checkpoints/" + weights::checkpoint_name(saved.step);
    if (saved.path != wanted) throw Error("'path'" + at_step(saved.step) + " is not " + wanted);
    const fs::path folder = fs::path(request_.run_dir) / wanted;
    if (!fs::is_directory(folder)) {
      throw Error("there is no " + wanted + " in the run folder when 'checkpoint' is said",
                  "write it aside, sync, rename, and only then say so");
    }
    weights::CheckpointState state;
    state.step = saved.step;
    weights::seal_checkpoint(folder, state);
    weights::read_checkpoint_state(folder);
    saved_ = saved.step;
  }

  void operator()(const worker::Finished& finished) {
    require_started("finished");
    if (is_finished_) throw Error("'finished' was said twice");
    is_finished_ = true;
    require_number(finished.train_loss.value_or(0), "train_loss", finished.step);
    require_equal(finished.parameters, parameters_, "'parameters' of 'finished'");
    require_equal(finished.step, step_, "'step' of 'finished'");
    if (saved_ != finished.step) {
      throw Error("no checkpoint" + at_step(finished.step) + " before 'finished'",
                  "the last one is of the last step, however training ends");
    }
    if (finished.completed) require_completed(finished);
  }

  template <class Other>
  void operator()(const Other&) {}

  void require_finished() const {
    if (is_finished_) return;
    throw Error("the last word was not 'finished'",
                "end its line with a newline and flush it before leaving");
  }

 private:
  void require_started(const char* event) const {
    if (!is_started_) throw Error(std::string("'") + event + "' came before 'started'");
    if (is_finished_) throw Error(std::string("'") + event + "' came after 'finished'");
  }

  void require_completed(const worker::Finished& finished) const {
    require_equal(finished.step, max_steps_, "'step' of a 'finished' that is completed");
    if (!evaluated_ || evaluated_->step != max_steps_)
      throw Error("no 'evaluation'" + at_step(max_steps_), "one is due at the end");
    if (!finished.eval_loss || *finished.eval_loss != evaluated_->loss)
      throw Error("'eval_loss' of 'finished' is not the loss of the last 'evaluation'");
  }

  const worker::Request& request_;
  const nlohmann::json& train_;
  int64_t max_steps_;
  int64_t tokens_per_step_;
  int64_t first_step_;
  int64_t step_;
  int64_t parameters_ = 0;
  int64_t saved_ = -1;
  bool is_started_ = false;
  bool is_finished_ = false;
  std::optional<worker::Evaluation> evaluated_;
};

}  // namespace

void require_opening(const Transcript& transcript) {
  if (!transcript.wrong_line.empty()) throw Error(transcript.wrong_line, transcript.wrong_hint);
  if (transcript.was_killed) {
    throw Error("nothing new was heard for too long, or it did not come to an end",
                "send 'progress' at least every second, and leave when all is said");
  }
  const std::string ended = "it ended with " + transcript.exit.describe();
  if (transcript.events.empty())
    throw Error(ended + " and said nothing", "the first event is 'hello'");
  const auto* hello = std::get_if<worker::Hello>(&transcript.events[0]);
  if (!hello) {
    throw Error("the first event was '" + std::string(worker::name_of(transcript.events[0])) + "'",
                "it must be 'hello'");
  }
  if (hello->protocol != worker::version) {
    throw Error("'protocol' is " + std::to_string(hello->protocol),
                "forge speaks version " + std::to_string(worker::version));
  }
  if (hello->backend.empty()) throw Error("'backend' of 'hello' is empty");
  if (transcript.last<worker::Failed>()) return;
  if (transcript.events.size() < 2 ||
      !std::holds_alternative<worker::Environment>(transcript.events[1])) {
    throw Error("'hello' was not followed by 'environment'",
                "a line counts when its newline has come: flush after each");
  }
}

static void require_no_failure(const Transcript& transcript) {
  if (const auto* failed = transcript.last<worker::Failed>())
    throw Error("it failed: " + failed->message, failed->hint);
}

void require_success(const Transcript& transcript) {
  require_no_failure(transcript);
  require_exit(transcript, worker::exit_done);
}

void require_exit(const Transcript& transcript, int code) {
  if (transcript.exit.signal == 0 && transcript.exit.code == code) return;
  throw Error("it ended with " + transcript.exit.describe(),
              "exit status " + std::to_string(code) + " says what happened");
}

void require_training(const Transcript& transcript,
                      const worker::Request& request,
                      int64_t first_step) {
  require_opening(transcript);
  require_no_failure(transcript);
  TrainingRules rules(request, first_step);
  for (const worker::Event& event : transcript.events) {
    worker::require_plausible(event);
    std::visit(rules, event);
  }
  rules.require_finished();
}

void require_refusal(const Transcript& transcript, const std::string& of_what) {
  require_opening(transcript);
  const auto* failed = transcript.last<worker::Failed>();
  if (!failed || failed->message.empty()) {
    throw Error("there was no 'failed' with a message for " + of_what,
                "say what cannot be done before leaving");
  }
  if (failed->diverged)
    throw Error("'failed' says 'diverged' for " + of_what,
                "'diverged' is of numbers that training came to");
  require_exit(transcript, worker::exit_wrong_request);
}

}  // namespace forge::conformance
