#include "backends/libtorch/worker/halving.h"

#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/worker/cuda.h"

namespace forge::worker {
namespace {

/// The first line alone: advice about the library's settings follows it.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string words_of(const std::exception& problem) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&problem);
  return first_line(of_torch ? of_torch->what_without_backtrace() : problem.what());
}

}  // namespace

std::optional<std::string> what_ran_out(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const std::exception& problem) {
    if (!torch_compat::is_out_of_memory(problem)) throw;
    return words_of(problem);
  }
}

int half_of(int64_t rows, const std::string& reason, const at::Device& device) {
  if (device.is_cuda()) cuda::give_back_unused_memory(device.index());
  TORCH_CHECK_WITH(OutOfMemoryError,
                   rows > 1,
                   "memory ran out though only one row is computed at once: ",
                   reason);
  return static_cast<int>((rows + 1) / 2);
}

std::string help_against_shortage() {
  return "lower train.seq_len, model.hidden_size or model.num_layers, take another device, or end "
         "what else holds its memory (train.precision: bfloat16 halves much of it)";
}

}  // namespace forge::worker
