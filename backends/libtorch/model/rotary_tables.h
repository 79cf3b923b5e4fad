#pragma once

#include <vector>

#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

class GenerationStep;

struct RotaryOptions {
  int64_t rope_dim;
  double theta;
  bool interleaved;
  bool operator==(const RotaryOptions& other) const {
    return rope_dim == other.rope_dim && theta == other.theta && interleaved == other.interleaved;
  }
};

/// The rotary angles of a model, computed once for all its blocks.
class RotaryTables {
 public:
  /// `options`: device and type of the tables.
  explicit RotaryTables(const at::TensorOptions& options) : options_(options) {}

  /// Angles of positions 0 … length - 1 at least.
  ops::RotaryTable of_length(const RotaryOptions& rotary, int64_t length);
  /// Angles of the positions of a step's tokens, row after row: [B * width, rope_dim / 2].
  ops::RotaryTable of_step(const RotaryOptions& rotary, const GenerationStep& step);

 private:
  struct Entry {
    RotaryOptions rotary;
    ops::RotaryTable table;
  };

  at::TensorOptions options_;
  /// Tables are never dropped: a recorded step goes on reading the one that it was recorded with.
  std::vector<Entry> tables_;
  /// The step's own, which all blocks of a step share.
  at::Tensor step_positions_;
  std::vector<Entry> step_tables_;
};

}  // namespace forge::libtorch
