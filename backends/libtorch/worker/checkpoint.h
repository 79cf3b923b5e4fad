#pragma once

#include "backends/libtorch/worker/optimizer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// What a training run carries from step to step besides weights and moments. Data position,
/// learning rate and random numbers all follow from `step`, so that a resumed run goes on exactly.
struct Progress {
  int64_t step = 0;            ///< steps done
  double elapsed_seconds = 0;  ///< wall time, all attempts
  int64_t window_steps = 0;    ///< steps since the last training metrics
  double window_loss = 0;      ///< sum over them
  double window_norm = 0;
  double last_window_loss = 0;  ///< mean of the last full window
  int64_t timed_steps = 0;      ///< steps that count for tokens_per_second, all attempts
  double timed_seconds = 0;
  int64_t peak_memory_bytes = 0;
  int64_t peak_resident_bytes = 0;
};

/// Writes a checkpoint of the run folder and removes all but the newest two.
protocol::CheckpointSaved save_checkpoint(const std::string& run_dir,
                                          const Progress& progress,
                                          const LlamaCanon& model,
                                          const Optimizer& optimizer);

/// Restores weights and moments from a checkpoint folder; returns where the run was.
Progress load_checkpoint(const std::string& folder, LlamaCanon& model, const Optimizer& optimizer);

}  // namespace forge::worker
