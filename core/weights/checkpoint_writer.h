#pragma once

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>

#include "core/weights/checkpoint.h"

namespace forge::weights {

/// A checkpoint that is whole under its final name.
struct WrittenCheckpoint {
  int64_t step = 0;
  std::filesystem::path folder;
  int64_t bytes = 0;
};

/// Writes the checkpoints of a run from a thread of its own, one at a time, and removes those that
/// are not to be kept. Used by one thread.
class CheckpointWriter {
 public:
  using Tensors = std::map<std::string, TensorView>;

  CheckpointWriter(std::filesystem::path checkpoints, const Retention& retention)
      : checkpoints_(std::move(checkpoints)), retention_(retention) {}
  /// Waits for a write that is under way.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins to write. What the views show must stay as it is until take_written() has given this
  /// checkpoint. Nothing else may be under way.
  void start(CheckpointState state, Tensors weights, Tensors optimizer);

  /// Whether a checkpoint was begun that take_written() has not given yet.
  bool is_busy() const { return pending_.valid(); }

  /// How much of what was begun last is done, from 0 to 1: whoever waits sees that it goes on.
  double fraction() const;

  /// The checkpoint that was begun, once it is written: waits for it, at most `seconds`. Throws
  /// Error with ExitCode::storage when it could not be written; those before it are untouched then.
  std::optional<WrittenCheckpoint> take_written(double seconds = 0);

 private:
  std::filesystem::path checkpoints_;
  Retention retention_;
  int64_t bytes_to_handle_ = 0;            ///< each is written and hashed
  std::atomic<int64_t> bytes_handled_{0};  ///< by the thread
  std::future<WrittenCheckpoint> pending_;
};

}  // namespace forge::weights
