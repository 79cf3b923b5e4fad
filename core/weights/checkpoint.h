#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/weights/safetensors.h"

namespace forge::weights {

/// A checkpoint folder: weights.safetensors, optimizer.safetensors, and manifest.json, written
/// last, with the state of the job and size and hash of every file.
struct CheckpointState {
  int64_t step = 0;            ///< steps done
  int64_t rows_served = 0;     ///< position in the data
  double elapsed_seconds = 0;  ///< wall time of training so far
  nlohmann::json extra = nlohmann::json::object();  ///< backend's own (measures that go on)
};

/// Writes folder `checkpoints/<step, 9 digits>` aside, syncs, renames. Returns its path; `bytes`,
/// where given, receives the size.
std::filesystem::path write_checkpoint(const std::filesystem::path& checkpoints,
                                       const CheckpointState& state,
                                       const std::map<std::string, TensorView>& weights,
                                       const std::map<std::string, TensorView>& optimizer,
                                       int64_t* bytes = nullptr);

/// Reads the manifest and checks size and hash of every file; throws Error naming what is damaged.
CheckpointState read_checkpoint_state(const std::filesystem::path& folder);

/// Checkpoint folders below `checkpoints`, oldest first; unfinished ones are not listed.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& checkpoints);

/// Removes all but the newest `keep` checkpoints and every unfinished one.
void prune_checkpoints(const std::filesystem::path& checkpoints, int keep);

}  // namespace forge::weights
