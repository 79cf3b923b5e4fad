#pragma once

#include <string>

#include "backends/libtorch/model/block.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"

namespace forge::libtorch {

/// A Canon layer at one of a block's positions, or none: a short causal convolution of each
/// channel.
class Canon {
 public:
  Canon() = default;
  /// `position`: A … D. There is a layer where the config's canon.set has that letter; its weight
  /// is called prefix + name.
  Canon(const BlockArguments& arguments, char position, const std::string& name, int64_t channels);

  /// As an operation takes it, over whole rows.
  ops::CanonLayer layer(const ops::Documents& documents) const {
    return {weight_, options_, documents.ids};
  }

  /// The last inputs of rows without tokens, zeros [rows, kernel - 1, channels]; undefined where
  /// there is no layer.
  at::Tensor new_inputs(int64_t rows, const at::TensorOptions& options) const;
  /// Over a step's tokens x [B, width, channels]. Brings `last_inputs` up to them.
  at::Tensor step(const at::Tensor& x, const GenerationStep& step, at::Tensor& last_inputs) const;

 private:
  at::Tensor weight_;  ///< [channels, 1, kernel], or undefined
  ops::CanonConvOptions options_;
};

}  // namespace forge::libtorch
