#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

constexpr int max_kernel = 4;
// Tokens of a task. Fixed, not derived from the number of threads: the weight gradient is summed
// chunk by chunk, and its bits must not depend on who computed which chunk.
constexpr int64_t chunk_tokens = 64;

template <class T>
struct Problem {
  int64_t batch, length, channels;
  int kernel;
  const T* taps;           ///< [K][C], tap 0 = current token
  const int32_t* doc_ids;  ///< [B, T] or null

  /// Whether token t reads token t - tap of the same row.
  bool reads(int64_t row, int64_t t, int tap) const {
    if (t < tap || t >= length) return false;
    return !doc_ids || doc_ids[row * length + t] == doc_ids[row * length + t - tap];
  }
};

/// Up to four rows, each with the tap that multiplies it.
template <class T>
struct Terms {
  const T* row[max_kernel];
  const T* tap[max_kernel];
  int count = 0;
  void add(const T* r, const T* w) {
    row[count] = r;
    tap[count++] = w;
  }
};

/// y[c] = sum_i tap_i[c] * row_i[c]; a loop for each count, so that every one vectorises.
template <class T>
FORGE_INLINE void sum_terms(const Terms<T>& terms, T* __restrict y, int64_t channels) {
  const T *r0 = terms.row[0], *r1 = terms.row[1], *r2 = terms.row[2], *r3 = terms.row[3];
  const T *w0 = terms.tap[0], *w1 = terms.tap[1], *w2 = terms.tap[2], *w3 = terms.tap[3];
  switch (terms.count) {
    case 0:
      for (int64_t c = 0; c < channels; ++c) y[c] = 0;
      break;
    case 1:
      for (int64_t c = 0; c < channels; ++c) y[c] = w0[c] * r0[c];
      break;
    case 2:
      for (int64_t c = 0; c < channels; ++c) y[c] = w0[c] * r0[c] + w1[c] * r1[c];
      break;
    case 3:
      for (int64_t c = 0; c < channels; ++c) y[c] = w0[c] * r0[c] + w1[c] * r1[c] + w2[c] * r2[c];
      break;
    default:
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = (w0[c] * r0[c] + w1[c] * r1[c]) + (w2[c] * r2[c] + w3[c] * r3[c]);
      }
  }
}

/// y[t] = sum over taps of tap * x[t - tap], for the tokens begin … end-1 of one row of the batch.
template <class T>
FORGE_INLINE void convolve(
    const Problem<T>& p, int64_t row, int64_t begin, int64_t end, const T* x, T* y) {
  const T* x_row = x + row * p.length * p.channels;
  T* y_row = y + row * p.length * p.channels;
  for (int64_t t = begin; t < end; ++t) {
    Terms<T> terms;
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (p.reads(row, t, tap))
        terms.add(x_row + (t - tap) * p.channels, p.taps + tap * p.channels);
    }
    sum_terms(terms, y_row + t * p.channels, p.channels);
  }
}

/// The transpose: grad_x[t] = sum over taps of tap * grad[t + tap].
template <class T>
FORGE_INLINE void convolve_transposed(
    const Problem<T>& p, int64_t row, int64_t begin, int64_t end, const T* grad, T* grad_x) {
  const T* grad_row = grad + row * p.length * p.channels;
  T* out_row = grad_x + row * p.length * p.channels;
  for (int64_t t = begin; t < end; ++t) {
    Terms<T> terms;
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (p.reads(row, t + tap, tap))
        terms.add(grad_row + (t + tap) * p.channels, p.taps + tap * p.channels);
    }
    sum_terms(terms, out_row + t * p.channels, p.channels);
  }
}

/// sums[tap] += sum over t of grad[t] * x[t - tap].
template <class T>
FORGE_INLINE void accumulate_taps(const Problem<T>& p,
                                  int64_t row,
                                  int64_t begin,
                                  int64_t end,
                                  const T* x,
                                  const T* grad,
                                  T* sums) {
  const T* x_row = x + row * p.length * p.channels;
  const T* grad_row = grad + row * p.length * p.channels;
  for (int64_t t = begin; t < end; ++t) {
    const T* g = grad_row + t * p.channels;
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (!p.reads(row, t, tap)) continue;
      const T* past = x_row + (t - tap) * p.channels;
      T* __restrict sum = sums + tap * p.channels;
      for (int64_t c = 0; c < p.channels; ++c) sum[c] += g[c] * past[c];
    }
  }
}

using Range = std::array<int64_t, 3>;  // row of the batch, first and last+1 token

/// Calls task(index of the chunk, range) for every chunk of tokens, on all threads.
template <class Task>
void for_each_chunk(int64_t batch, int64_t length, const Task& task) {
  const int64_t chunks_of_row = (length + chunk_tokens - 1) / chunk_tokens;
  at::parallel_for(0, batch * chunks_of_row, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t begin = chunk % chunks_of_row * chunk_tokens;
      task(chunk, Range{chunk / chunks_of_row, begin, std::min(begin + chunk_tokens, length)});
    }
  });
}

/// Weights as [K][C] with tap 0 the current token; the residual is one more of the current token.
template <class T>
std::vector<T> taps_first(const at::Tensor& w, bool add_identity) {
  const int64_t channels = w.size(0), kernel = w.size(2);
  const T* source = w.data_ptr<T>();
  std::vector<T> taps(channels * kernel);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t k = 0; k < kernel; ++k)
      taps[(kernel - 1 - k) * channels + c] = source[c * kernel + k];
    if (add_identity) taps[c] += 1;
  }
  return taps;
}

template <class T>
Problem<T> problem(const at::Tensor& x,
                   const at::Tensor& w,
                   const at::Tensor& doc_ids,
                   const std::vector<T>& taps) {
  return {x.size(0),
          x.size(1),
          x.size(2),
          static_cast<int>(w.size(2)),
          taps.data(),
          doc_ids.defined() ? doc_ids.data_ptr<int32_t>() : nullptr};
}

template <class T>
void forward(const at::Tensor& x,
             const at::Tensor& w,
             bool add_identity,
             const at::Tensor& doc_ids,
             at::Tensor& y) {
  const std::vector<T> taps = taps_first<T>(w, add_identity);
  const Problem<T> p = problem(x, w, doc_ids, taps);
  for_each_chunk(p.batch, p.length, [&](int64_t, Range range) {
    with_simd([&]() FORGE_SIMD_BODY {
      convolve(p, range[0], range[1], range[2], x.data_ptr<T>(), y.data_ptr<T>());
    });
  });
}

template <class T>
void backward(const at::Tensor& x,
              const at::Tensor& w,
              bool add_identity,
              const at::Tensor& doc_ids,
              const at::Tensor& grad,
              at::Tensor& grad_x,
              at::Tensor& grad_w) {
  const std::vector<T> taps = taps_first<T>(w, add_identity);
  const Problem<T> p = problem(x, w, doc_ids, taps);
  const int64_t chunks = p.batch * ((p.length + chunk_tokens - 1) / chunk_tokens);
  const int64_t size = p.kernel * p.channels;
  std::vector<T> sums(chunks * size, T(0));
  for_each_chunk(p.batch, p.length, [&](int64_t chunk, Range range) {
    const T *in = x.data_ptr<T>(), *g = grad.data_ptr<T>();
    with_simd([&]() FORGE_SIMD_BODY {
      accumulate_taps(p, range[0], range[1], range[2], in, g, &sums[chunk * size]);
      convolve_transposed(p, range[0], range[1], range[2], g, grad_x.data_ptr<T>());
    });
  });
  T* out = grad_w.data_ptr<T>();
  at::parallel_for(0, p.channels, 64, [&](int64_t first, int64_t last) {
    for (int tap = 0; tap < p.kernel; ++tap) {
      for (int64_t c = first; c < last; ++c) {
        T sum = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          sum += sums[chunk * size + tap * p.channels + c];
        out[c * p.kernel + p.kernel - 1 - tap] = sum;
      }
    }
  });
}

}  // namespace

void canon_conv_forward_cpu(const at::Tensor& x,
                            const at::Tensor& w,
                            const CanonConvOptions& options,
                            const at::Tensor& doc_ids,
                            at::Tensor& y) {
  const bool add_identity = options.residual && !options.silu;
  if (x.scalar_type() == at::kFloat) {
    forward<float>(x, w, add_identity, doc_ids, y);
  } else {
    forward<double>(x, w, add_identity, doc_ids, y);
  }
  if (!options.silu) return;
  at::silu_(y);
  if (options.residual) y.add_(x);
}

void canon_conv_backward_cpu(const at::Tensor& x,
                             const at::Tensor& w,
                             const CanonConvOptions& options,
                             const at::Tensor& doc_ids,
                             const at::Tensor& grad_y,
                             at::Tensor& grad_x,
                             at::Tensor& grad_w) {
  const bool add_identity = options.residual && !options.silu;
  at::Tensor grad = grad_y;
  if (options.silu) {
    at::Tensor convolved = at::empty_like(x);
    canon_conv_forward_cpu(x, w, {false, false}, doc_ids, convolved);
    grad = at::silu_backward(grad_y, convolved);
  }
  if (x.scalar_type() == at::kFloat) {
    backward<float>(x, w, add_identity, doc_ids, grad, grad_x, grad_w);
  } else {
    backward<double>(x, w, add_identity, doc_ids, grad, grad_x, grad_w);
  }
  if (options.silu && options.residual) grad_x.add_(grad_y);
}

}  // namespace forge::ops
