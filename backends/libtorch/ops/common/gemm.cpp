#include "backends/libtorch/ops/common/gemm.h"

#include <dlfcn.h>

#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

const char* simd_name() {
#if defined(__x86_64__) && defined(__GNUC__)
  switch (simd::width()) {
    case simd::Width::avx512: return "avx512";
    case simd::Width::avx2: return "avx2";
    case simd::Width::basic: break;
  }
#endif
  return "basic";
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512bf16") != 0;  // all that have AMX have these too
#else
  return false;
#endif
}

at::Tensor as_operand(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() == type) return x;
  const at::Tensor wide = x.contiguous();
  at::Tensor narrow = at::empty(x.sizes(), x.options().dtype(type));
  at::parallel_for(0, x.numel(), 16384, [&](int64_t begin, int64_t end) {
    const float* in = wide.data_ptr<float>();
    at::BFloat16* out = narrow.data_ptr<at::BFloat16>();
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = begin; i < end; ++i) out[i] = rounded<at::BFloat16>(in[i]);
    });
  });
  return narrow;
}

namespace {

// oneDNN's C interface, which has no header of its own in a LibTorch that was linked to it.
template <class E>
using OneDnnGemm = int (*)(char transpose_a,
                           char transpose_b,
                           int64_t m,
                           int64_t n,
                           int64_t k,
                           float alpha,
                           const E* a,
                           int64_t a_stride,
                           const E* b,
                           int64_t b_stride,
                           float beta,
                           float* c,
                           int64_t c_stride);

// Of the library that this process has loaded with Torch; null where Torch keeps it to itself.

OneDnnGemm<float> onednn_sgemm() {
  static const auto function =
      reinterpret_cast<OneDnnGemm<float>>(::dlsym(RTLD_DEFAULT, "dnnl_sgemm"));
  return function;
}

/// Whether oneDNN does it: not where DNNL_MAX_CPU_ISA keeps it from the instructions.
bool multiplies(OneDnnGemm<at::BFloat16> function) {
  const at::BFloat16 one(1);
  float product = 0;
  return function && function('N', 'N', 1, 1, 1, 1, &one, 1, &one, 1, 0, &product, 1) == 0;
}

/// Null too where the CPU has no instructions for it: oneDNN's own emulation is slower than
/// float32.
OneDnnGemm<at::BFloat16> onednn_bfloat16_gemm() {
  static const auto function = [] {
    const auto found = reinterpret_cast<OneDnnGemm<at::BFloat16>>(
        has_bfloat16_instructions() ? ::dlsym(RTLD_DEFAULT, "dnnl_gemm_bf16bf16f32") : nullptr);
    return multiplies(found) ? found : nullptr;
  }();
  return function;
}

template <class E>
void onednn_gemm(OneDnnGemm<E> function,
                 const Product<float>& c,
                 const Operand<E>& a,
                 const Operand<E>& b) {
  const int status = function(a.transposed ? 'T' : 'N',
                              b.transposed ? 'T' : 'N',
                              c.m,
                              c.n,
                              c.k,
                              1,
                              a.data,
                              a.stride,
                              b.data,
                              b.stride,
                              c.add ? 1 : 0,
                              c.data,
                              c.stride);
  TORCH_CHECK(status == 0, "oneDNN cannot multiply ", c.m, " x ", c.k, " by ", c.k, " x ", c.n);
}

/// Measured on Zen 4 against OpenBLAS 0.3.21, GFLOP/s of one core: from 64 rows on 100-116 against
/// 85-106; of two cores, from 2^25 products on, 200-228 against 145-210. With fewer products the
/// threads cost oneDNN more than it gains.
bool onednn_is_faster(const Product<float>& c) {
  constexpr int64_t min_products_of_one_thread = int64_t{1} << 17;
  constexpr int64_t min_products_of_all_threads = int64_t{1} << 25;
  const bool alone = at::in_parallel_region() || at::get_num_threads() == 1;
  return c.m * c.n * c.k >= (alone ? min_products_of_one_thread : min_products_of_all_threads);
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
void blas_gemm(const Product<T>& c, const Operand<T>& a, const Operand<T>& b) {
  const at::NoGradGuard no_grad;
  at::Tensor out = matrix<T>({c.data, c.stride}, c.m, c.n);
  const at::Tensor left = matrix(a, c.m, c.k), right = matrix(b, c.k, c.n);
  if (c.add) {
    out.addmm_(left, right);
  } else {
    at::mm_out(out, left, right);
  }
}

}  // namespace

void gemm(const Product<float>& c, const Operand<float>& a, const Operand<float>& b) {
  if (!onednn_sgemm() || !onednn_is_faster(c)) return blas_gemm(c, a, b);
  onednn_gemm(onednn_sgemm(), c, a, b);
}

void gemm(const Product<double>& c, const Operand<double>& a, const Operand<double>& b) {
  blas_gemm(c, a, b);
}

void gemm(const Product<float>& c, const Operand<at::BFloat16>& a, const Operand<at::BFloat16>& b) {
  if (onednn_bfloat16_gemm() && c.m > 0 && c.n > 0 && c.k > 0) {
    return onednn_gemm(onednn_bfloat16_gemm(), c, a, b);
  }
  gemm_in_float32(c, a, b);
}

void gemm_in_float32(const Product<float>& c,
                     const Operand<at::BFloat16>& a,
                     const Operand<at::BFloat16>& b) {
  const at::Tensor wide_a = matrix(a, c.m, c.k).to(at::kFloat).contiguous();
  const at::Tensor wide_b = matrix(b, c.k, c.n).to(at::kFloat).contiguous();
  const Operand<float> float_a{wide_a.data_ptr<float>(), c.k};
  const Operand<float> float_b{wide_b.data_ptr<float>(), c.n};
  gemm(c, float_a, float_b);
}

std::string gemm_library() { return onednn_sgemm() ? "onednn" : "blas"; }

std::string bfloat16_gemm_library() { return onednn_bfloat16_gemm() ? "onednn" : "float32"; }

}  // namespace forge::ops
