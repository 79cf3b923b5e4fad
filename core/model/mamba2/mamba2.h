#pragma once

#include "core/base/schema.h"
#include "core/model/block.h"
#include "core/model/linear/heads.h"

/// Mamba-2 (Dao and Gu 2024) with an MLP behind it, as released with Physics of Language Models:
/// Part 4.2: a head's state fades as a whole, and all heads share the keys and queries B and C.
namespace forge::model {

struct Mamba2Config {
  int num_heads = 0;
  int expand = 2;
  int state_size = 128;
  Activation conv_activation = Activation::silu;

  /// Channels of x and of its gate z.
  int64_t inner_width(int64_t hidden_size) const { return expand * hidden_size; }
  /// Of x, B and C side by side, as the short convolution sees them.
  int64_t conv_width(int64_t hidden_size) const {
    return inner_width(hidden_size) + 2 * int64_t{state_size};
  }
  /// Of z, x, B, C and a step size for each head.
  int64_t projected_width(int64_t hidden_size) const {
    return inner_width(hidden_size) + conv_width(hidden_size) + num_heads;
  }
};

template <class Visitor>
void fields(Visitor& visit, Mamba2Config& c) {
  using namespace schema;
  visit.field("num_heads", c.num_heads, "heads", required(up_to(1 << 12)));
  visit.field("expand", c.expand, "channels of all heads / hidden_size", up_to(64));
  visit.field("state_size", c.state_size, "channels of B and C, of all heads", up_to(1 << 14));
  visit.field("conv_activation",
              c.conv_activation,
              "on x, B and C behind the short convolution, b of model.canon.set");
}

/// key_dim is state_size, value_dim the channels of x in a head.
LinearHeads mamba2_heads(const ModelConfig& model);

extern const BlockKind mamba2_block;

}  // namespace forge::model
