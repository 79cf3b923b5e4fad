#pragma once

#include "backends/libtorch/model/block.h"

namespace forge::libtorch {

/// Channels of the residual stream up to which a model with linear mixers computes in float64.
constexpr int64_t narrow_channels = 64;

/// Whether the blocks of a model compute in float64 though its weights and its residual stream are
/// float32: on a CPU, where it has linear mixers and at most narrow_channels channels. The norm of
/// a head's output enlarges what rounding does to outputs near zero. Wide models average that out;
/// narrow ones, which are compared with references and take no time, show it: gradients are off by
/// up to 2e-5 where float32 alone need not cost more than 1e-6.
bool computes_in_double(const BlockArguments& arguments);

/// The block of `maker` with arithmetic in float64: x and the weights are widened, the result is
/// rounded once. The backward pass keeps x alone and computes the block again. What generation
/// remembers is float64.
std::unique_ptr<Block> make_in_double(const BlockArguments& arguments, BlockMaker maker);

}  // namespace forge::libtorch
