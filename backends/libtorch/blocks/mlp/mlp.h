#pragma once

#include "backends/libtorch/blocks/canon.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"

namespace forge::libtorch {

/// The gated MLP (SwiGLU):
///   [gate | up] = CanonD(CanonC(RMSNorm(x)) W_gate_up^T)
///   y           = x + (silu(gate) * up) W_down^T
/// Whole rows go through fused operations. A step remembers the last inputs of Canon-C and Canon-D.
class MlpBlock final : public Block {
 public:
  explicit MlpBlock(const BlockArguments& arguments);

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const override;
  std::unique_ptr<BlockState> new_state(int64_t rows,
                                        const at::TensorOptions& options) const override;
  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& state) const override;

 private:
  ops::RmsNormOptions norm_options_;
  at::Tensor norm_;  ///< [hidden]
  Canon canon_c_;
  /// [2I, hidden]: gate and up together, so that one product serves both and Canon-D is one
  /// convolution.
  ops::WeightMatrix gate_up_;
  Canon canon_d_;
  ops::WeightMatrix down_;  ///< [hidden, I]
};

}  // namespace forge::libtorch
