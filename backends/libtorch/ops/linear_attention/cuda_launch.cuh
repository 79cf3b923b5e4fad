#pragma once

#include "backends/libtorch/ops/linear_attention/cuda_gradient.cuh"

/// The order of the kernels, with their grids: launch(kernel, x, y, z, shared bytes, arguments)
/// runs one, on a GPU or in a test's emulation of it.
namespace forge::ops::cuda {

/// Calls run(kind, keys), constants.
template <class Run>
void with_recurrence(const LinearAttentionArguments& in, const Run& run) {
  const auto with_keys = [&](auto kind) {
    if (in.keys == 32) return run(kind, std::integral_constant<int, 32>{});
    if (in.keys == 64) return run(kind, std::integral_constant<int, 64>{});
    run(kind, std::integral_constant<int, 128>{});
  };
  using R = Recurrence;
  if (in.kind == R::scalar_decay) return with_keys(std::integral_constant<R, R::scalar_decay>{});
  if (in.kind == R::delta_rule) return with_keys(std::integral_constant<R, R::delta_rule>{});
  with_keys(std::integral_constant<R, R::channel_decay>{});
}

struct LinearAttentionGrid {
  unsigned chunks, slices, heads, rows;
  explicit LinearAttentionGrid(const LinearAttentionArguments& in)
      : chunks(static_cast<unsigned>((in.length + chunk_tokens - 1) / chunk_tokens)),
        slices(static_cast<unsigned>((in.values + slice_columns - 1) / slice_columns)),
        heads(static_cast<unsigned>(in.heads)),
        rows(static_cast<unsigned>(in.batch)) {}
};

/// What a multiprocessor of compute capability 9.0 lends a block.
constexpr size_t most_shared_bytes = 227 * 1024;

/// At least one token, head and row.
template <class Launch>
void run_forward(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  with_recurrence(in, [&](auto kind, auto keys) {
    constexpr Recurrence k = decltype(kind)::value;
    constexpr int d = decltype(keys)::value;
    static_assert(sizeof(PrepareMemory<k, d>) <= most_shared_bytes &&
                  sizeof(ScanMemoryOf<k, d>) <= most_shared_bytes &&
                  sizeof(GradientMemory<k, d>) <= most_shared_bytes);
    launch(
        prepare_kernel<k, d>, grid.chunks, grid.heads, grid.rows, sizeof(PrepareMemory<k, d>), in);
    launch(state_kernel<k, d, false>,
           grid.slices,
           grid.heads,
           grid.rows,
           sizeof(ScanMemoryOf<k, d>),
           in);
  });
}

template <class Launch>
void run_backward(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  with_recurrence(in, [&](auto kind, auto keys) {
    constexpr Recurrence k = decltype(kind)::value;
    constexpr int d = decltype(keys)::value;
    static_assert(sizeof(PrepareMemory<k, d>) <= most_shared_bytes &&
                  sizeof(ScanMemoryOf<k, d>) <= most_shared_bytes &&
                  sizeof(GradientMemory<k, d>) <= most_shared_bytes);
    launch(
        prepare_kernel<k, d>, grid.chunks, grid.heads, grid.rows, sizeof(PrepareMemory<k, d>), in);
    launch(state_kernel<k, d, true>,
           grid.slices,
           grid.heads,
           grid.rows,
           sizeof(ScanMemoryOf<k, d>),
           in);
    launch(state_gradient_kernel<k, d>,
           grid.slices,
           grid.heads,
           grid.rows,
           sizeof(ScanMemoryOf<k, d>),
           in);
    launch(gradient_kernel<k, d>,
           grid.chunks,
           static_cast<unsigned>(head_groups(in)),
           grid.rows,
           sizeof(GradientMemory<k, d>),
           in);
  });
}

}  // namespace forge::ops::cuda
