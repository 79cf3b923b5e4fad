#include "backends/libtorch/ops/common/gemm.h"

#include <dlfcn.h>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// oneDNN's C interface, which has no header of its own in a LibTorch that was linked to it.
using OneDnnSgemm = int (*)(char transpose_a,
                            char transpose_b,
                            int64_t m,
                            int64_t n,
                            int64_t k,
                            float alpha,
                            const float* a,
                            int64_t a_stride,
                            const float* b,
                            int64_t b_stride,
                            float beta,
                            float* c,
                            int64_t c_stride);

/// Of the library that this process has loaded with Torch; null where Torch keeps it to itself.
OneDnnSgemm onednn_sgemm() {
  static const auto function = reinterpret_cast<OneDnnSgemm>(::dlsym(RTLD_DEFAULT, "dnnl_sgemm"));
  return function;
}

/// Measured on Zen 4 against OpenBLAS 0.3.21, GFLOP/s of one core: from 64 rows on 100-116 against
/// 85-106; of two cores, from 2^25 products on, 200-228 against 145-210. With fewer products the
/// threads cost oneDNN more than it gains.
bool onednn_is_faster(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t min_products_of_one_thread = int64_t{1} << 17;
  constexpr int64_t min_products_of_all_threads = int64_t{1} << 25;
  const bool alone = at::in_parallel_region() || at::get_num_threads() == 1;
  return m * n * k >= (alone ? min_products_of_one_thread : min_products_of_all_threads);
}

template <class T>
at::Tensor matrix(const Operand<T>& operand, int64_t rows, int64_t columns) {
  const int64_t down = operand.transposed ? 1 : operand.stride;
  const int64_t right = operand.transposed ? operand.stride : 1;
  return at::from_blob(const_cast<T*>(operand.data),
                       {rows, columns},
                       {down, right},
                       at::TensorOptions(c10::CppTypeToScalarType<T>::value));
}

template <class T>
void blas_gemm(int64_t m,
               int64_t n,
               int64_t k,
               const Operand<T>& a,
               const Operand<T>& b,
               T beta,
               T* c,
               int64_t c_stride) {
  const at::NoGradGuard no_grad;
  at::Tensor out = matrix<T>({c, c_stride}, m, n);
  if (beta == 0) {
    at::mm_out(out, matrix(a, m, k), matrix(b, k, n));
  } else {
    out.addmm_(matrix(a, m, k), matrix(b, k, n), beta);
  }
}

}  // namespace

void gemm(int64_t m,
          int64_t n,
          int64_t k,
          const Operand<float>& a,
          const Operand<float>& b,
          float beta,
          float* c,
          int64_t c_stride) {
  if (!onednn_sgemm() || !onednn_is_faster(m, n, k)) {
    return blas_gemm(m, n, k, a, b, beta, c, c_stride);
  }
  const int status = onednn_sgemm()(a.transposed ? 'T' : 'N',
                                    b.transposed ? 'T' : 'N',
                                    m,
                                    n,
                                    k,
                                    1,
                                    a.data,
                                    a.stride,
                                    b.data,
                                    b.stride,
                                    beta,
                                    c,
                                    c_stride);
  TORCH_CHECK(status == 0, "oneDNN cannot multiply ", m, " x ", k, " by ", k, " x ", n);
}

void gemm(int64_t m,
          int64_t n,
          int64_t k,
          const Operand<double>& a,
          const Operand<double>& b,
          double beta,
          double* c,
          int64_t c_stride) {
  blas_gemm(m, n, k, a, b, beta, c, c_stride);
}

std::string gemm_library() { return onednn_sgemm() ? "onednn" : "blas"; }

}  // namespace forge::ops
