#include "backends/libtorch/worker/jobs.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/checkpoint.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/divergence.h"
#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/events.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/process_group.h"
#include "backends/libtorch/worker/slot_steps.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/model/parameters.h"

namespace forge::libtorch {
namespace {

/// Of so many rows the loss of each is reported: more say little that these do not.
constexpr size_t most_row_losses = 1 << 16;

void add_row_losses(const EvaluationResult& result, worker::Evaluation& evaluation) {
  if (result.row_losses.size() > most_row_losses || !std::isfinite(result.loss)) return;
  evaluation.row_tokens = result.row_tokens;
  for (const double loss : result.row_losses)  // six decimals: short in JSON
    evaluation.row_losses.push_back(std::round(loss * 1e6) / 1e6);
}

std::optional<data::Dataset> validation_rows(const worker::Request& request,
                                             const config::Experiment& experiment) {
  if (request.validation_tokens.empty()) return std::nullopt;
  return evaluation_rows(request.validation_tokens, experiment);
}

/// Whether rows may have targets that are not scored: those of a task, or with padding.
bool may_be_unscored(const std::vector<worker::TokenSource>& sources) {
  return std::any_of(sources.begin(), sources.end(), [](const worker::TokenSource& source) {
    return source.path.empty() || source.pad_id || source.short_last_row;
  });
}

// The first steps of a process are slow (memory is new, caches are cold): they do not count for
// tokens_per_second.
constexpr int64_t warm_up_steps = 5;
constexpr double progress_interval = 0.25;  // seconds

/// What a checkpoint is to hold: views of copies, and the state when they were made.
struct CheckpointCopy {
  weights::CheckpointState state;
  weights::CheckpointWriter::Tensors weights, moments;
  double pause_seconds = 0;  ///< that it took
};

/// One training run from its first to its last step.
class TrainingRun {
 public:
  TrainingRun(const worker::Request& request, const at::Device& device, const EventWriter& events)
      : request_(request),
        experiment_(config::experiment_from_json(request.experiment)),
        device_(device),
        events_(events),
        group_(make_process_group(request, device)),
        train_data_(training_rows(request, experiment_)),
        evaluation_data_(evaluation_rows(request.evaluation_tokens, experiment_)),
        validation_data_(validation_rows(request, experiment_)),
        answers_(request, experiment_, events),
        trainer_(experiment_, device, {group_->rank(), group_->count()}),
        uploader_(device, experiment_.train.seq_len),
        evaluator_(
            trainer_.model(),
            experiment_.train.seq_len,
            experiment_.train.eval_batch_size,
            device,
            [this](const MicroBatchReduction& reduction) { keep_eval_micro_batch(reduction); },
            group_.get()),
        timer_(device),
        divergence_(experiment_),
        writer_(checkpoints(), {group_->rank(), group_->count()}) {
    if (experiment_.train.gradient_slots > 1)
      slots_.emplace(experiment_,
                     trainer_,
                     *group_,
                     device,
                     may_be_unscored(request.train_tokens),
                     request.processes ? request.processes->hosts : 1);
  }

  bool run() {
    load();
    announce();
    while (!is_last_step() && !is_stop_step() && !must_stop()) {
      train_one_step();
      write_copy();
      if (state_.step % experiment_.train.log_every == 0) report_window();
      if (is_due(experiment_.train.eval_every)) evaluate_now();
      if ((must_save() || is_due(experiment_.train.checkpoint_every)) && !is_last_step())
        copy_to_save();
      say_written(0);
    }
    const bool completed = is_last_step();
    if (completed && state_.window_steps > 0) report_open_window();
    if (completed) evaluate_now();
    if (completed && !std::isfinite(last_evaluation_->loss))
      fail_as_diverged("the loss of the evaluation after the last step is not a finite number");
    if (state_.step > 0) save_last(completed);
    finish(completed);
    return completed;
  }

 private:
  void load() {
    if (request_.resume_from.empty()) {
      load_start_weights(trainer_.model(),
                         experiment_.weights_seed(),
                         request_.initial_weights,
                         request_.initial_weights_hash);
      trainer_.optimizer().copy_weights();
    } else {
      state_ = load_checkpoint(
          request_.resume_from, experiment_, trainer_.model(), trainer_.optimizer());
      first_eval_loss_ =
          weights::read_checkpoint_state(request_.resume_from, weights::FileCheck::none).eval_loss;
      trainer_.optimizer().set_totals({state_.window_loss, state_.window_norm});
      if (state_.processes != group_->count()) forget_measurements();
      // What was added up in parts goes on in the same parts: the losses are the same bits.
      if (state_.micro_batch_size > 0) trainer_.set_micro_batch_size(state_.micro_batch_size);
      if (state_.eval_micro_batch_size > 0) evaluator_.set_batch_size(state_.eval_micro_batch_size);
    }
    state_.processes = group_->count();
    first_step_ = settled_step_ = last_written_ = state_.step;
    load_rows_from(state_.step);
    if (group_->is_first()) weights::remove_shared_folders(checkpoints());
    // None writes before that.
    wishes_.stop = group_->of_first(stop_requested() ? 1 : 0) != 0;
    // A run of a few steps must still have steps that count.
    dropped_steps_ = std::min(warm_up_steps, (experiment_.train.max_steps - first_step_) / 2);
    began_ = steady_seconds() - state_.elapsed_seconds;
    reset_peak_memory(device_);
  }

  /// Throughput and memory of other numbers of processes are no sum.
  void forget_measurements() {
    state_.timed_steps = 0;
    state_.timed_seconds = 0;
    state_.peak_memory_bytes = state_.peak_resident_bytes = 0;
  }

  /// Of several processes each loads the rows of its own slots.
  void load_rows_from(int64_t step) {
    data::LoaderOptions loading;
    loading.batch_size = slots_ ? slots_->rows() : experiment_.train.batch_size;
    loading.first_batch = slots_ ? step * slots_->slots() : step;
    loading.shard = {group_->rank(), group_->count()};
    loader_.emplace(train_data_, loading);
  }

  /// The processes of a run do alike what the first one was asked in the last step.
  bool must_stop() const { return group_->count() > 1 ? wishes_.stop : stop_requested(); }
  bool must_save() const { return group_->count() > 1 ? wishes_.save : take_save_request(); }

  void announce() {
    worker::Started started;
    started.parameters = model::parameter_count(experiment_.model);
    started.first_step = first_step_;
    started.max_steps = experiment_.train.max_steps;
    started.tokens_per_step = tokens_per_step();
    if (group_->count() > 1) started.processes = group_->count();
    if (slots_) started.gradient_slots = experiment_.train.gradient_slots;
    const int micro_batch_size = trainer_.micro_batch_size();
    if (micro_batch_size > 0 && micro_batch_size < rows_at_most())
      started.micro_batch_size = micro_batch_size;
    events_.send(started);
    timer_.resume();
  }

  void train_one_step() {
    const auto keep_micro_batch = [&](const MicroBatchReduction& reduction) {
      state_.micro_batch_size = reduction.rows;
      report_micro_batch("train", reduction, rows_at_most());
    };
    if (slots_) {
      const auto asked = [&] {
        return group_->count() > 1 ? Wishes{stop_requested(), take_save_request()} : Wishes();
      };
      wishes_ = slots_->step(slots_->next_rows(*loader_), state_.step, asked, keep_micro_batch);
      say_unscored(slots_->unscored());
    } else {
      say_unscored(step_with_oom_retry(
                       trainer_, uploader_, loader_->next(), state_.step, device_, keep_micro_batch)
                       .unscored);
    }
    ++state_.window_steps;
    ++state_.step;
    if (state_.step - first_step_ == dropped_steps_) {
      timer_.resume();
      segment_steps_ = 0;
    } else {
      ++segment_steps_;
    }
    if (state_.first_loss == 0) settle_window();
    show_progress("train", double(state_.step) / double(experiment_.train.max_steps));
  }

  /// The z-loss as lingua's code has it divides by all targets, so unscored ones lower the loss.
  void say_unscored(int64_t unscored) {
    const bool divides_by_all = experiment_.train.z_loss.kind == config::ZLossKind::lingua_code;
    if (!divides_by_all || unscored == 0 || said_unscored_) return;
    std::cerr << "note: train.z_loss.kind lingua_code divides by all " << tokens_per_step()
              << " targets of a step, " << unscored << " of which are not scored in step "
              << state_.step + 1 << "\n";
    said_unscored_ = true;
  }

  void keep_eval_micro_batch(const MicroBatchReduction& reduction) {
    state_.eval_micro_batch_size = reduction.rows;
    report_micro_batch("evaluate", reduction, experiment_.train.eval_batch_size);
  }

  void report_micro_batch(const char* phase,
                          const MicroBatchReduction& reduction,
                          int64_t batch_size) const {
    events_.send(
        worker::MicroBatch{state_.step, phase, reduction.rows, batch_size, reduction.reason});
    std::cerr << "note: " << reduction.reason << "\nnote: " << reduction.rows << " of "
              << batch_size << " rows are computed at once from now on (" << phase
              << ", after step " << state_.step << ")\n";
  }

  /// Moves the time and the steps since the last call into the totals; seconds of this window.
  void settle_time() {
    const double seconds = timer_.pause();
    window_seconds_ += seconds;
    window_timed_steps_ += segment_steps_;
    if (state_.step - first_step_ > dropped_steps_) {
      state_.timed_steps += segment_steps_;
      state_.timed_seconds += seconds;
    }
    segment_steps_ = 0;
    state_.elapsed_seconds = steady_seconds() - began_;
    state_.peak_memory_bytes = std::max(state_.peak_memory_bytes, peak_memory_bytes(device_));
    state_.peak_resident_bytes = std::max(state_.peak_resident_bytes, peak_resident_bytes());
  }

  /// Reads the window's sums and judges the steps since the last call. The sums stay where they
  /// are: added up in two parts they would be other bits.
  void settle_window() {
    const StepTotals totals = trainer_.optimizer().totals();
    divergence_.add({state_.step,
                     state_.step - settled_step_,
                     totals.loss - state_.window_loss,
                     totals.gradient_norm - state_.window_norm},
                    state_.first_loss);
    state_.window_loss = totals.loss;
    state_.window_norm = totals.gradient_norm;
    settled_step_ = state_.step;
  }

  void begin_window() {
    trainer_.optimizer().set_totals({});
    state_.window_steps = 0;
    state_.window_loss = state_.window_norm = 0;
    window_seconds_ = 0;
    window_timed_steps_ = 0;
  }

  void stop_where_diverged() {
    if (!divergence_.is_diverged() && (divergence_.is_finite() || !is_last_step())) return;
    if (slots_) slots_->complete_stored();  // all processes know the same losses
    fail_as_diverged(divergence_.diagnosis(trainer_.model().named_weights()));
  }

  [[noreturn]] void fail_as_diverged(const std::string& diagnosis) {
    wait_for_writer();
    const std::string kept = last_written_ > 0
                                 ? "the checkpoint of step " + std::to_string(last_written_) +
                                       " is the last one before that; "
                                 : "";
    throw Diverged(
        diagnosis,
        kept + "lower optimizer.lr, lengthen schedule.warmup_steps or set train.grad_clip",
        ExitCode::failed);
  }

  void report_window() {
    settle_time();
    settle_window();
    worker::TrainMetrics metrics;
    metrics.step = state_.step;
    metrics.tokens = state_.step * tokens_per_step();
    metrics.loss = state_.window_loss / double(state_.window_steps);
    metrics.gradient_norm = state_.window_norm / double(state_.window_steps);
    metrics.learning_rate = trainer_.optimizer().learning_rate(state_.step - 1);
    if (window_timed_steps_ > 0 && window_seconds_ > 0) {
      metrics.tokens_per_second = double(window_timed_steps_ * tokens_per_step()) / window_seconds_;
    }
    metrics.elapsed_seconds = state_.elapsed_seconds;
    events_.send(metrics);
    stop_where_diverged();
    state_.last_window_loss = metrics.loss;
    begin_window();
    timer_.resume();
  }

  /// Of the last steps. In the checkpoint their window is still open: a run that goes on from there
  /// with a longer budget fills it.
  void report_open_window() {
    settle_window();
    const TrainingState open = state_;
    report_window();
    state_.window_steps = open.window_steps;
    state_.window_loss = open.window_loss;
    state_.window_norm = open.window_norm;
    trainer_.optimizer().set_totals({open.window_loss, open.window_norm});
  }

  void evaluate_now() {
    if (last_evaluation_ && last_evaluation_->step == state_.step) return;
    settle_time();
    if (slots_) slots_->complete_weights();
    const double began = steady_seconds();
    const EvaluationResult result = evaluator_.evaluate(
        evaluation_data_,
        [&](double fraction) { show_progress("evaluate", fraction); },
        answers_.logits_sink(state_.step));
    if (group_->is_first()) {
      answers_.send_continuations(state_.step, trainer_.model(), [&](double fraction) {
        show_progress("answer", fraction);
      });
    }
    last_evaluation_ = {state_.step, result.loss, result.tokens, steady_seconds() - began};
    last_evaluation_->validation_loss = validation_loss();
    if (is_last_step()) add_row_losses(result, *last_evaluation_);
    events_.send(*last_evaluation_);
    timer_.resume();
  }

  /// The loss over the validation rows, in nats a token; none without such rows.
  std::optional<double> validation_loss() {
    if (!validation_data_) return std::nullopt;
    const auto progress = [this](double fraction) { show_progress("evaluate", fraction); };
    return evaluator_.evaluate(*validation_data_, progress).loss;
  }

  /// Training goes on as soon as weights and moments are copied. They are written once the next
  /// step's loss has shown that they are worth it.
  void copy_to_save() {
    settle_time();
    settle_window();
    if (divergence_.is_good()) {
      const double began = steady_seconds();
      wait_for_writer();  // one at a time
      copy_.emplace();
      copy_->weights = weights_copy_.copy(trainer_.optimizer().named_weights());
      copy_->moments = moments_copy_.copy(trainer_.optimizer().named_state());
      copy_->state = state_to_save();
      copy_->pause_seconds = steady_seconds() - began;
    } else {
      say_unsaved(state_.step);
    }
    timer_.resume();
  }

  /// Begins to write what was copied before the step that was just done.
  void write_copy() {
    if (!copy_) return;
    settle_window();
    if (divergence_.is_good()) {
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
                    views_of(trainer_.optimizer().named_weights(), owners),
                    views_of(trainer_.optimizer().named_state(), owners));
      wait_for_writer();
    } else {
      say_unsaved(state_.step);
    }
  }

  /// What the next step would find out before it changes anything.
  bool last_update_makes_sense() {
    if (!divergence_.is_good()) return false;
    const double loss =
        slots_
            ? slots_->loss_alone(slots_->next_rows(*loader_))
            : trainer_.loss_alone(uploader_.upload(loader_->next(), trainer_.micro_batch_size()));
    return divergence_.is_sane(loss, state_.first_loss);
  }

  static void say_unsaved(int64_t step) {
    std::cerr << "note: no checkpoint of step " << step << ": its loss no longer makes sense\n";
  }

  weights::CheckpointState state_to_save() const {
    weights::CheckpointState state = checkpoint_state(state_, experiment_, request_.identity);
    if (last_evaluation_ && last_evaluation_->step == state_.step &&
        std::isfinite(last_evaluation_->loss)) {
      state.eval_loss = last_evaluation_->loss;
    } else if (state_.step == first_step_) {
      state.eval_loss = first_eval_loss_;  // it stops where it began
    }
    return state;
  }

  void wait_for_writer() {
    while (writer_.is_busy()) {
      if (const std::optional<double> wait = writer_.room_wait())
        show_progress("room", *wait);
      else
        show_progress("save", writer_.fraction());
      say_written(progress_interval);
    }
  }

  /// Reports the checkpoint that is being written, if it is complete within `seconds`.
  void say_written(double seconds) {
    const auto written = writer_.take_written(seconds);
    if (!written) return;
    last_written_ = written->step;
    events_.send(
        worker::CheckpointSaved{written->step,
                                written->folder.lexically_relative(request_.run_dir).string(),
                                written->bytes,
                                pause_seconds_});
  }

  void finish(bool completed) {
    settle_time();
    worker::Finished finished;
    finished.completed = completed;
    finished.step = state_.step;
    if (last_evaluation_ && last_evaluation_->step == state_.step)
      finished.eval_loss = last_evaluation_->loss;
    if (state_.last_window_loss > 0) finished.train_loss = state_.last_window_loss;
    if (state_.timed_seconds > 0) {
      finished.tokens_per_second =
          double(state_.timed_steps * tokens_per_step()) / state_.timed_seconds;
    }
    finished.wall_seconds = state_.elapsed_seconds;
    // Of the process that needed most.
    finished.peak_memory_bytes = int64_t(group_->largest(double(state_.peak_memory_bytes)));
    finished.peak_resident_bytes = int64_t(group_->largest(double(state_.peak_resident_bytes)));
    finished.parameters = model::parameter_count(experiment_.model);
    finished.shared_device = is_shared(device_);
    events_.send(finished);
  }

  void show_progress(const char* phase, double fraction) {
    const double now = steady_seconds();
    if (now - last_progress_ < progress_interval) return;
    last_progress_ = now;
    events_.send(worker::Progress{state_.step, phase, fraction});
  }

  std::filesystem::path checkpoints() const {
    return std::filesystem::path(request_.run_dir) / "checkpoints";
  }
  /// Rows that are computed at once where memory suffices.
  int rows_at_most() const { return slots_ ? slots_->rows() : experiment_.train.batch_size; }
  bool is_last_step() const { return state_.step >= experiment_.train.max_steps; }
  bool is_stop_step() const {
    return request_.stop_after > 0 && state_.step >= request_.stop_after;
  }
  bool is_due(int64_t every) const { return every > 0 && state_.step % every == 0; }
  int64_t tokens_per_step() const {
    return int64_t{experiment_.train.batch_size} * experiment_.train.seq_len;
  }

  const worker::Request& request_;
  const config::Experiment experiment_;
  const at::Device device_;
  const EventWriter& events_;
  const std::unique_ptr<ProcessGroup> group_;
  const data::Dataset train_data_;
  const data::Dataset evaluation_data_;
  const std::optional<data::Dataset> validation_data_;
  const AnswerSender answers_;
  std::optional<data::BatchLoader> loader_;  ///< of train_data_, from the first step on
  Trainer trainer_;
  BatchUploader uploader_;
  std::optional<SlotSteps> slots_;  ///< with train.gradient_slots
  Evaluator evaluator_;
  Timer timer_;
  TrainingState state_;
  DivergenceDetector divergence_;
  Snapshot weights_copy_, moments_copy_;
  std::optional<CheckpointCopy> copy_;  ///< not yet handed to the writer
  weights::CheckpointWriter writer_;    ///< of those copies: goes before them
  int64_t first_step_ = 0;
  std::optional<double> first_eval_loss_;  ///< of the checkpoint that it was resumed from
  int64_t dropped_steps_ = 0;              ///< of this process
  int64_t segment_steps_ = 0;              ///< steps since the timer was resumed
  int64_t window_timed_steps_ = 0;
  double window_seconds_ = 0;
  double began_ = 0;
  double last_progress_ = 0;
  int64_t settled_step_ = 0;  ///< up to it the device's totals were taken
  int64_t last_written_ = 0;  ///< step of the newest whole checkpoint, 0: none
  double pause_seconds_ = 0;  ///< for the checkpoint that is being written
  bool said_unscored_ = false;
  Wishes wishes_;  ///< of several processes: of the last step
  std::optional<worker::Evaluation> last_evaluation_;
};

}  // namespace

bool train(const worker::Request& request, const at::Device& device, const EventWriter& events) {
  return TrainingRun(request, device, events).run();
}

}  // namespace forge::libtorch
