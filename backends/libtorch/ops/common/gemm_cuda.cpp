#include "backends/libtorch/ops/common/gemm.h"

#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

void check(cublasStatus_t status, const char* what) {
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, what, ": ", cublasLtGetStatusString(status));
}

cudaDataType_t type_of(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// Bytes that a pointer is a multiple of, as far as algorithms care.
int64_t alignment_of(const at::Tensor& x) {
  const auto address = reinterpret_cast<uintptr_t>(x.data_ptr());
  int64_t alignment = 256;
  while (alignment > 1 && address % alignment != 0) alignment /= 2;
  return alignment;
}

/// Everything that the choice of an algorithm depends on.
using Key = std::array<int64_t, 15>;

/// A product as cuBLASLt knows it. Kept for the life of the process.
struct Plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, added = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

/// cuBLASLt counts columns first: a row-major matrix is the transpose of what it sees. So c = a b
/// is asked for as c^T = b^T a^T, with b as the first factor.
class Planner {
 public:
  explicit Planner(int device) : device_(device) { check(cublasLtCreate(&handle_), "cuBLASLt"); }

  const Plan& plan(const CudaOperand& a,
                   const CudaOperand& b,
                   const at::Tensor& added,
                   const at::Tensor& c,
                   int64_t inner) {
    const Key key = {c.size(0),
                     c.size(1),
                     inner,
                     a.matrix.stride(0),
                     b.matrix.stride(0),
                     c.stride(0),
                     added.defined() ? added.stride(0) : 0,
                     a.transposed,
                     b.transposed,
                     added.defined(),
                     type_of(a.matrix),
                     type_of(c),
                     alignment_of(a.matrix),
                     alignment_of(b.matrix),
                     std::min(alignment_of(c), added.defined() ? alignment_of(added) : 256)};
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    return plans_.emplace(key, make(a, b, added, c, inner, key)).first->second;
  }

  cublasLtHandle_t handle() const { return handle_; }
  const at::Tensor& workspace() {
    if (!workspace_.defined()) {
      workspace_ = at::empty({workspace_bytes},
                             at::TensorOptions(at::Device(at::kCUDA, device_)).dtype(at::kByte));
    }
    return workspace_;
  }

  static constexpr int64_t workspace_bytes = int64_t{32} << 20;

 private:
  static cublasLtMatrixLayout_t layout(const at::Tensor& x, int64_t rows, int64_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    const int64_t stride = std::max<int64_t>(x.stride(0), rows);
    check(cublasLtMatrixLayoutCreate(&made, type_of(x), rows, columns, stride), "cuBLASLt layout");
    return made;
  }

  Plan make(const CudaOperand& a,
            const CudaOperand& b,
            const at::Tensor& added,
            const at::Tensor& c,
            int64_t inner,
            const Key& key) {
    const int64_t m = c.size(0), n = c.size(1);
    Plan plan;
    check(cublasLtMatmulDescCreate(&plan.description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cuBLASLt product");
    const auto transpose = [&](cublasLtMatmulDescAttributes_t name, bool transposed) {
      const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
      cublasLtMatmulDescSetAttribute(plan.description, name, &operation, sizeof operation);
    };
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, b.transposed);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, a.transposed);
    plan.first = b.transposed ? layout(b.matrix, inner, n) : layout(b.matrix, n, inner);
    plan.second = a.transposed ? layout(a.matrix, m, inner) : layout(a.matrix, inner, m);
    plan.result = layout(c, n, m);
    plan.added = layout(added.defined() ? added : c, n, m);
    plan.algorithm = choose(plan, key);
    return plan;
  }

  /// The first that the library's own heuristic names: no timing, so the choice is always the same.
  cublasLtMatmulAlgo_t choose(const Plan& plan, const Key& key) const {
    cublasLtMatmulPreference_t wishes = nullptr;
    check(cublasLtMatmulPreferenceCreate(&wishes), "cuBLASLt preference");
    const auto wish = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
      cublasLtMatmulPreferenceSetAttribute(wishes, name, &value, sizeof value);
    };
    wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key[13]));
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key[12]));
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key[14]));
    wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key[14]));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_,
                                                                 plan.description,
                                                                 plan.first,
                                                                 plan.second,
                                                                 plan.added,
                                                                 plan.result,
                                                                 wishes,
                                                                 1,
                                                                 &best,
                                                                 &found);
    cublasLtMatmulPreferenceDestroy(wishes);
    check(status, "cuBLASLt has no algorithm");
    TORCH_CHECK(found > 0, "cuBLASLt has no algorithm for ", key[0], " x ", key[2], " x ", key[1]);
    return best.algo;
  }

  int device_;
  cublasLtHandle_t handle_ = nullptr;
  at::Tensor workspace_;
  std::map<Key, Plan> plans_;
};

/// One for each device; products are asked for by the forward pass's thread and by autograd's.
struct Planners {
  std::mutex mutex;
  std::map<int, Planner> of_device;
};

Planners& planners() {
  static auto* all = new Planners;  // outlives every tensor: CUDA may be gone before statics are
  return *all;
}

}  // namespace

void gemm_cuda(const CudaOperand& a, const CudaOperand& b, const at::Tensor& added, at::Tensor& c) {
  if (c.numel() == 0) return;
  const int64_t inner = a.matrix.size(a.transposed ? 0 : 1);
  if (inner == 0) {
    added.defined() ? c.copy_(added) : c.zero_();
    return;
  }
  Planners& all = planners();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const int device = c.device().index();
  Planner& planner = all.of_device.try_emplace(device, device).first->second;
  const Plan& plan = planner.plan(a, b, added, c, inner);
  const float one = 1, beta = added.defined() ? 1.0f : 0.0f;
  const at::Tensor& memory = planner.workspace();
  check(cublasLtMatmul(planner.handle(),
                       plan.description,
                       &one,
                       b.matrix.data_ptr(),
                       plan.first,
                       a.matrix.data_ptr(),
                       plan.second,
                       &beta,
                       added.defined() ? added.data_ptr() : c.data_ptr(),
                       plan.added,
                       c.data_ptr(),
                       plan.result,
                       &plan.algorithm,
                       memory.data_ptr(),
                       Planner::workspace_bytes,
                       c10::cuda::getCurrentCUDAStream()),
        "cuBLASLt product");
}

}  // namespace forge::ops
