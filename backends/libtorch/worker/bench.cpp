#include "backends/libtorch/worker/bench.h"

#include "backends/libtorch/worker/stopwatch.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/random.h"
#include "core/config/json.h"

namespace forge::worker {
namespace {

constexpr int warm_up_steps = 3;
constexpr int windows = 5;

Batch random_batch(const config::Experiment& experiment, const at::Device& device) {
  RandomStream random(experiment.data.seed, stream_number("bench"));
  const auto ids = [&] {
    at::Tensor tensor =
        at::empty({experiment.train.batch_size, experiment.train.seq_len}, at::kInt);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data_ptr<int32_t>()[i] =
          static_cast<int32_t>(random.below(experiment.model.vocab_size));
    }
    return tensor.to(device);
  };
  const at::Tensor inputs = ids();
  Batch batch{inputs, ids(), {}, 0};
  // Documents of a few hundred tokens, as long as stories are.
  if (experiment.train.document_mask) {
    const int64_t length = experiment.train.seq_len;
    batch.doc_ids = (at::arange(length, at::kInt).floor_divide(256))
                        .to(at::kInt)
                        .expand({experiment.train.batch_size, length})
                        .contiguous()
                        .to(device);
  }
  return batch;
}

}  // namespace

protocol::Result bench(const protocol::Request& request, const at::Device& device) {
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  Trainer trainer(experiment, device);
  load_initial(trainer.model(), experiment.seed);
  const Batch batch = random_batch(experiment, device);
  Stopwatch stopwatch(device);
  int64_t step = 0;
  const auto run_steps = [&](int64_t count) {
    stopwatch.resume();
    for (int64_t i = 0; i < count; ++i) trainer.step(batch, step++);
    return stopwatch.pause();
  };
  run_steps(warm_up_steps);
  reset_peak_memory(device);
  const int64_t steps = std::max<int64_t>(1, experiment.train.max_steps);
  const double tokens = double(steps) * experiment.train.batch_size * experiment.train.seq_len;
  std::vector<double> speeds;
  for (int i = 0; i < windows; ++i) speeds.push_back(tokens / run_steps(steps));
  std::vector<double> sorted = speeds;
  std::sort(sorted.begin(), sorted.end());
  protocol::Result result;
  result.values = {{"windows", speeds},
                   {"tokens_per_second", sorted[windows / 2]},
                   {"step_seconds", tokens / double(steps) / sorted[windows / 2]},
                   {"peak_memory_bytes", peak_memory_bytes(device)}};
  return result;
}

}  // namespace forge::worker
