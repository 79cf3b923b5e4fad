#include "backends/libtorch/worker/cuda.h"
#include "core/base/error.h"

namespace forge::worker::cuda {
namespace {

[[noreturn]] void refuse() { throw Error("this forge-worker-libtorch was built without CUDA"); }

}  // namespace

std::string device_name(int) { refuse(); }
int64_t device_memory_bytes(int) { refuse(); }
int64_t peak_memory_bytes(int) { refuse(); }
void reset_peak_memory(int) { refuse(); }

}  // namespace forge::worker::cuda
