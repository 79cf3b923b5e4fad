#include "backends/libtorch/worker/ceiling.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/worker/stopwatch.h"
#include "core/base/text.h"

namespace forge::worker {
namespace {

/// Least seconds of `action` in about `budget` seconds; so many times in a row that the device's
/// start and end of work do not count.
double fastest(const at::Device& device, double budget, const std::function<void()>& action) {
  constexpr double shortest_stretch = 0.01;
  Stopwatch stopwatch(device);
  const double began = steady_seconds();
  const auto seconds_of = [&](int times) {
    stopwatch.resume();
    for (int i = 0; i < times; ++i) action();
    return stopwatch.pause() / times;
  };
  seconds_of(1);  // loads kernels, takes memory
  double best = seconds_of(1);
  const int times = std::max(1, static_cast<int>(shortest_stretch / std::max(best, 1e-6)));
  for (int i = 0; i < 100 && (i < 1 || steady_seconds() - began < budget); ++i) {
    best = std::min(best, seconds_of(times));
  }
  return best;
}

}  // namespace

at::ScalarType scalar_type(config::Precision precision) {
  switch (precision) {
    case config::Precision::float64: return at::kDouble;
    case config::Precision::bfloat16: return at::kBFloat16;
    default: return at::kFloat;
  }
}

nlohmann::json matrix_product_ceiling(config::Precision precision, const at::Device& device) {
  const at::NoGradGuard no_grad;
  const at::TensorOptions options = at::TensorOptions(device).dtype(scalar_type(precision));
  const std::vector<int64_t> sizes = device.is_cuda() ? std::vector<int64_t>{2048, 4096, 8192}
                                                      : std::vector<int64_t>{512, 1024, 2048};
  nlohmann::json of_size = nlohmann::json::object();
  std::vector<std::string> words;
  double highest = 0;
  for (const int64_t size : sizes) {
    // Random numbers: on some devices products of zeros are faster than any real ones.
    const at::Tensor a = at::randn({size, size}, options);
    const at::Tensor b = at::randn({size, size}, options);
    const double budget = 0.8 / static_cast<double>(sizes.size());
    const double flops = 2.0 * static_cast<double>(size * size * size) /
                         fastest(device, budget, [&] { ops::linear(a, b); });
    of_size[std::to_string(size)] = flops;
    words.push_back(with_thousands(size));
    highest = std::max(highest, flops);
  }
  return {{"flops", highest},
          {"how",
           "fastest product of two square matrices of normal random numbers in the config's "
           "precision, of " +
               join(words, ", ") + " rows, in about a second"},
          {"sizes", of_size}};
}

nlohmann::json memory_ceiling(const at::Device& device) {
  const at::NoGradGuard no_grad;
  const int64_t bytes = device.is_cuda() ? int64_t{1} << 30 : int64_t{1} << 28;
  const at::Tensor from = at::ones({bytes / 4}, at::TensorOptions(device).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  const double seconds = fastest(device, 0.4, [&] { to.copy_(from); });
  return {
      {"bytes_per_second", 2.0 * static_cast<double>(bytes) / seconds},
      {"how", "fastest copy of " + human_bytes(static_cast<double>(bytes)) + ", read and written"}};
}

}  // namespace forge::worker
