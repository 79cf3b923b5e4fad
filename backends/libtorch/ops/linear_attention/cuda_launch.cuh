#pragma once

#include "backends/libtorch/ops/linear_attention/cuda_scalar_gradient.cuh"

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

/// P and what else the scans read.
template <Recurrence kind, int keys, class Launch>
void run_prepare(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  if constexpr (kind == Recurrence::scalar_decay) {
    const unsigned heads = in.k.head == 0 ? 1 : grid.heads;
    launch(
        products_kernel<keys>, grid.chunks, heads, grid.rows, sizeof(ProductsMemory<keys>), in);
  } else {
    constexpr size_t bytes = sizeof(PrepareMemory<kind, keys>);
    static_assert(bytes <= most_shared_bytes);
    launch(prepare_kernel<kind, keys>, grid.chunks, grid.heads, grid.rows, bytes, in);
  }
}

template <Recurrence kind, int keys, class Launch>
void run_gradient(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  const auto groups = static_cast<unsigned>(head_groups(in));
  const auto run = [&](auto kernel, auto bytes) {
    static_assert(decltype(bytes)::value <= most_shared_bytes);
    launch(kernel, grid.chunks, groups, grid.rows, bytes, in);
  };
  if constexpr (kind == Recurrence::scalar_decay)
    run(scalar_gradient_kernel<keys>,
        std::integral_constant<size_t, sizeof(ScalarGradientMemory<keys>)>{});
  else
    run(gradient_kernel<kind, keys>,
        std::integral_constant<size_t, sizeof(GradientMemory<kind, keys>)>{});
}

/// At least one token, head and row.
template <class Launch>
void run_forward(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  with_recurrence(in, [&](auto kind, auto keys) {
    constexpr Recurrence k = decltype(kind)::value;
    constexpr int d = decltype(keys)::value;
    constexpr size_t bytes = sizeof(ScanMemoryOf<k, d>);
    static_assert(bytes <= most_shared_bytes);
    run_prepare<k, d>(in, launch);
    launch(state_kernel<k, d, false>, grid.slices, grid.heads, grid.rows, bytes, in);
  });
}

template <class Launch>
void run_backward(const LinearAttentionArguments& in, const Launch& launch) {
  const LinearAttentionGrid grid(in);
  with_recurrence(in, [&](auto kind, auto keys) {
    constexpr Recurrence k = decltype(kind)::value;
    constexpr int d = decltype(keys)::value;
    constexpr size_t bytes = sizeof(ScanMemoryOf<k, d>);
    run_prepare<k, d>(in, launch);
    launch(state_kernel<k, d, true>, grid.slices, grid.heads, grid.rows, bytes, in);
    launch(state_gradient_kernel<k, d>, grid.slices, grid.heads, grid.rows, bytes, in);
    run_gradient<k, d>(in, launch);
  });
}

}  // namespace forge::ops::cuda
