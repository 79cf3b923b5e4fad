#include "backends/libtorch/ops/linear_cross_entropy/cuda.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"

namespace forge::ops {
namespace {

using ZLoss = CrossEntropyOptions::ZLoss;

cuda::ZLossKind kind_of(ZLoss z_loss) {
  switch (z_loss) {
    case ZLoss::palm: return cuda::ZLossKind::palm;
    case ZLoss::lingua_code: return cuda::ZLossKind::lingua_code;
    case ZLoss::none: break;
  }
  return cuda::ZLossKind::none;
}

/// Rows whose logits are in memory at a time. The gradient of the head is read and written once a
/// chunk, so chunks are large; but not so large that their memory would matter.
int64_t chunk_rows(int64_t stride, int64_t element_size) {
  constexpr int64_t bytes = int64_t{256} << 20;
  return std::max<int64_t>(1024, bytes / (stride * element_size) / 256 * 256);
}

/// What the sum of the losses is divided by, float32 [1].
at::Tensor divisor(const at::Tensor& targets, const CrossEntropyOptions& options) {
  const at::Tensor& counted = options.counted(targets);
  const at::TensorOptions wide = targets.options().dtype(at::kFloat);
  at::Tensor count = at::empty({1}, wide);
  if (options.z_loss == ZLoss::lingua_code) return count.fill_(double(counted.numel()));
  cuda::count_scored(cuda::read<int32_t>(counted),
                     counted.numel(),
                     cuda::write<float>(count),
                     cuda::current_stream());
  return count;
}

/// Losses of all rows, float32, and the gradients of their sum divided by `count`, where those are
/// defined; without any, `count` may be undefined.
at::Tensor losses_and_gradients(const at::Tensor& x,
                                const at::Tensor& w,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options,
                                const at::Tensor& count,
                                at::Tensor& grad_x,
                                at::Tensor& grad_w) {
  const int64_t rows = x.size(0), vocabulary = w.size(0);
  const int64_t stride = (vocabulary + 7) / 8 * 8;
  const int64_t at_once = std::min(rows, chunk_rows(stride, x.element_size()));
  const at::Tensor losses = at::empty({rows}, x.options().dtype(at::kFloat));
  const at::Tensor memory = at::empty({at_once, stride}, x.options());
  if (grad_w.defined() && rows == 0) grad_w.zero_();
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t chunk = std::min(at_once, rows - begin);
    const at::Tensor hidden = x.narrow(0, begin, chunk);
    at::Tensor logits = memory.narrow(0, 0, chunk).narrow(1, 0, vocabulary);
    gemm_cuda({hidden}, {w, true}, {}, logits);
    cuda::with_type(x, [&](auto type) {
      using T = decltype(type);
      cuda::loss_rows(cuda::LossRows<T>{chunk,
                                        vocabulary,
                                        stride,
                                        cuda::write<T>(logits),
                                        cuda::read<int32_t>(targets) + begin,
                                        cuda::write<float>(losses) + begin,
                                        cuda::read<float>(count),
                                        kind_of(options.z_loss),
                                        static_cast<float>(options.coefficient),
                                        grad_x.defined() || grad_w.defined()},
                      cuda::current_stream());
    });
    if (grad_x.defined()) {
      at::Tensor out = grad_x.narrow(0, begin, chunk);
      gemm_cuda({logits}, {w}, {}, out);
    }
    if (grad_w.defined())
      gemm_cuda({logits, true}, {hidden}, begin == 0 ? at::Tensor() : grad_w, grad_w);
  }
  return losses;
}

}  // namespace

at::Tensor linear_cross_entropy_cuda(const at::Tensor& x,
                                     const at::Tensor& w,
                                     const at::Tensor& targets,
                                     const CrossEntropyOptions& options,
                                     at::Tensor& grad_x,
                                     at::Tensor& grad_w) {
  const at::Tensor count = divisor(targets, options);
  const at::Tensor losses = losses_and_gradients(x, w, targets, options, count, grad_x, grad_w);
  at::Tensor loss = at::empty({}, losses.options());
  cuda::mean_loss(cuda::read<float>(losses),
                  losses.size(0),
                  cuda::read<float>(count),
                  cuda::write<float>(loss),
                  cuda::current_stream());
  return loss;
}

at::Tensor linear_cross_entropy_losses_cuda(const at::Tensor& x,
                                            const at::Tensor& w,
                                            const at::Tensor& targets) {
  at::Tensor none_x, none_w;
  return losses_and_gradients(x, w, targets, {}, {}, none_x, none_w);
}

void scale_unless_one_cuda(at::Tensor& x, const at::Tensor& factor) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::scale_unless_one(
        cuda::write<T>(x), x.numel(), cuda::read<float>(factor), cuda::current_stream());
  });
}

}  // namespace forge::ops
