#pragma once

#include <memory>

#include "backends/libtorch/worker/trainer.h"
#include "core/model/weights/checkpoint.h"

namespace forge::libtorch {

/// What a training run carries from step to step besides weights and moments.
struct TrainingState {
  int64_t step = 0;            ///< steps done
  double elapsed_seconds = 0;  ///< wall time, all attempts
  int64_t window_steps = 0;    ///< steps since the last training metrics
  double window_loss = 0;      ///< sum over them
  double window_norm = 0;
  double last_window_loss = 0;  ///< mean of the last full window; 0: none yet
  double first_loss = 0;        ///< mean of the first steps; 0: not known yet
  int64_t timed_steps = 0;      ///< steps that count for tokens_per_second, all attempts
  double timed_seconds = 0;
  int64_t peak_memory_bytes = 0;
  int64_t peak_resident_bytes = 0;
  int processes = 1;              ///< of which times and peaks are
  int micro_batch_size = 0;       ///< of a step after memory ran out; 0: as the config says
  int eval_micro_batch_size = 0;  ///< the same of an evaluation
};

/// The state of a checkpoint besides its tensors. Data position, learning rate and random numbers
/// all follow from the step and the config, both of which it holds.
weights::CheckpointState checkpoint_state(const TrainingState& progress,
                                          const config::Experiment& experiment,
                                          const std::string& identity);

/// Copies numbers into memory that is reused by the next copy, so training goes on while they are
/// written. The memory does not count as tensors' memory.
class Snapshot {
 public:
  /// The result is valid until the next copy.
  std::map<std::string, weights::TensorPart> copy(NamedParts parts);

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;  ///< of a tensor on a CPU
    at::Tensor pinned;                    ///< of one on a GPU
    size_t bytes = 0;
  };
  static at::Tensor memory_for(const at::Tensor& tensor, Buffer& buffer);

  std::map<std::string, Buffer> buffers_;
};

/// Restores weights and optimizer from a checkpoint folder; returns where the run was. Throws
/// forge::Error if a file is damaged, if the tensors are not exactly those of this model and
/// optimizer, or if this config does not continue the config of the steps.
TrainingState load_checkpoint(const std::string& folder,
                              const config::Experiment& experiment,
                              Model& model,
                              const Optimizer& optimizer);

}  // namespace forge::libtorch
