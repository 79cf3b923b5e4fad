#include "backends/libtorch/worker/train.h"

#include <cmath>
#include <iostream>

#include "backends/libtorch/worker/answers.h"
#include "backends/libtorch/worker/checkpoint.h"
#include "backends/libtorch/worker/datasets.h"
#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/loss_watch.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/step_in_memory.h"
#include "backends/libtorch/worker/stop.h"
#include "backends/libtorch/worker/stopwatch.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/uploader.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/json.h"
#include "core/model/parameters.h"

namespace forge::worker {
namespace {

// The first steps of a process are slow (memory is new, caches are cold): they do not count for
// tokens_per_second.
constexpr int64_t warm_up_steps = 5;
constexpr double progress_interval = 0.25;  // seconds

weights::Retention retention_of(const config::TrainConfig& train) {
  return {train.keep_checkpoints, train.keep_best};
}

/// What a checkpoint is to hold: views of copies, and the state when they were made.
struct CheckpointCopy {
  weights::CheckpointState state;
  weights::CheckpointWriter::Tensors weights, moments;
  double pause_seconds = 0;  ///< that it took
};

/// One training run from its first to its last step.
class TrainingRun {
 public:
  TrainingRun(const protocol::Request& request, const at::Device& device, const EventWriter& events)
      : request_(request),
        experiment_(config::experiment_from_json(request.experiment)),
        device_(device),
        events_(events),
        train_data_(training_rows(request, experiment_)),
        evaluation_data_(held_out_rows(request.evaluation_tokens, experiment_)),
        answers_(request, experiment_, events),
        trainer_(experiment_, device),
        uploader_(device, experiment_.train.seq_len),
        evaluator_(trainer_.model(),
                   evaluation_data_,
                   experiment_.train.eval_batch_size,
                   device,
                   [this](const Halving& halving) { keep_evaluation_halving(halving); }),
        stopwatch_(device),
        loss_watch_(experiment_),
        writer_(std::filesystem::path(request.run_dir) / "checkpoints",
                retention_of(experiment_.train)) {}

  bool run() {
    load();
    announce();
    while (!is_last_step() && !stop_requested()) {
      train_one_step();
      write_copy();
      if (progress_.step % experiment_.train.log_every == 0) report_window();
      if (is_due(experiment_.train.eval_every)) evaluate_now();
      const bool asked_to_save = take_save_request();
      if ((asked_to_save || is_due(experiment_.train.checkpoint_every)) && !is_last_step())
        copy_to_save();
      say_written(0);
    }
    const bool completed = is_last_step();
    if (completed && progress_.window_steps > 0) report_open_window();
    if (completed) evaluate_now();
    if (completed && !std::isfinite(last_evaluation_->loss))
      fail_as_diverged("the loss of the evaluation after the last step is not a finite number");
    if (progress_.step > 0) save_last(completed);
    finish(completed);
    return completed;
  }

 private:
  void load() {
    if (request_.resume_from.empty()) {
      load_beginning(trainer_.model(),
                     experiment_.seed,
                     request_.initial_weights,
                     request_.initial_weights_hash);
      trainer_.optimizer().copy_weights();
    } else {
      progress_ = load_checkpoint(
          request_.resume_from, experiment_, trainer_.model(), trainer_.optimizer());
      trainer_.optimizer().set_totals({progress_.window_loss, progress_.window_norm});
      // What was added up in parts goes on in the same parts: the losses are the same bits.
      if (progress_.rows_at_once > 0) trainer_.set_rows_at_once(progress_.rows_at_once);
      if (progress_.evaluation_rows_at_once > 0)
        evaluator_.set_batch_size(progress_.evaluation_rows_at_once);
    }
    first_step_ = settled_step_ = last_written_ = progress_.step;
    data::LoaderOptions loading;
    loading.batch_size = experiment_.train.batch_size;
    loading.first_batch = progress_.step;
    loader_.emplace(train_data_, loading);
    // A run of a few steps must still have steps that count.
    dropped_steps_ = std::min(warm_up_steps, (experiment_.train.max_steps - first_step_) / 2);
    began_ = steady_seconds() - progress_.elapsed_seconds;
    reset_peak_memory(device_);
  }

  void announce() {
    protocol::Started started;
    started.parameters = model::parameter_count(experiment_.model);
    started.first_step = first_step_;
    started.max_steps = experiment_.train.max_steps;
    started.tokens_per_step = tokens_per_step();
    const int rows_at_once = trainer_.rows_at_once();
    if (rows_at_once > 0 && rows_at_once < experiment_.train.batch_size)
      started.micro_batch_size = rows_at_once;
    events_.send(started);
    stopwatch_.resume();
  }

  void train_one_step() {
    const auto keep_halving = [&](const Halving& halving) {
      progress_.rows_at_once = halving.rows;
      say_halving("train", halving, experiment_.train.batch_size);
    };
    say_unscored(step_in_memory(
        trainer_, uploader_, loader_->next(), progress_.step, device_, keep_halving));
    ++progress_.window_steps;
    ++progress_.step;
    if (progress_.step - first_step_ == dropped_steps_) {
      stopwatch_.resume();
      segment_steps_ = 0;
    } else {
      ++segment_steps_;
    }
    if (progress_.first_loss == 0) settle_window();
    show_progress("train", double(progress_.step) / double(experiment_.train.max_steps));
  }

  /// The z-loss as lingua's code has it divides by all targets, so unscored ones lower the loss.
  void say_unscored(const Batch& batch) {
    const bool divides_by_all = experiment_.train.z_loss.kind == config::ZLossKind::lingua_code;
    if (!divides_by_all || batch.unscored == 0 || said_unscored_) return;
    std::cerr << "note: train.z_loss.kind lingua_code divides by all " << tokens_per_step()
              << " targets of a step, " << batch.unscored << " of which are not scored in step "
              << progress_.step + 1 << "\n";
    said_unscored_ = true;
  }

  void keep_evaluation_halving(const Halving& halving) {
    progress_.evaluation_rows_at_once = halving.rows;
    say_halving("evaluate", halving, experiment_.train.eval_batch_size);
  }

  void say_halving(const char* phase, const Halving& halving, int64_t batch_size) const {
    events_.send(
        protocol::MicroBatch{progress_.step, phase, halving.rows, batch_size, halving.reason});
    std::cerr << "note: " << halving.reason << "\nnote: " << halving.rows << " of " << batch_size
              << " rows are computed at once from now on (" << phase << ", after step "
              << progress_.step << ")\n";
  }

  /// Moves the time and the steps since the last call into the totals; seconds of this stretch.
  void settle_time() {
    const double seconds = stopwatch_.pause();
    window_seconds_ += seconds;
    window_timed_steps_ += segment_steps_;
    if (progress_.step - first_step_ > dropped_steps_) {
      progress_.timed_steps += segment_steps_;
      progress_.timed_seconds += seconds;
    }
    segment_steps_ = 0;
    progress_.elapsed_seconds = steady_seconds() - began_;
    progress_.peak_memory_bytes = std::max(progress_.peak_memory_bytes, peak_memory_bytes(device_));
    progress_.peak_resident_bytes = std::max(progress_.peak_resident_bytes, peak_resident_bytes());
  }

  /// Reads the window's sums and judges the steps since the last call. The sums stay where they
  /// are: added up in two parts they would be other bits.
  void settle_window() {
    const StepTotals totals = trainer_.optimizer().totals();
    loss_watch_.take({progress_.step,
                      progress_.step - settled_step_,
                      totals.loss - progress_.window_loss,
                      totals.gradient_norm - progress_.window_norm},
                     progress_.first_loss);
    progress_.window_loss = totals.loss;
    progress_.window_norm = totals.gradient_norm;
    settled_step_ = progress_.step;
  }

  void begin_window() {
    trainer_.optimizer().set_totals({});
    progress_.window_steps = 0;
    progress_.window_loss = progress_.window_norm = 0;
    window_seconds_ = 0;
    window_timed_steps_ = 0;
  }

  void stop_where_diverged() {
    if (!loss_watch_.is_over() && (loss_watch_.is_finite() || !is_last_step())) return;
    fail_as_diverged(loss_watch_.diagnosis(trainer_.model().named_weights()));
  }

  [[noreturn]] void fail_as_diverged(const std::string& diagnosis) {
    wait_for_writer();
    const std::string kept = last_written_ > 0
                                 ? "the checkpoint of step " + std::to_string(last_written_) +
                                       " is the last one before that; "
                                 : "";
    throw Error(diagnosis,
                {},
                kept + "lower optimizer.lr, lengthen schedule.warmup_steps or set train.grad_clip",
                ExitCode::failed);
  }

  void report_window() {
    settle_time();
    settle_window();
    protocol::TrainMetrics metrics;
    metrics.step = progress_.step;
    metrics.tokens = progress_.step * tokens_per_step();
    metrics.loss = progress_.window_loss / double(progress_.window_steps);
    metrics.gradient_norm = progress_.window_norm / double(progress_.window_steps);
    metrics.learning_rate = trainer_.optimizer().learning_rate(progress_.step - 1);
    if (window_seconds_ > 0) {
      metrics.tokens_per_second = double(window_timed_steps_ * tokens_per_step()) / window_seconds_;
    }
    metrics.elapsed_seconds = progress_.elapsed_seconds;
    events_.send(metrics);
    stop_where_diverged();
    progress_.last_window_loss = metrics.loss;
    begin_window();
    stopwatch_.resume();
  }

  /// Of the last steps. In the checkpoint their window is still open: a run that goes on from there
  /// with a longer budget fills it.
  void report_open_window() {
    settle_window();
    const Progress open = progress_;
    report_window();
    progress_.window_steps = open.window_steps;
    progress_.window_loss = open.window_loss;
    progress_.window_norm = open.window_norm;
    trainer_.optimizer().set_totals({open.window_loss, open.window_norm});
  }

  void evaluate_now() {
    if (last_evaluation_ && last_evaluation_->step == progress_.step) return;
    settle_time();
    const double began = steady_seconds();
    const EvaluationResult result =
        evaluator_.evaluate([&](double fraction) { show_progress("evaluate", fraction); },
                            answers_.row_sink(progress_.step));
    answers_.send_continuations(progress_.step, trainer_.model(), [&](double fraction) {
      show_progress("answer", fraction);
    });
    last_evaluation_ = {progress_.step, result.loss, result.tokens, steady_seconds() - began};
    if (is_last_step()) last_evaluation_->selection_loss = selection_loss();
    events_.send(*last_evaluation_);
    stopwatch_.resume();
  }

  /// Over held-out rows of which nothing else is reported.
  std::optional<double> selection_loss() {
    if (request_.selection_tokens.empty()) return std::nullopt;
    const data::Dataset rows = held_out_rows(request_.selection_tokens, experiment_);
    Evaluator evaluator(
        trainer_.model(), rows, evaluator_.batch_size(), device_, [this](const Halving& halving) {
          keep_evaluation_halving(halving);
        });
    return evaluator.evaluate([this](double fraction) { show_progress("evaluate", fraction); })
        .loss;
  }

  /// Training goes on as soon as weights and moments are copied. They are written once the next
  /// step's loss has shown that they are worth it.
  void copy_to_save() {
    settle_time();
    settle_window();
    if (loss_watch_.is_good()) {
      const double began = steady_seconds();
      wait_for_writer();  // one at a time
      copy_.emplace();
      copy_->weights = weights_copy_.copy(trainer_.model().named_weights());
      copy_->moments = moments_copy_.copy(trainer_.optimizer().named_state());
      copy_->state = state_to_save();
      copy_->pause_seconds = steady_seconds() - began;
    } else {
      say_unsaved(progress_.step);
    }
    stopwatch_.resume();
  }

  /// Begins to write what was copied before the step that was just done.
  void write_copy() {
    if (!copy_) return;
    settle_window();
    if (loss_watch_.is_good()) {
      pause_seconds_ = copy_->pause_seconds;
      writer_.start(std::move(copy_->state), std::move(copy_->weights), std::move(copy_->moments));
    } else {
      say_unsaved(copy_->state.step);
    }
    copy_.reset();
  }

  /// Nothing changes any more, so nothing is copied.
  void save_last(bool completed) {
    copy_.reset();  // of this very step
    wait_for_writer();
    settle_time();
    settle_window();
    if (completed || last_update_makes_sense()) {
      std::vector<at::Tensor> owners;
      pause_seconds_ = 0;
      writer_.start(state_to_save(),
                    views_of(trainer_.model().named_weights(), owners),
                    views_of(trainer_.optimizer().named_state(), owners));
      wait_for_writer();
    } else {
      say_unsaved(progress_.step);
    }
  }

  /// What the next step would find out before it changes anything.
  bool last_update_makes_sense() {
    if (!loss_watch_.is_good()) return false;
    const double loss =
        trainer_.loss_alone(uploader_.upload(loader_->next(), trainer_.rows_at_once()));
    return loss_watch_.makes_sense(loss, progress_.first_loss);
  }

  static void say_unsaved(int64_t step) {
    std::cerr << "note: no checkpoint of step " << step << ": its loss no longer makes sense\n";
  }

  weights::CheckpointState state_to_save() const {
    weights::CheckpointState state = checkpoint_state(progress_, experiment_, request_.identity);
    if (last_evaluation_ && last_evaluation_->step == progress_.step &&
        std::isfinite(last_evaluation_->loss)) {
      state.eval_loss = last_evaluation_->loss;
    }
    return state;
  }

  void wait_for_writer() {
    while (writer_.is_busy()) {
      show_progress("save", writer_.fraction());
      say_written(progress_interval);
    }
  }

  /// Tells of the checkpoint that was begun, if it is written within so many seconds.
  void say_written(double seconds) {
    const auto written = writer_.take_written(seconds);
    if (!written) return;
    last_written_ = written->step;
    events_.send(
        protocol::CheckpointSaved{written->step,
                                  written->folder.lexically_relative(request_.run_dir).string(),
                                  written->bytes,
                                  pause_seconds_});
  }

  void finish(bool completed) {
    settle_time();
    protocol::Finished finished;
    finished.completed = completed;
    finished.step = progress_.step;
    if (last_evaluation_ && last_evaluation_->step == progress_.step)
      finished.eval_loss = last_evaluation_->loss;
    finished.train_loss = progress_.last_window_loss;
    if (progress_.timed_seconds > 0) {
      finished.tokens_per_second =
          double(progress_.timed_steps * tokens_per_step()) / progress_.timed_seconds;
    }
    finished.wall_seconds = progress_.elapsed_seconds;
    finished.peak_memory_bytes = progress_.peak_memory_bytes;
    finished.peak_resident_bytes = progress_.peak_resident_bytes;
    finished.parameters = model::parameter_count(experiment_.model);
    finished.shared_device = is_shared(device_);
    events_.send(finished);
  }

  void show_progress(const char* phase, double fraction) {
    const double now = steady_seconds();
    if (now - last_progress_ < progress_interval) return;
    last_progress_ = now;
    events_.send(protocol::Progress{progress_.step, phase, fraction});
  }

  bool is_last_step() const { return progress_.step >= experiment_.train.max_steps; }
  bool is_due(int64_t every) const { return every > 0 && progress_.step % every == 0; }
  int64_t tokens_per_step() const {
    return int64_t{experiment_.train.batch_size} * experiment_.train.seq_len;
  }

  const protocol::Request& request_;
  const config::Experiment experiment_;
  const at::Device device_;
  const EventWriter& events_;
  const data::Dataset train_data_;
  const data::Dataset evaluation_data_;
  const Answers answers_;
  std::optional<data::BatchLoader> loader_;  ///< of train_data_, from the first step on
  Trainer trainer_;
  Uploader uploader_;
  Evaluator evaluator_;
  Stopwatch stopwatch_;
  Progress progress_;
  LossWatch loss_watch_;
  Snapshot weights_copy_, moments_copy_;
  std::optional<CheckpointCopy> copy_;  ///< not yet handed to the writer
  weights::CheckpointWriter writer_;    ///< of those copies: goes before them
  int64_t first_step_ = 0;
  int64_t dropped_steps_ = 0;  ///< of this process
  int64_t segment_steps_ = 0;  ///< steps since the stopwatch was resumed
  int64_t window_timed_steps_ = 0;
  double window_seconds_ = 0;
  double began_ = 0;
  double last_progress_ = 0;
  int64_t settled_step_ = 0;  ///< up to it the device's totals were taken
  int64_t last_written_ = 0;  ///< step of the newest whole checkpoint, 0: none
  double pause_seconds_ = 0;  ///< for the checkpoint that is being written
  bool said_unscored_ = false;
  std::optional<protocol::Evaluation> last_evaluation_;
};

}  // namespace

bool train(const protocol::Request& request, const at::Device& device, const EventWriter& events) {
  return TrainingRun(request, device, events).run();
}

}  // namespace forge::worker
