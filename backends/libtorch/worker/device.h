#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backends/libtorch/torch_precompiled.h"
#include "core/base/clock.h"
#include "core/config/experiment.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// Device of a request's name ("auto" is the first GPU, else the CPU), with its threads set.
/// Throws forge::Error naming the devices that there are.
at::Device choose_device(const std::string& name, int threads);

/// Whether a later attempt may succeed: the device was busy or lost, or its memory did not suffice
/// while other processes held much of it.
bool is_retryable(const std::exception& problem, const at::Device& device);

/// Whether other processes hold more than about 2 GiB of the GPU; less cannot be told from what
/// CUDA itself holds for this process. False for a CPU.
bool is_shared(const at::Device& device);

/// Warns on stderr where a device computes in such a precision only slowly.
void warn_of_slow_precision(model::Precision precision, const at::Device& device);

/// Whether sums on a GPU have the same bits each time, attention's gradients included (slower). On
/// a CPU they always do. Before the first product on the device.
void choose_determinism(bool deterministic, const at::Device& device);

/// What this process runs on; warns on stderr of a BLAS that costs speed.
worker::Environment describe_environment(const at::Device& device);

/// What this worker can do there.
worker::Supports describe_support(const at::Device& device);

/// Returns when the device has done all it was given. Nothing to wait for on a CPU.
void synchronize(const at::Device& device);

/// Time spent in training steps alone: paused for evaluation, saving and logging. Both ends wait
/// for the device, so that work still under way is charged to the steps that asked for it.
class Timer {
 public:
  explicit Timer(const at::Device& device) : device_(device) {}

  void resume() {
    synchronize(device_);
    resumed_ = steady_seconds();
  }
  /// Seconds since resume(); 0 where it is paused already.
  double pause() {
    synchronize(device_);
    const double seconds = resumed_ ? steady_seconds() - *resumed_ : 0;
    resumed_.reset();
    return seconds;
  }

 private:
  at::Device device_;
  std::optional<double> resumed_;
};

}  // namespace forge::libtorch
