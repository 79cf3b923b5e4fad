#include "backends/libtorch/worker/device.h"

#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "backends/libtorch/model/block.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/process_group_gloo.h"
#include "backends/libtorch/worker/process_group_nccl.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/config/optimizer.h"
#include "core/model/kinds.h"

namespace forge::libtorch {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (starts_with(line, "model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "CPU";
}

/// Paths of the mapped libraries that are a BLAS or a matrix library.
std::set<std::string> mapped_matrix_libraries() {
  std::set<std::string> found;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    const std::string name = line.substr(path);
    const std::string base = name.substr(name.rfind('/') + 1);
    if (starts_with(base, "libopenblas") || starts_with(base, "libmkl") ||
        starts_with(base, "libblas") || starts_with(base, "libdnnl")) {
      found.insert(name);
    }
  }
  return found;
}

nlohmann::json libraries() {
  nlohmann::json list = {{"torch", torch_compat::version()}, {"cxx", __VERSION__}};
  std::vector<std::string> matrix;
  for (const std::string& path : mapped_matrix_libraries()) {
    matrix.push_back(path);
    if (path.find("openblas-pthread") != std::string::npos) {
      std::cerr
          << "warning: " << path
          << " is the pthread flavour of OpenBLAS, whose threads and Torch's spin "
          << "against each other: training is about 40 % slower. Install libopenblas0-openmp.\n";
    }
  }
  list["blas"] = matrix;
  list["matrix_products"] = ops::gemm_library();
  list["bfloat16_products"] = ops::bfloat16_gemm_library();
  list["simd"] = ops::simd_name();
  return list;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu"};
  const size_t count = torch::cuda::is_available() ? torch::cuda::device_count() : 0;
  for (size_t i = 0; i < count; ++i) names.push_back("cuda:" + std::to_string(i));
  return names;
}

}  // namespace

namespace {

/// Throws Error where this process may not start the threads that a job of so many has: those of
/// Torch's pool, which is first made for all cores, those of OpenMP, and the loader's and the
/// checkpoint's.
void require_threads_of_job(int threads) {
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  require_threads(std::max(cores, threads) + threads);
}

}  // namespace

at::Device choose_device(const std::string& name, int threads) {
  if (threads <= 0) threads = usable_cores();
  require_threads_of_job(threads);
  at::set_num_threads(threads);
  // A Torch that brings an OpenMP library of its own has set that one alone.
  ::omp_set_num_threads(at::get_num_threads());
  const std::vector<std::string> names = device_names();
  std::string full = name;
  if (name == "auto") full = names.size() > 1 ? "cuda:0" : "cpu";
  if (name == "cuda") full = "cuda:0";
  if (std::find(names.begin(), names.end(), full) == names.end())
    throw Error("there is no device '" + name + "' here", "devices: auto, " + join(names, ", "));
  const at::Device device(full);
  if (device.is_cuda()) cuda::use_own_stream(device);
  return device;
}

bool is_retryable(const std::exception& problem, const at::Device& device) {
  if (torch_compat::is_device_error(problem)) return true;
  if (!device.is_cuda() || !torch_compat::is_out_of_memory(problem)) return false;
  return cuda::memory_held_elsewhere(device) > cuda::device_memory_bytes(device) / 20;
}

bool is_shared(const at::Device& device) {
  return device.is_cuda() && cuda::memory_held_elsewhere(device) > 0;
}

void warn_of_slow_precision(model::Precision precision, const at::Device& device) {
  const bool is_slow = precision == model::Precision::bfloat16 && device.is_cpu() &&
                       ops::bfloat16_gemm_library() == "float32";
  if (!is_slow) return;
  std::cerr << "warning: matrix products of train.precision bfloat16 are computed in float32 here, "
               "more slowly than with train.precision float32: fast ones need a CPU with "
               "avx512_bf16 and a LibTorch that shows its oneDNN, or a GPU.\n";
}

void choose_determinism(bool deterministic, const at::Device& device) {
  if (!device.is_cuda()) return;
  // What cuBLAS wants for the products that Torch's own operations make.
  if (deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  torch_compat::use_deterministic_algorithms(deterministic);
}

worker::Environment describe_environment(const at::Device& device) {
  worker::Environment environment;
  environment.device_type = device.is_cuda() ? "cuda" : "cpu";
  environment.threads = at::get_num_threads();
  environment.devices = device_names();
  environment.libraries = libraries();
  if (device.is_cuda()) {
    environment.device_name = cuda::device_name(device);
    environment.memory_bytes = cuda::device_memory_bytes(device);
  } else {
    environment.device_name = processor_name();
    environment.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE);
  }
  return environment;
}

worker::Supports describe_support(const at::Device& device) {
  worker::Supports supports;
  supports.jobs = worker::names_of(worker::Job());
  nlohmann::json mixers;
  for (const model::BlockKind* kind : model::mixer_kinds()) {
    if (block_kinds().count(kind->name) > 0) mixers.push_back(kind->name);
  }
  supports.config = {{"model.layers", mixers}, {"optimizer.type", config::optimizer_types()}};
  if (!device.is_cuda()) supports.config["train.bfloat16_weights"] = {"none"};
  if (!device.is_cuda() && has_gloo()) supports.config["parallel"] = {"gloo"};
  if (device.is_cuda() && has_nccl()) supports.config["parallel"] = {"nccl"};
  return supports;
}

void synchronize(const at::Device& device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

}  // namespace forge::libtorch
