#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::worker {

/// Shapes of a model and of a step, on which operations are measured.
struct OperationSizes {
  std::string name;
  int64_t batch, length, hidden, intermediate, vocabulary, heads, kv_heads, head_dim;
  bool on_cpu, on_gpu;  ///< whether it is measured there unless others are asked for

  int64_t tokens() const { return batch * length; }
  std::string describe() const;  ///< "8 x 512 tokens, hidden 256, …"
};
const std::vector<OperationSizes>& operation_sizes();

/// An operation to measure, forward and backward, beside what a user of plain Torch would write.
/// Each call does the whole work once.
struct OperationCase {
  std::string name;  ///< "canon_conv.a"
  std::function<void()> own;
  std::function<void()> peer;
  double flops = 0;  ///< of matrix products, forward and backward; 0: it has none
  double bytes =
      0;  ///< read and written where all of an operation stayed in registers; 0: not told
  std::string peer_name = "plain Torch";
};

/// Makes a case when its turn has come, so that only one holds memory.
struct OperationMaker {
  std::string name;
  std::function<OperationCase(const OperationSizes&, const at::TensorOptions&)> make;
};
const std::vector<OperationMaker>& operation_makers();

}  // namespace forge::worker
