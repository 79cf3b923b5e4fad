#pragma once

#include <optional>

#include "backends/libtorch/blocks/canon.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"

namespace forge::libtorch {

/// Causal softmax attention with grouped keys and values:
///   n         = CanonA(RMSNorm(x))
///   [q | k | v] = n W_qkv^T, RMSNorm of q and k over all channels where qk_norm is full
///   [q | k | v] = CanonB([q | k | v]), RMSNorm of each head of q and k where qk_norm is per_head
///   y         = x + attention(rope(q), rope(k), v) W_output^T
/// Whole rows go through fused operations. A step remembers keys (as attention reads them) and
/// values of all tokens, and the last inputs of Canon-A and Canon-B.
class AttentionBlock final : public Block {
 public:
  explicit AttentionBlock(const BlockArguments& arguments);

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const override;
  std::unique_ptr<BlockState> new_state(int64_t rows,
                                        const at::TensorOptions& options) const override;
  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& state) const override;

 private:
  ops::HeadLayout layout_;
  ops::RmsNormOptions norm_;
  std::optional<RotaryOptions> rope_;
  std::shared_ptr<RotaryTables> rotary_;
  at::Tensor input_norm_;  ///< [hidden]
  Canon canon_a_;
  /// [(H + 2G) D, hidden]: q, k and v together, so that one product serves all three and Canon-B is
  /// one convolution.
  ops::WeightMatrix qkv_;
  at::Tensor q_norm_full_, k_norm_full_;  ///< [H D] and [G D], or undefined
  ops::HeadNorms head_norms_;             ///< per head, or undefined
  Canon canon_b_;
  ops::WeightMatrix output_;  ///< [hidden, H D]
};

}  // namespace forge::libtorch
