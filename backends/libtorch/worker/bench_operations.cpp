#include "backends/libtorch/worker/bench_operations.h"

#include <algorithm>
#include <cmath>

#include "backends/libtorch/worker/ceiling.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/median.h"
#include "backends/libtorch/worker/operation_cases.h"
#include "backends/libtorch/worker/stopwatch.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::worker {
namespace {

constexpr int windows = 5;
constexpr double call_window_seconds = 0.05;  ///< at least, of each of the two
constexpr int64_t most_calls = 1000;

config::Precision precision_of(const std::string& name) {
  const std::vector<std::string>& names = config::names_of(config::Precision());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("there is no precision '" + name + "'", {}, "one of " + join(names, ", "));
  }
  return static_cast<config::Precision>(found - names.begin());
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
  Stopwatch stopwatch(device);
  stopwatch.resume();
  for (int64_t i = 0; i < calls; ++i) action();
  return stopwatch.pause() / static_cast<double>(calls);
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

void bench_operations(const protocol::Request& request,
                      const at::Device& device,
                      const EventWriter& events) {
  const protocol::OperationBench wanted =
      request.operation_bench.value_or(protocol::OperationBench());
  const config::Precision precision = precision_of(wanted.precision);
  const at::TensorOptions options = at::TensorOptions(device).dtype(scalar_type(precision));
  const std::vector<OperationMaker> makers = chosen_operations(wanted.operations);
  const std::vector<OperationSizes> all_sizes = chosen_sizes(wanted.sizes, device.is_cuda());
  const nlohmann::json ceilings = {{"matrix_product", matrix_product_ceiling(precision, device)},
                                   {"memory", memory_ceiling(device)}};
  events.send(protocol::Result{nlohmann::json{{"ceilings", ceilings}}});
  for (const OperationSizes& sizes : all_sizes) {
    for (const OperationMaker& maker : makers) {
      nlohmann::json values = measure(maker.make(sizes, options), device);
      values["size"] = sizes.name;
      values["shape"] = sizes.describe();
      events.send(protocol::Result{values});
    }
  }
}

}  // namespace forge::worker
