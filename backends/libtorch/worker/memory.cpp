#include "backends/libtorch/worker/memory.h"

#include <sys/resource.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/worker/cuda.h"
#include "core/base/error.h"

namespace forge::libtorch {
namespace {

std::atomic<int64_t> held_bytes{0};
std::atomic<int64_t> peak_bytes{0};
std::atomic<int64_t> most_bytes{0};  // 0: as many as there are

// Vector loads of Torch's kernels want 64-byte alignment; the size of a block is kept in the
// alignment's worth of bytes before it.
constexpr size_t alignment = 64;

void* allocate_block(size_t bytes) {
  void* block = nullptr;
  const int64_t most = most_bytes.load();
  const bool allowed = most <= 0 || held_bytes.load() + static_cast<int64_t>(bytes) <= most;
  if (!allowed || ::posix_memalign(&block, alignment, bytes + alignment) != 0) {
    TORCH_CHECK_WITH(OutOfMemoryError,
                     false,
                     "out of memory: there are no ",
                     bytes,
                     " bytes left for a tensor on the CPU, where tensors hold ",
                     held_bytes.load(),
                     allowed ? "" : " and are allowed " + std::to_string(most));
  }
  *static_cast<size_t*>(block) = bytes;
  const int64_t held =
      held_bytes.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  int64_t peak = peak_bytes.load();
  while (held > peak && !peak_bytes.compare_exchange_weak(peak, held)) {
  }
  return static_cast<char*>(block) + alignment;
}

void free_block(void* data) {
  if (!data) return;
  void* block = static_cast<char*>(data) - alignment;
  held_bytes.fetch_sub(static_cast<int64_t>(*static_cast<size_t*>(block)));
  std::free(block);
}

// Torch 1.13 declares allocate const, 2.11 does not and adds copy_data: both forms stand here, and
// each Torch finds the ones that it overrides.
struct CountingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) const { return make(bytes); }
  c10::DataPtr allocate(size_t bytes) { return make(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const {
    std::memcpy(destination, source, bytes);
  }

 private:
  static c10::DataPtr make(size_t bytes) {
    void* data = bytes == 0 ? nullptr : allocate_block(bytes);
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
};

CountingAllocator counting_allocator;

}  // namespace

void install_counting_allocator() { c10::SetCPUAllocator(&counting_allocator, /*priority=*/1); }

void limit_memory(const at::Device& device, int64_t bytes) {
  device.is_cuda() ? cuda::limit_memory(device, bytes) : most_bytes.store(bytes);
}

void limit_memory_by_environment(const at::Device& device) {
  const char* limit = std::getenv("FORGE_MEMORY_LIMIT");
  if (!limit || !*limit) return;
  char* end = nullptr;
  const int64_t bytes = std::strtoll(limit, &end, 10);
  if (*end != '\0' || bytes <= 0) {
    throw Error("FORGE_MEMORY_LIMIT is '" + std::string(limit) + "'",
                "a number of bytes, such as 8589934592",
                ExitCode::usage);
  }
  limit_memory(device, bytes);
}

void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 2147483647);
  ::mallopt(M_TOP_PAD, 256 << 20);
}

int64_t peak_memory_bytes(const at::Device& device) {
  return device.is_cuda() ? cuda::peak_memory_bytes(device) : peak_bytes.load();
}

void reset_peak_memory(const at::Device& device) {
  device.is_cuda() ? cuda::reset_peak_memory(device) : peak_bytes.store(held_bytes.load());
}

int64_t peak_resident_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::optional<std::string> run_or_out_of_memory(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const std::exception& problem) {
    if (!torch_compat::is_out_of_memory(problem)) throw;
    const auto* of_torch = dynamic_cast<const c10::Error*>(&problem);
    const std::string text = of_torch ? of_torch->what_without_backtrace() : problem.what();
    return text.substr(0, text.find('\n'));  // advice about the library's settings follows
  }
}

int halved_micro_batch(int64_t rows, const std::string& reason, const at::Device& device) {
  if (device.is_cuda()) cuda::release_unused_memory(device);
  TORCH_CHECK_WITH(OutOfMemoryError,
                   rows > 1,
                   "memory ran out though only one row is computed at once: ",
                   reason);
  return static_cast<int>((rows + 1) / 2);
}

std::string help_against_shortage() {
  return "set train.recompute: blocks, lower train.seq_len, model.hidden_size or model.num_layers, "
         "take another device, or end what else holds its memory (train.precision: bfloat16 halves "
         "much of it)";
}

}  // namespace forge::libtorch
