#pragma once

#include <cstdint>

#include "backends/libtorch/worker/device.h"
#include "core/base/clock.h"

namespace forge::worker {

/// Time spent in training steps alone: paused for evaluation, saving and logging. Both ends wait
/// for the device, so that work still under way is charged to the steps that asked for it.
class Stopwatch {
 public:
  explicit Stopwatch(const at::Device& device) : device_(device) {}

  void resume() {
    synchronize(device_);
    started_ = steady_seconds();
  }
  /// Seconds since resume().
  double pause() {
    synchronize(device_);
    return steady_seconds() - started_;
  }

 private:
  at::Device device_;
  double started_ = 0;
};

}  // namespace forge::worker
