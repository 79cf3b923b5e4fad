#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/worker/bench.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/jobs.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::libtorch {
namespace {

/// Least seconds of `action` in about `budget` seconds; so many times in a row that the device's
/// start and end of work do not count.
double fastest(const at::Device& device, double budget, const std::function<void()>& action) {
  constexpr double shortest_stretch = 0.01;
  Timer timer(device);
  const double began = steady_seconds();
  const auto seconds_of = [&](int times) {
    timer.resume();
    for (int i = 0; i < times; ++i) action();
    return timer.pause() / times;
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

at::ScalarType scalar_type(model::Precision precision) {
  switch (precision) {
    case model::Precision::float64: return at::kDouble;
    case model::Precision::bfloat16: return at::kBFloat16;
    default: return at::kFloat;
  }
}

nlohmann::json peak_matrix_product(model::Precision precision, const at::Device& device) {
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

nlohmann::json peak_memory_copy(const at::Device& device) {
  const at::NoGradGuard no_grad;
  const int64_t bytes = device.is_cuda() ? int64_t{1} << 30 : int64_t{1} << 28;
  const at::Tensor from = at::ones({bytes / 4}, at::TensorOptions(device).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  const double seconds = fastest(device, 0.4, [&] { to.copy_(from); });
  return {
      {"bytes_per_second", 2.0 * static_cast<double>(bytes) / seconds},
      {"how", "fastest copy of " + human_bytes(static_cast<double>(bytes)) + ", read and written"}};
}

namespace {

constexpr int windows = 5;
constexpr double call_window_seconds = 0.05;  ///< at least, of each of the two
constexpr int64_t most_calls = 1000;

model::Precision precision_of(const std::string& name) {
  const std::vector<std::string>& names = names_of(model::Precision());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("there is no precision '" + name + "'", {}, "one of " + join(names, ", "));
  }
  return static_cast<model::Precision>(found - names.begin());
}

/// The sizes of those names, else those that suit the device.
std::vector<OperationSizes> chosen_sizes(const std::vector<std::string>& names, bool on_gpu) {
  std::vector<std::string> known;
  std::vector<OperationSizes> chosen;
  for (const OperationSizes& sizes : operation_sizes()) {
    known.push_back(sizes.name);
    const bool is_named = std::find(names.begin(), names.end(), sizes.name) != names.end();
    const bool suits = on_gpu ? sizes.on_gpu : sizes.on_cpu;
    if (names.empty() ? suits : is_named) chosen.push_back(sizes);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error("there are no sizes '" + name + "'", {}, "one of " + join(known, ", "));
  }
  return chosen;
}

/// The operations that begin with one of the names, all where there is no name.
std::vector<OperationMaker> chosen_operations(const std::vector<std::string>& names) {
  const auto begins = [](const OperationMaker& maker) {
    return [&maker](const std::string& name) { return starts_with(maker.name, name); };
  };
  std::vector<std::string> known;
  std::vector<OperationMaker> chosen;
  for (const OperationMaker& maker : operation_makers()) {
    known.push_back(maker.name);
    if (names.empty() || std::any_of(names.begin(), names.end(), begins(maker))) {
      chosen.push_back(maker);
    }
  }
  for (const std::string& name : names) {
    const auto is_of_name = [&](const std::string& other) { return starts_with(other, name); };
    if (std::any_of(known.begin(), known.end(), is_of_name)) continue;
    throw Error("there is no operation '" + name + "'", {}, "one of " + join(known, ", "));
  }
  return chosen;
}

/// Seconds of one call, the device waited for before and after all of them.
double seconds_of(const at::Device& device, int64_t calls, const std::function<void()>& action) {
  Timer timer(device);
  timer.resume();
  for (int64_t i = 0; i < calls; ++i) action();
  return timer.pause() / static_cast<double>(calls);
}

/// Calls that fill a window, after two that load kernels and take memory.
int64_t calls_of_window(const at::Device& device, const std::function<void()>& action) {
  seconds_of(device, 1, action);
  const double seconds = std::max(seconds_of(device, 1, action), 1e-7);
  return std::clamp(
      static_cast<int64_t>(std::ceil(call_window_seconds / seconds)), int64_t{1}, most_calls);
}

nlohmann::json measure(const OperationCase& operation, const at::Device& device) {
  const int64_t own_calls = calls_of_window(device, operation.own);
  const int64_t peer_calls = calls_of_window(device, operation.peer);
  std::vector<double> own, peer;
  for (int i = 0; i < windows; ++i) {
    own.push_back(seconds_of(device, own_calls, operation.own));
    peer.push_back(seconds_of(device, peer_calls, operation.peer));
  }
  const double seconds = median(own);
  nlohmann::json values = {{"operation", operation.name},
                           {"seconds", seconds},
                           {"windows", own},
                           {"peer", operation.peer_name},
                           {"peer_seconds", median(peer)},
                           {"peer_windows", peer}};
  if (operation.flops > 0) values["flops_per_second"] = operation.flops / seconds;
  if (operation.bytes > 0) values["bytes_per_second"] = operation.bytes / seconds;
  return values;
}

}  // namespace

void bench_operations(const worker::Request& request,
                      const at::Device& device,
                      const EventWriter& events) {
  const worker::OperationBench wanted = request.operation_bench.value_or(worker::OperationBench());
  const model::Precision precision = precision_of(wanted.precision);
  const at::TensorOptions options = at::TensorOptions(device).dtype(scalar_type(precision));
  const std::vector<OperationMaker> makers = chosen_operations(wanted.operations);
  const std::vector<OperationSizes> all_sizes = chosen_sizes(wanted.sizes, device.is_cuda());
  const nlohmann::json ceilings = {{"matrix_product", peak_matrix_product(precision, device)},
                                   {"memory", peak_memory_copy(device)}};
  events.send(worker::Result{nlohmann::json{{"ceilings", ceilings}}});
  for (const OperationSizes& sizes : all_sizes) {
    for (const OperationMaker& maker : makers) {
      nlohmann::json values = measure(maker.make(sizes, options), device);
      values["size"] = sizes.name;
      values["shape"] = sizes.describe();
      events.send(worker::Result{values});
    }
  }
}

}  // namespace forge::libtorch
