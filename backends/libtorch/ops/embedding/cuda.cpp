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
  const int64_t count = ids.numel(), vocabulary = grad_w.size(0), channels = grad_w.size(1);
  const size_t bytes = cuda::sort_ids_bytes(count, vocabulary);
  const at::Tensor numbers = at::empty({3 * count + 2 * vocabulary}, ids.options());
  const at::Tensor memory =
      at::empty({static_cast<int64_t>(bytes)}, ids.options().dtype(at::kByte));
  auto* first = cuda::write<int32_t>(numbers);
  const cuda::SortedIds sorted{
      first, first + count, first + 3 * count, first + 3 * count + vocabulary};
  cuda::sort_ids(cuda::read<int32_t>(ids),
                 count,
                 vocabulary,
                 first + 2 * count,
                 sorted,
                 memory.data_ptr(),
                 bytes,
                 cuda::current_stream());
  cuda::with_type(grad_y, [&](auto type) {
    using T = decltype(type);
    const auto add = [&](auto* out) {
      cuda::add_rows_of_ids(
          sorted, cuda::read<T>(grad_y), vocabulary, channels, out, cuda::current_stream());
    };
    grad_w.scalar_type() == at::kFloat ? add(cuda::write<float>(grad_w))
                                       : add(cuda::write<T>(grad_w));
  });
}

}  // namespace forge::ops
