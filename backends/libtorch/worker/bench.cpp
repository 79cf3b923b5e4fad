#include "backends/libtorch/worker/bench.h"

#include <unistd.h>
#include <cerrno>
#include <cmath>
#include <iostream>
#include <numeric>

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/process_group.h"
#include "backends/libtorch/worker/slot_steps.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/base/staging.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"

namespace forge::libtorch {
namespace {

constexpr int64_t fewest_steps = 4;
constexpr int64_t fewest_tokens = 1 << 20;
constexpr int64_t document_length = 256;
constexpr int32_t document_start = 0;

}  // namespace

data::Dataset random_rows(const config::Experiment& experiment) {
  const config::TrainConfig& train = experiment.train;
  const auto vocabulary = static_cast<uint32_t>(experiment.model.vocab_size);
  const int64_t of_a_step = int64_t{train.batch_size} * train.seq_len;
  const int64_t count = std::max(fewest_tokens, fewest_steps * of_a_step) + 1;
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); i += 4) {
    const auto words = philox({static_cast<uint32_t>(i / 4), 0, 0, 0}, experiment.data.seed);
    for (size_t j = 0; j < 4 && i + j < ids.size(); ++j) {
      ids[i + j] = static_cast<int32_t>(words[j] % vocabulary);
    }
  }
  for (size_t i = 0; i < ids.size(); i += document_length) ids[i] = document_start;
  const PrivateFolder temporary("bench");  // a mapped file stays readable without its name
  const fs::path file = temporary.path() / "random.tokens";
  data::TokenFileWriter writer(file, experiment.model.vocab_size, hash_hex("random token ids"));
  writer.append(ids.data(), ids.size());
  writer.finish();
  data::RowOptions options;
  options.seq_len = train.seq_len;
  options.order = config::RowOrder::shuffled;
  options.seed = experiment.order_seed();
  if (train.document_mask) options.document_start = document_start;
  return data::Dataset(file, options);
}

namespace {

constexpr int64_t fewest_warm_up_steps = 3;
constexpr double warm_up_seconds = 1;
constexpr double window_seconds = 1;  ///< at least about so long, where the steps are not given
constexpr double parts_seconds = 1;   ///< for the parts of a step, at most, but
constexpr int64_t fewest_parts_steps = 3;
constexpr int64_t most_parts_steps = 50;
constexpr int exchange_windows = 3;
constexpr int exchange_turns = 2;
constexpr int64_t steps_before_recorded = 5;  ///< on a GPU the next one is replayed
constexpr double bench_progress_interval = 0.5;

/// How long something took, and at what clock the GPUs ran meanwhile, the mean of all processes'
/// multiprocessors: cycles a second, 0 on a CPU.
struct Measured {
  double seconds = 0;
  double clock = 0;
};

/// The median of each.
Measured median_of(const std::vector<Measured>& all) {
  std::vector<double> seconds, clocks;
  for (const Measured& one : all) {
    seconds.push_back(one.seconds);
    clocks.push_back(one.clock);
  }
  return {median(seconds), median(clocks)};
}

/// The mean clock of a GPU between two readings of cuda::read_clock.
double clock_between(const at::Tensor& first, const at::Tensor& last) {
  const at::Tensor counted = (last - first).to(at::kDouble);
  const at::Tensor seen = (first.select(1, 1) > 0).logical_and(last.select(1, 1) > 0);
  const at::Tensor of_seen = counted.index_select(0, seen.nonzero().flatten());
  if (of_seen.size(0) == 0) return 0;
  constexpr double nanoseconds = 1e9;
  return (of_seen.select(1, 0) / of_seen.select(1, 1)).mean().item<double>() * nanoseconds;
}

/// The training of an experiment, as far as its speed goes.
class Bench {
 public:
  Bench(const worker::Request& request, const at::Device& device, const EventWriter& events)
      : request_(request),
        experiment_(config::experiment_from_json(request.experiment)),
        device_(device),
        events_(events),
        group_(make_process_group(request, device)),
        rows_(random_rows(experiment_)),
        loader_(rows_, loading()),
        uploader_(device, experiment_.train.seq_len),
        trainer_(experiment_, device, {group_->rank(), group_->count()}) {
    if (experiment_.train.gradient_slots > 1)
      slots_.emplace(experiment_, trainer_, *group_, device, /*counts=*/false);
    load_weights();
  }

  void run(std::istream& input) {
    const int64_t chosen = warm_up();
    const int64_t steps = request_.window_steps > 0 ? request_.window_steps : chosen;
    events_.send(worker::Ready{steps, tokens_per_step()});
    start_peak_bytes_ = peak_memory_bytes(device_);
    reset_peak_memory(device_);
    for (std::string line; std::getline(input, line);) measure_window(line);
    nlohmann::json values = memory();  // before anything else takes some
    if (trainer_.micro_batch_size() > 0) values["micro_batch_size"] = trainer_.micro_batch_size();
    if (group_->count() > 1 && !windows_.empty()) values["exchange"] = exchange();
    try {
      // Those of slots overlap.
      if (experiment_.train.gradient_slots == 1) values["parts"] = parts();
    } catch (const c10::Error& problem) {
      // Beside what a recorded step holds there may be no memory for another one.
      std::cerr << "note: the parts of a step were not measured: "
                << problem.what_without_backtrace() << "\n";
    }
    const nlohmann::json of_all = ceiling();
    if (!of_all.is_null()) values["ceiling"] = of_all;
    if (group_->is_first()) events_.send(worker::Result{values});
  }

 private:
  void load_weights() {
    load_initial(trainer_.model(), experiment_.weights_seed());
    trainer_.optimizer().copy_weights();
  }

  data::LoaderOptions loading() const {
    data::LoaderOptions options;
    options.batch_size = experiment_.train.batch_size / experiment_.train.gradient_slots;
    options.shard = {group_->rank(), group_->count()};
    return options;
  }

  int64_t tokens_per_step() const {
    return int64_t{experiment_.train.batch_size} * experiment_.train.seq_len;
  }

  Batch next_batch() { return uploader_.upload(loader_.next(), trainer_.micro_batch_size()); }

  static void report_micro_batch(const MicroBatchReduction& reduction) {
    std::cerr << "note: " << reduction.reason << "\nnote: " << reduction.rows
              << " rows of a step are computed at once from now on\n";
  }

  /// Training steps one after another.
  Measured run_steps(int64_t count, const char* phase) {
    return measure(count, phase, [&] {
      train_one_step();
      ++step_;
    });
  }

  /// An action so many times, by the process that needs longest.
  template <class Action>
  Measured measure(int64_t times, const char* phase, const Action& action) {
    group_->of_first(0);  // all begin together
    const at::Tensor first = device_.is_cuda() ? cuda::read_clock(device_) : at::Tensor();
    Timer timer(device_);
    timer.resume();
    for (int64_t i = 0; i < times; ++i) {
      action();
      show_progress(phase);
    }
    const double seconds = timer.pause();
    const double clock = device_.is_cuda() ? clock_between(first, cuda::read_clock(device_)) : 0;
    const std::vector<double> clocks = group_->gather(std::vector<double>{clock});
    return {group_->largest(seconds),
            std::accumulate(clocks.begin(), clocks.end(), 0.0) / double(clocks.size())};
  }

  void train_one_step() {
    if (!slots_) {
      step_with_oom_retry(trainer_, uploader_, loader_.next(), step_, device_, report_micro_batch);
      return;
    }
    slots_->step(
        slots_->next_rows(loader_), step_, [] { return Wishes(); }, report_micro_batch);
  }

  /// Runs ever more steps at a time until memory, caches and whatever a device prepares are there,
  /// and returns how many steps a window takes.
  int64_t warm_up() {
    const double began = steady_seconds();
    double seconds = 0;
    int64_t count = 1;
    while (true) {
      seconds = run_steps(count, "warm up").seconds / static_cast<double>(count);
      const bool long_enough = group_->of_first(steady_seconds() - began) >= warm_up_seconds;
      if (step_ >= fewest_warm_up_steps && long_enough) break;
      if (step_ >= fewest_warm_up_steps) count *= 2;
    }
    return std::max<int64_t>(1, std::llround(std::ceil(window_seconds / std::max(seconds, 1e-6))));
  }

  void measure_window(const std::string& line) {
    const int64_t steps = worker::window_request_from_line(line).steps;
    if (steps < 1) throw Error("a window of no steps was asked for");
    const Measured window = run_steps(steps, "window");
    events_.send(worker::Window{steps, window.seconds});
    window_steps_ = steps;
    windows_.push_back({window.seconds / double(steps), window.clock});
  }

  /// Of the process that needed most.
  nlohmann::json memory() const {
    const auto largest = [&](int64_t bytes) { return int64_t(group_->largest(double(bytes))); };
    const int64_t peak = largest(peak_memory_bytes(device_));
    return {{"peak_memory_bytes", peak},
            {"start_peak_memory_bytes", std::max(peak, largest(start_peak_bytes_))},
            {"peak_memory", device_.is_cuda() ? "reserved by the allocator" : "tensors"},
            {"peak_resident_bytes", largest(peak_resident_bytes())}};
  }

  /// Seconds that the gradients and weights that processes send each other in a step take by
  /// themselves, by which they make a step longer, and by which it is longer because the processes
  /// wait for the slowest of them; and the GPUs' clock with the exchange and without. Steps with it
  /// and without it take turns, since the clock drifts, each from new weights: how much power a GPU
  /// needs depends on the numbers. The weights are of no use afterwards.
  nlohmann::json exchange() {
    std::vector<Measured> with = windows_, together, apart;
    const double alone = seconds_of_exchange_alone();
    for (int turn = 0; turn < exchange_turns; ++turn) {
      measure_steps(*make_mute_group(*group_, /*tells=*/true), together);
      measure_steps(*group_, with);
    }
    measure_steps(*make_mute_group(*group_, /*tells=*/false), apart);
    const Measured step = median_of(with), without = median_of(together);
    nlohmann::json values = {{"alone", alone},
                             {"visible", step.seconds - without.seconds},
                             {"waiting", without.seconds - median_of(apart).seconds}};
    if (step.clock > 0 && without.clock > 0) {
      values["clock"] = step.clock;
      values["clock_without"] = without.clock;
    }
    return values;
  }

  double seconds_of_exchange_alone() {
    StepGraph graph(device_, StepGraph::Otherwise::error);
    const auto run = [&] { graph.run([&] { slots_->exchange_alone(); }); };
    measure(steps_before_recorded, "exchange", run);
    std::vector<Measured> windows;
    add_windows(run, windows);
    return median_of(windows).seconds;
  }

  /// Steps of processes that speak through `group`.
  void measure_steps(ProcessGroup& group, std::vector<Measured>& windows) {
    load_weights();
    slots_.emplace(experiment_, trainer_, group, device_, /*counts=*/false);
    run_steps(steps_before_recorded, "exchange");
    add_windows(
        [&] {
          train_one_step();
          ++step_;
        },
        windows);
    slots_.reset();
  }

  /// Windows of an action, of which each is divided by the times that it is done.
  template <class Action>
  void add_windows(const Action& action, std::vector<Measured>& windows) {
    for (int window = 0; window < exchange_windows; ++window) {
      const Measured all = measure(window_steps_, "exchange", action);
      windows.push_back({all.seconds / double(window_steps_), all.clock});
    }
  }

  /// What the processes' devices reach at most, all at the same time: processes on one CPU share
  /// its cores. Null where memory does not suffice.
  nlohmann::json ceiling() {
    nlohmann::json own = {{"flops", 0.0}};
    const auto out_of_memory = run_or_out_of_memory(
        [&] { own = peak_matrix_product(experiment_.train.precision, device_); });
    if (out_of_memory)
      std::cerr << "note: the device's ceiling was not measured: " << *out_of_memory << "\n";
    const std::vector<double> all = group_->gather(std::vector<double>{own.at("flops")});
    if (std::count(all.begin(), all.end(), 0.0) > 0) return {};
    own["flops"] = std::accumulate(all.begin(), all.end(), 0.0);
    return own;
  }

  /// Medians of the parts of a step, with the device waited for between them.
  nlohmann::json parts() {
    const std::array<const char*, 4> names = {"data", "forward", "backward", "optimizer"};
    std::array<std::vector<double>, 4> seconds;
    const double began = steady_seconds();
    for (int64_t i = 0; i < most_parts_steps; ++i) {
      if (i >= fewest_parts_steps && steady_seconds() - began > parts_seconds) break;
      const std::array<double, 4> of_step = seconds_of_parts();
      for (size_t part = 0; part < names.size(); ++part) seconds[part].push_back(of_step[part]);
      show_progress("parts");
    }
    nlohmann::json medians;
    for (size_t part = 0; part < names.size(); ++part) medians[names[part]] = median(seconds[part]);
    return medians;
  }

  /// Seconds of data, forward, backward and optimizer of one step.
  std::array<double, 4> seconds_of_parts() {
    Timer timer(device_);
    std::array<double, 4> seconds = {};
    const auto timed = [&](size_t part, const auto& action) {
      timer.resume();
      action();
      seconds[part] += timer.pause();
    };
    Batch batch;
    at::Tensor loss;
    timed(0, [&] { batch = next_batch(); });
    const int64_t parts = micro_batch_count(batch.inputs.size(0), trainer_.micro_batch_size());
    for (int64_t part = 0; part < parts; ++part) {
      loss.reset();
      timed(1, [&] { loss = trainer_.loss(batch, part); });
      timed(2, [&] { part == 0 ? trainer_.backward(loss) : loss.backward(); });
    }
    timed(3, [&] { trainer_.update(loss, step_++); });
    return seconds;
  }

  void show_progress(const char* phase) {
    const double now = steady_seconds();
    if (now - last_progress_ < bench_progress_interval) return;
    last_progress_ = now;
    events_.send(worker::Progress{step_, phase, 0});
  }

  const worker::Request& request_;
  const config::Experiment experiment_;
  const at::Device device_;
  const EventWriter& events_;
  const std::unique_ptr<ProcessGroup> group_;
  const data::Dataset rows_;
  data::BatchLoader loader_;
  BatchUploader uploader_;
  Trainer trainer_;
  std::optional<SlotSteps> slots_;  ///< with train.gradient_slots
  int64_t step_ = 0;
  int64_t start_peak_bytes_ = 0;
  int64_t window_steps_ = 0;       ///< of the last window
  std::vector<Measured> windows_;  ///< a step of each
  double last_progress_ = 0;
};

}  // namespace

void bench(const worker::Request& request,
           const at::Device& device,
           const EventWriter& events,
           std::istream& input) {
  Bench(request, device, events).run(input);
}

}  // namespace forge::libtorch
