#pragma once

#include <vector>

#include "backends/libtorch/blocks/canon.h"
#include "backends/libtorch/blocks/norm.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/ops/gated_norm/gated_norm.h"
#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/ops/short_conv/short_conv.h"
#include "core/model/linear/heads.h"

/// What the blocks of linear mixers share: gla5, gdn2 and mamba2.
namespace forge::libtorch {

/// What a mixer remembers of the rows of a batch. Its size does not depend on their lengths.
struct LinearState final : BlockState {
  at::Tensor heads;                   ///< [B, H, K, V], float32 at least
  at::Tensor canon_a, conv, canon_b;  ///< last inputs [B, kernel - 1, channels], or undefined

  void select(const at::Tensor& index) override;
};

/// The next tokens of rows that have tokens already, and what is remembered of those.
struct Generation {
  const GenerationStep& step;
  LinearState& state;
};

/// The letter b: the mixer's own short convolution of its inputs, with what it remembers. Without
/// the letter the activation alone.
class MixerConv {
 public:
  MixerConv() = default;
  /// `weights`: of the convolution, named prefix + name, as many channels as the mixed parts have.
  MixerConv(const BlockArguments& arguments,
            const std::vector<WeightRows>& weights,
            bool with_bias,
            bool with_silu);
  /// Neither convolution nor activation: parts that get length 1, with `eps` added to the sum of
  /// their squares.
  static MixerConv lengths_alone(double eps);

  at::Tensor new_inputs(int64_t rows, const at::TensorOptions& options) const;
  /// The parts of a projection [B, T, W], see ops::short_conv.
  std::vector<at::Tensor> operator()(const at::Tensor& projection,
                                     const std::vector<ops::ProjectionPart>& parts,
                                     const Generation* generation) const;

 private:
  ops::ShortConv conv_;
};

/// The frame of a linear mixer:
///   p = CanonA(Norm(x)) W_in^T,   y = x + mixed(p) W_out^T
/// W_in holds all that reads the normed stream, so that one product serves it. A step goes through
/// the same operations as a whole row: they begin with a state and end with one.
class LinearMixer : public Block {
 public:
  explicit LinearMixer(const BlockArguments& arguments, const model::LinearHeads& heads);

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const final;
  std::unique_ptr<BlockState> new_state(int64_t rows, const at::TensorOptions& options) const final;
  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& block_state) const final;

 protected:
  /// From p [B, T, W] and x the block's output y.
  virtual at::Tensor mix(const at::Tensor& projection,
                         const at::Tensor& x,
                         const Generation* generation) const = 0;

  /// Linear attention, flattened to [B, T, H V]; in generation from the state on. Tokens behind a
  /// row's count leave it as it is. `again` as for ops::recomputed_linear_attention.
  at::Tensor attend(ops::LinearAttentionInputs inputs,
                    const ops::LinearAttentionOptions& options,
                    const ops::Recomputation& again,
                    const Generation* generation) const;
  /// x [B, T, heads * D] as [B, T, heads, D].
  static at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
    return x.view({x.size(0), x.size(1), heads, x.size(2) / heads});
  }
  /// Canon-B where there is one, else x. Channels of x behind those of the layer fill rows up.
  at::Tensor canon_b(const at::Tensor& x, const Generation* generation) const;
  /// q, k, v, log decay and beta, as a Recomputation of linear attention makes them.
  static ops::LinearAttentionInputs inputs_of(const std::vector<at::Tensor>& list) {
    return {list[0], list[1], list[2], list[3], list[4], {}};
  }

  model::LinearHeads heads_;
  Norm norm_;
  Canon canon_a_, canon_b_;
  ops::WeightMatrix input_, output_;
  MixerConv conv_;
};

/// The part that gla5 and gdn2 share: q, k and v, and the gated norm of the heads' outputs.
class GatedHeads {
 public:
  GatedHeads() = default;
  /// `mixer`: "gla5.", the prefix of its weights; `norm` the name of the heads' norm.
  GatedHeads(const BlockArguments& arguments,
             const std::string& mixer,
             const char* norm,
             const model::LinearHeads& heads,
             std::optional<int> gate_rank);

  /// Rows of W_in: of q, k and v, and of the gate or its narrow half.
  const std::vector<WeightRows>& qkv() const { return qkv_; }
  const WeightRows& gate() const { return gate_rows_; }
  /// The same as channels of the short convolution.
  const std::vector<WeightRows>& convolutions() const { return convolutions_; }

  /// From the heads' outputs [B, T, H V] and the gate's part of the projection what the block adds
  /// to x, by the matrix `output`, and x.
  at::Tensor output(const at::Tensor& outputs,
                    const at::Tensor& gate,
                    const ops::WeightMatrix& output,
                    const at::Tensor& x) const;

 private:
  std::vector<WeightRows> qkv_, convolutions_;
  WeightRows gate_rows_;
  ops::WeightMatrix wide_gate_;  ///< [H V, rank]; undefined where the gate is of full rank
  ops::GatedNorm norm_;
};

/// Whether silu acts on q, k and v.
inline bool has_silu(model::QkvActivation activation, const model::CanonConfig& canon) {
  return activation == model::QkvActivation::silu ||
         (activation == model::QkvActivation::after_conv && canon.has('b'));
}

}  // namespace forge::libtorch
