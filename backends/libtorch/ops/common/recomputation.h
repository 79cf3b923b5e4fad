#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

/// What several operations read and none of them keeps: the first backward pass that needs it
/// computes it, the last one lets it go.
class RecomputedTensors {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Compute = std::function<Tensors(const Tensors& sources)>;

  explicit RecomputedTensors(Compute compute) : compute_(std::move(compute)) {}

  /// An operation calls this once in its forward pass, and take() in its backward pass.
  void add_user() { ++users_; }
  /// The tensors, from the sources as the operation kept them.
  Tensors take(const Tensors& sources) {
    if (left_ == 0) {
      tensors_ = compute_(sources);
      left_ = users_;
    }
    return --left_ == 0 ? std::exchange(tensors_, {}) : tensors_;
  }

 private:
  Compute compute_;
  Tensors tensors_;
  int users_ = 0, left_ = 0;
};

/// How an operation's inputs come from tensors that are kept anyway: its backward pass keeps these
/// in place of the inputs. `tensors` may be shared with other operations; null: there is no such
/// way.
struct Recomputation {
  std::vector<at::Tensor> sources;
  std::shared_ptr<RecomputedTensors> tensors;
};

}  // namespace forge::ops
