// Stands for cuda.cpp and step_graph_cuda.cpp where LibTorch has no CUDA.
#include "backends/libtorch/worker/cuda.h"

#include "core/base/error.h"

namespace forge::libtorch {
namespace cuda {
namespace {

[[noreturn]] void refuse() { throw Error("this forge-worker-libtorch was built without CUDA"); }

}  // namespace

std::string device_name(int) { refuse(); }
int64_t device_memory_bytes(int) { refuse(); }
int64_t peak_memory_bytes(int) { refuse(); }
void reset_peak_memory(int) { refuse(); }
void give_back_unused_memory(int) { refuse(); }
int64_t memory_held_elsewhere(int) { refuse(); }
void limit_memory(int, int64_t) { refuse(); }
void use_own_stream(int) { refuse(); }

struct HostCopies::State {};
HostCopies::HostCopies() = default;
HostCopies::~HostCopies() = default;
void HostCopies::copy(const int32_t*, int64_t, at::Tensor&) { refuse(); }

}  // namespace cuda

struct StepGraph::State {};
StepGraph::StepGraph(const at::Device&) {}
StepGraph::~StepGraph() = default;
void StepGraph::reset() {}
void StepGraph::run(const std::function<void()>& work, const at::Tensor&) { work(); }

}  // namespace forge::libtorch
