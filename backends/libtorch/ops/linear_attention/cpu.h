#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <type_traits>

#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/ops/linear_attention/linear_attention.h"

/// What the chunk forms of linear attention share: one head of one row over pointers, and loops.
namespace forge::ops::recurrence {

/// Tokens of a chunk. Work inside of a chunk grows with it, the number of uses of the state falls.
constexpr int64_t chunk_tokens = 64;

inline int64_t chunks_of(int64_t length) { return (length + chunk_tokens - 1) / chunk_tokens; }

/// Vectors of successive tokens, or rows of a matrix.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;  ///< elements from one to the next

  T* at(int64_t row) const { return data + row * stride; }
  T& number(int64_t row) const { return data[row * stride]; }
  Rows from(int64_t row) const { return {at(row), stride}; }
  Rows<const T> read() const { return {data, stride}; }
  Operand<std::remove_const_t<T>> matrix() const { return {data, stride}; }
  Operand<std::remove_const_t<T>> transposed() const { return {data, stride, true}; }
};

/// Uninitialised numbers, taken piece by piece. Pieces begin at the width of a vector register.
template <class T>
class Memory {
 public:
  /// For `pieces` pieces of `numbers` numbers together.
  Memory(int64_t numbers, int64_t pieces)
      : size_(numbers + pieces * alignment),
        data_(static_cast<T*>(::operator new(size_ * sizeof(T), std::align_val_t(64)))) {}
  ~Memory() { ::operator delete(data_, std::align_val_t(64)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* take(int64_t numbers) {
    T* piece = data_ + used_;
    used_ += (numbers + alignment - 1) / alignment * alignment;
    TORCH_INTERNAL_ASSERT(used_ <= size_);
    return piece;
  }
  Rows<T> matrix(int64_t rows, int64_t columns) { return {take(rows * columns), columns}; }
  /// Takes the place of doubles(rows * columns) numbers.
  Rows<double> matrix_of_doubles(int64_t rows, int64_t columns) {
    return {reinterpret_cast<double*>(take(doubles(rows * columns))), columns};
  }
  static constexpr int64_t doubles(int64_t numbers) {
    return numbers * static_cast<int64_t>(sizeof(double) / sizeof(T));
  }

 private:
  static constexpr int64_t alignment = 16;
  int64_t size_;
  T* data_;
  int64_t used_ = 0;
};

/// One head of one row of the batch.
template <class T>
struct Head {
  int64_t length, keys, values;
  T scale;
  Rows<const T> q, k, v;
  Rows<const T> log_decay;  ///< a vector or a number for each token
  Rows<const T> beta;       ///< a number for each token, or null
  const T* state;           ///< [K, V] before the first token, or null

  Rows<const T> matrix(const T* state_of_head) const { return {state_of_head, values}; }
  int64_t state_size() const { return keys * values; }
  int64_t chunks() const { return chunks_of(length); }
  T beta_of(int64_t t) const { return beta.data ? beta.number(t) : T(1); }
};

/// Its results, each null where nobody wants it.
template <class T>
struct HeadResults {
  Rows<T> output;
  T* state;
};

/// What it gets for the backward pass, and its gradients.
template <class T>
struct HeadGradients {
  Rows<const T> output;
  const T* final_state;  ///< or null
  Rows<T> q, k, v, log_decay;
  Rows<T> beta;  ///< or null
  T* state;      ///< or null
};

/// Some tokens of a head that are computed at once.
struct Chunk {
  int64_t index, begin, tokens;
};

inline Chunk chunk_at(int64_t index, int64_t length) {
  const int64_t begin = index * chunk_tokens;
  return {index, begin, std::min(chunk_tokens, length - begin)};
}

/// C [m, n] = A [m, k] B [k, n] [+ C]
template <class T>
void multiply(const Rows<T>& c,
              int64_t m,
              int64_t n,
              int64_t k,
              const Operand<T>& a,
              const Operand<T>& b,
              bool add = false) {
  gemm(Product<T>{m, n, k, c.data, c.stride, add}, a, b);
}

template <class T>
FORGE_INLINE T dot(int64_t size, const T* a, const T* b) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// y = factor x, which may lie where x does.
template <class T>
FORGE_INLINE void scaled(int64_t size, T factor, const T* x, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) y[i] = factor * x[i];
}

/// The numbers above the diagonal of the first n columns become zeros, by selection: they may be
/// infinite.
template <class T>
FORGE_INLINE void zero_above_diagonal(int64_t n, const Rows<T>& matrix) {
  for (int64_t i = 0; i < n; ++i) std::fill(matrix.at(i) + i + 1, matrix.at(i) + n, T(0));
}

/// Sets a head's state before its first token.
template <class T>
void load_state(const Head<T>& head, T* state) {
  if (head.state) {
    std::copy(head.state, head.state + head.state_size(), state);
  } else {
    std::fill(state, state + head.state_size(), T(0));
  }
}

/// The gradient of the state behind the last token.
template <class T>
void load_final_gradient(const Head<T>& head, const HeadGradients<T>& grad, T* state) {
  if (grad.final_state) {
    std::copy(grad.final_state, grad.final_state + head.state_size(), state);
  } else {
    std::fill(state, state + head.state_size(), T(0));
  }
}

/// exp of a difference of sums of log decays that is at most 0, whatever rounding made of it. The
/// sums are doubles: total decay brings them to -2000 and more, where floats lie 1e-4 apart.
template <class T>
FORGE_INLINE T faded(double later, double earlier) {
  const T difference = static_cast<T>(later - earlier);
  return fast_exp(difference < 0 ? difference : T(0));
}

/// What a chunk of a head that fades as a whole needs of its decays: b, the sums of log decays
/// inside of the chunk, as factors.
template <class T>
struct ScalarDecay {
  double sums[chunk_tokens];   ///< b_i
  T from_begin[chunk_tokens];  ///< exp(b_i)
  T to_end[chunk_tokens];      ///< exp(b_n - b_i)
  T whole;                     ///< exp(b_n)

  FORGE_INLINE void compute(const Rows<const T>& log_decay, const Chunk& chunk) {
    double sum = 0;
    for (int64_t i = 0; i < chunk.tokens; ++i) {
      sum += static_cast<double>(log_decay.number(chunk.begin + i));
      sums[i] = sum;
    }
    for (int64_t i = 0; i < chunk.tokens; ++i) {
      from_begin[i] = faded<T>(sums[i], 0);
      to_end[i] = faded<T>(sum, sums[i]);
    }
    whole = from_begin[chunk.tokens - 1];
  }
  /// factors[j] = exp(b_i - b_j) for the first `count` tokens j, none of them behind i.
  FORGE_INLINE void since(int64_t i, int64_t count, T* factors) const {
    const double b = sums[i];
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) factors[j] = faded<T>(b, sums[j]);
  }
};

/// Log decays' gradients: all of a token's sums reach those behind it, and the state at the end,
/// which `end` belongs to.
template <class T>
FORGE_INLINE void sum_from_end(const Chunk& chunk, T end, const T* sums, const Rows<T>& grad) {
  T sum = end;
  for (int64_t i = chunk.tokens - 1; i >= 0; --i) grad.number(chunk.begin + i) = sum += sums[i];
}

// The chunk forms, each in the file of its name. `state` is behind the last token, or null.

template <class T>
void channel_decay_forward(const Head<T>& head, const HeadResults<T>& results);
template <class T>
void channel_decay_backward(const Head<T>& head, const HeadGradients<T>& grad);

template <class T>
void delta_rule_forward(const Head<T>& head, const HeadResults<T>& results);
template <class T>
void delta_rule_backward(const Head<T>& head, const HeadGradients<T>& grad);

/// Of `count` heads with the same q and k.
template <class T>
void scalar_decay_forward(const Head<T>* heads, const HeadResults<T>* results, int64_t count);
/// Gradients of q and k, the first head's, are the sums over the heads.
template <class T>
void scalar_decay_backward(const Head<T>* heads, const HeadGradients<T>* grads, int64_t count);

}  // namespace forge::ops::recurrence
