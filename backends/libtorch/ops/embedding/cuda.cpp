#include "backends/libtorch/ops/embedding/cuda.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/embedding/embedding.h"

namespace forge::ops {

void embedding_forward_cuda(const at::Tensor& w, const at::Tensor& ids, at::Tensor& y) {
  cuda::with_type(w, [&](auto type) {
    using T = decltype(type);
    cuda::gather_rows(cuda::read<T>(w),
                      cuda::read<int32_t>(ids),
                      ids.numel(),
                      w.size(1),
                      cuda::write<T>(y),
                      cuda::current_stream());
  });
}

void embedding_backward_cuda(const at::Tensor& ids, const at::Tensor& grad_y, at::Tensor& grad_w) {
  std::vector<at::Tensor> memory;
  const auto allocate = [&](size_t bytes) {
    memory.push_back(at::empty({static_cast<int64_t>(bytes)}, ids.options().dtype(at::kByte)));
    return memory.back().data_ptr();
  };
  cuda::with_type(grad_y, [&](auto type) {
    using T = decltype(type);
    const auto sum_into = [&](auto* out) {
      cuda::sum_rows_by_id(cuda::read<int32_t>(ids),
                           ids.numel(),
                           cuda::read<T>(grad_y),
                           grad_w.size(0),
                           grad_w.size(1),
                           out,
                           allocate,
                           cuda::current_stream());
    };
    grad_w.scalar_type() == at::kFloat ? sum_into(cuda::write<float>(grad_w))
                                       : sum_into(cuda::write<T>(grad_w));
  });
}

}  // namespace forge::ops
