#pragma once

#include <functional>
#include <memory>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::worker {

/// Work that is the same each time but for the contents of its tensors. On a GPU it is recorded as
/// a CUDA graph and replayed: thousands of small launches become one, and nothing has to be
/// compiled. On a CPU it just runs.
class StepGraph {
 public:
  explicit StepGraph(const at::Device& device);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Runs `work` on the current stream. The first times it runs as it is, so that memory and the
  /// libraries' plans are there; then it is recorded. Where that fails, that is said once on stderr
  /// and the work goes on running as it is. Must be called with the same work each time.
  /// `moving` is a tensor that the work reads and that may come to lie elsewhere, or an undefined
  /// one: then all begins anew.
  void run(const std::function<void()>& work, const at::Tensor& moving = {});
  /// Forgets what was recorded: the work is about to change. Its memory is free then.
  void begin_anew();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forge::worker
