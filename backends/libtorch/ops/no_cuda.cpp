// Stands for the GPU's kernels where forge is built without CUDA: has_cuda_kernel() is false there,
// so none of these is ever called.
#include "backends/libtorch/ops/adamw/multi_tensor.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/gemm_cuda.h"
#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

[[noreturn]] void no_cuda() { TORCH_CHECK(false, "this worker is built without CUDA"); }

}  // namespace

void gemm_cuda(const CudaOperand&, const CudaOperand&, const at::Tensor&, at::Tensor&) {
  no_cuda();
}

void norm_canon_forward_cuda(const at::Tensor&,
                             const at::Tensor&,
                             const RmsNormOptions&,
                             const CanonLayer&,
                             at::Tensor&,
                             at::Tensor&) {
  no_cuda();
}
void norm_canon_backward_cuda(const at::Tensor&,
                              const at::Tensor&,
                              const RmsNormOptions&,
                              const CanonLayer&,
                              const at::Tensor&,
                              const at::Tensor&,
                              const at::Tensor&,
                              at::Tensor&,
                              at::Tensor&,
                              at::Tensor&,
                              at::Tensor&) {
  no_cuda();
}

void canon_conv_forward_cuda(
    const at::Tensor&, const at::Tensor&, const CanonConvOptions&, const at::Tensor&, at::Tensor&) {
  no_cuda();
}
void canon_conv_backward_cuda(const at::Tensor&,
                              const at::Tensor&,
                              const CanonConvOptions&,
                              const at::Tensor&,
                              const at::Tensor&,
                              at::Tensor&,
                              at::Tensor&) {
  no_cuda();
}

void prepare_heads_cuda(const at::Tensor&,
                        const CanonLayer&,
                        const RotaryTable&,
                        const HeadLayout&,
                        const HeadNorms&,
                        at::Tensor&) {
  no_cuda();
}
bool can_prepare_heads_cuda(const RotaryTable&, const HeadLayout&, const HeadNorms&) {
  return false;
}
bool keeps_prepared_heads_cuda(const at::Tensor&) { return false; }
SourceGradients prepare_heads_backward_cuda(const at::Tensor&,
                                            const CanonLayer&,
                                            const RotaryTable&,
                                            const HeadLayout&,
                                            const HeadNorms&,
                                            const PreparedGradients&) {
  no_cuda();
}

bool has_library_attention(const at::Tensor&, const at::Tensor&, const Documents&) { return false; }
LibraryAttention library_attention(const at::Tensor&,
                                   const at::Tensor&,
                                   const at::Tensor&,
                                   const at::Tensor&) {
  no_cuda();
}
HeadGradients library_attention_backward(const at::Tensor&,
                                         const at::Tensor&,
                                         const at::Tensor&,
                                         const at::Tensor&,
                                         const LibraryAttention&,
                                         const at::Tensor&) {
  no_cuda();
}

void canon_swiglu_forward_cuda(const at::Tensor&, const CanonLayer&, at::Tensor&) { no_cuda(); }
void canon_swiglu_backward_cuda(const at::Tensor&,
                                const CanonLayer&,
                                const at::Tensor&,
                                at::Tensor&,
                                at::Tensor&,
                                at::Tensor&) {
  no_cuda();
}

at::Tensor linear_cross_entropy_cuda(const at::Tensor&,
                                     const at::Tensor&,
                                     const at::Tensor&,
                                     const CrossEntropyOptions&,
                                     at::Tensor&,
                                     at::Tensor&) {
  no_cuda();
}
at::Tensor linear_cross_entropy_sum_cuda(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  no_cuda();
}
void scale_unless_one_cuda(at::Tensor&, const at::Tensor&) { no_cuda(); }

UpdateState make_update_state(const std::vector<double>&, const at::Device&) { no_cuda(); }
void adamw_step_cuda(const WeightUpdate&, const UpdateOptions&, const at::Tensor&, UpdateState&) {
  no_cuda();
}

void embedding_forward_cuda(const at::Tensor&, const at::Tensor&, at::Tensor&) { no_cuda(); }
void embedding_backward_cuda(const at::Tensor&, const at::Tensor&, at::Tensor&) { no_cuda(); }

}  // namespace forge::ops
