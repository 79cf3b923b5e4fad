#include "backends/libtorch/ops/gated_norm/cuda.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/gated_norm/gated_norm.h"

namespace forge::ops {
namespace {

int64_t heads_of(const HeadSkip& skip) { return skip.x.defined() ? skip.factor.size(0) : 0; }

template <class T>
cuda::GatedNormPass<T> arguments(const GatedNormInputs& in, const at::Tensor& y) {
  const int64_t channels = in.o.size(1), heads = heads_of(in.skip);
  return {in.o.size(0),
          channels,
          static_cast<int>(in.norm.weight.size(0)),
          static_cast<int>(heads > 0 ? channels / heads : channels),
          row_stride(in.gate),
          in.norm.gate_first,
          static_cast<float>(in.norm.eps),
          cuda::read<T>(in.o),
          cuda::read<T>(in.gate),
          cuda::read<T>(in.skip.x),
          cuda::read<float>(in.norm.weight),
          cuda::read<float>(in.norm.gate_bias),
          cuda::read<float>(in.skip.factor),
          cuda::write<T>(y)};
}

}  // namespace

bool cuda_gated_norm_supports(const at::Tensor& o, const GatedNorm& norm, const HeadSkip& skip) {
  const int64_t channels = o.size(-1), heads = heads_of(skip);
  return (heads == 0 || channels / heads % 8 == 0) &&
         cuda::gated_norm_fits(channels, norm.weight.size(0));
}

void gated_norm_forward_cuda(const GatedNormInputs& inputs, at::Tensor& y) {
  cuda::with_type(inputs.o, [&](auto type) {
    cuda::gated_norm_forward(arguments<decltype(type)>(inputs, y), cuda::current_stream());
  });
}

GatedNormGradients gated_norm_backward_cuda(const GatedNormInputs& inputs,
                                            const at::Tensor& grad_y,
                                            const at::Tensor& y) {
  const at::Tensor& bias = inputs.norm.gate_bias;
  const int64_t width = inputs.norm.weight.size(0), heads = heads_of(inputs.skip);
  const int64_t biases = bias.defined() ? bias.size(0) : 0;
  const auto like_o = [&] { return at::empty(inputs.o.sizes(), inputs.o.options()); };
  GatedNormGradients grads;
  grads.o = like_o();
  grads.gate = like_o();
  if (heads > 0) grads.skip = like_o();
  cuda::BlockSums block_sums(inputs.o, width + biases + heads);
  cuda::with_type(inputs.o, [&](auto type) {
    using T = decltype(type);
    cuda::gated_norm_backward(arguments<T>(inputs, y),
                              cuda::GatedNormGradient<T>{cuda::read<T>(grad_y),
                                                         row_stride(grads.gate),
                                                         cuda::write<T>(grads.o),
                                                         cuda::write<T>(grads.gate),
                                                         cuda::write<T>(grads.skip)},
                              block_sums.allocate(),
                              cuda::current_stream());
  });
  const std::vector<at::Tensor> parts = block_sums.total().split_with_sizes({width, biases, heads});
  grads.weight = parts[0];
  if (biases > 0) grads.bias = parts[1];
  if (heads > 0) grads.factor = parts[2];
  return grads;
}

}  // namespace forge::ops
