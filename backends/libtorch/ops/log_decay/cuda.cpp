#include "backends/libtorch/ops/log_decay/cuda.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"

namespace forge::ops {
namespace {

template <class T>
cuda::LogDecayPass<T> arguments(const at::Tensor& x, const at::Tensor& bias, double normalizer) {
  return {x.size(0),
          x.size(1),
          static_cast<float>(normalizer),
          cuda::read<T>(x),
          cuda::read<float>(bias)};
}

template <class T>
cuda::HeadGatesPass<T> arguments(const HeadGateLogits& logits) {
  const at::Tensor& write = logits.write;
  return {logits.step.size(0),
          logits.step.size(1),
          row_stride(logits.step),
          write.defined() ? row_stride(write) : 0,
          cuda::read<T>(logits.step),
          cuda::read<T>(write),
          cuda::read<float>(logits.a_log),
          cuda::read<float>(logits.step_bias)};
}

}  // namespace

void log_decay_forward_cuda(const at::Tensor& x,
                            const at::Tensor& bias,
                            double normalizer,
                            at::Tensor& log_decay) {
  cuda::with_type(x, [&](auto type) {
    cuda::log_decay_forward(arguments<decltype(type)>(x, bias, normalizer),
                            cuda::write<float>(log_decay),
                            cuda::current_stream());
  });
}

void log_decay_backward_cuda(const at::Tensor& x,
                             const at::Tensor& bias,
                             double normalizer,
                             const at::Tensor& grad_log_decay,
                             at::Tensor& grad_x,
                             at::Tensor& grad_bias) {
  cuda::BlockSums block_sums(x, x.size(1));
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::log_decay_backward(arguments<T>(x, bias, normalizer),
                             cuda::read<float>(grad_log_decay),
                             cuda::write<T>(grad_x),
                             block_sums.allocate(),
                             cuda::current_stream());
  });
  grad_bias = block_sums.total();
}

void head_gates_forward_cuda(const HeadGateLogits& logits, HeadGates& gates) {
  cuda::with_type(logits.step, [&](auto type) {
    cuda::head_gates_forward(arguments<decltype(type)>(logits),
                             cuda::write<float>(gates.log_decay),
                             cuda::write<float>(gates.beta),
                             cuda::current_stream());
  });
}

void head_gates_backward_cuda(const HeadGateLogits& logits,
                              const HeadGates& grad_gates,
                              HeadGateLogits& grads) {
  const int64_t heads = logits.a_log.size(0);
  cuda::BlockSums block_sums(logits.step, 2 * heads);
  cuda::with_type(logits.step, [&](auto type) {
    using T = decltype(type);
    cuda::head_gates_backward(arguments<T>(logits),
                              cuda::read<float>(grad_gates.log_decay),
                              cuda::read<float>(grad_gates.beta),
                              cuda::write<T>(grads.step),
                              cuda::write<T>(grads.write),
                              block_sums.allocate(),
                              cuda::current_stream());
  });
  const std::vector<at::Tensor> parts = block_sums.total().split(heads);
  grads.a_log = parts[0];
  grads.step_bias = parts[1];
}

}  // namespace forge::ops
