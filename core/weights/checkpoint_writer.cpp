#include "core/weights/checkpoint_writer.h"

#include <chrono>

#include "core/base/error.h"

namespace forge::weights {
namespace {

namespace fs = std::filesystem;

/// What is left to go on from.
std::string earlier_ones(const fs::path& checkpoints) {
  try {
    const std::vector<fs::path> folders = list_checkpoints(checkpoints);
    if (!folders.empty()) return "checkpoint " + folders.back().filename().string() + " is whole";
  } catch (const Error&) {
    // What hinders writing may hinder reading, too.
  }
  return "there is none before it";
}

WrittenCheckpoint write(const fs::path& checkpoints,
                        const Retention& retention,
                        const CheckpointState& state,
                        const CheckpointWriter::Tensors& weights,
                        const CheckpointWriter::Tensors& optimizer,
                        const OnBytes& on_bytes) {
  WrittenCheckpoint written;
  written.step = state.step;
  try {
    written.folder =
        write_checkpoint(checkpoints, state, weights, optimizer, &written.bytes, on_bytes);
    prune_checkpoints(checkpoints, retention, state.step);
  } catch (const Error& error) {
    throw Error("the checkpoint of step " + std::to_string(state.step) +
                    " could not be written: " + error.message(),
                {},
                earlier_ones(checkpoints) + "; make room and start the run again",
                ExitCode::storage);
  }
  return written;
}

int64_t bytes_of(const CheckpointWriter::Tensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.bytes);
  return bytes;
}

}  // namespace

void CheckpointWriter::start(CheckpointState state, Tensors weights, Tensors optimizer) {
  if (is_busy()) throw Error("a checkpoint is being written already");
  bytes_to_handle_ = 2 * (bytes_of(weights) + bytes_of(optimizer));
  bytes_handled_ = 0;
  pending_ = std::async(
      std::launch::async,
      [this,
       state = std::move(state),
       weights = std::move(weights),
       optimizer = std::move(optimizer)] {
        return write(checkpoints_, retention_, state, weights, optimizer, [this](int64_t bytes) {
          bytes_handled_ += bytes;
        });
      });
}

double CheckpointWriter::fraction() const {
  if (bytes_to_handle_ == 0) return 1;
  return std::min(1.0, double(bytes_handled_) / double(bytes_to_handle_));
}

std::optional<WrittenCheckpoint> CheckpointWriter::take_written(double seconds) {
  if (!is_busy()) return std::nullopt;
  const std::chrono::duration<double> patience(seconds);
  if (pending_.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return pending_.get();
}

}  // namespace forge::weights
