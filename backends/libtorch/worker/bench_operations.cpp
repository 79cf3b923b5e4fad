#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/worker/bench.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/jobs.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::libtorch {
namespace {

constexpr int windows = 5;
constexpr double operation_window_seconds =
    0.05;  ///< at least, of the operation and of its baseline
constexpr double peak_window_seconds = 0.01;
constexpr int64_t most_calls = 1000;

/// Seconds of one of several calls. Waits for the device before and after all of them.
double timed_calls(const at::Device& device, int64_t calls, const std::function<void()>& action) {
  Timer timer(device);
  timer.resume();
  for (int64_t i = 0; i < calls; ++i) action();
  return timer.pause() / static_cast<double>(calls);
}

/// Calls that fill `seconds`, after two that load kernels and allocate memory.
int64_t calls_in(double seconds, const at::Device& device, const std::function<void()>& action) {
  timed_calls(device, 1, action);
  const double of_call = std::max(timed_calls(device, 1, action), 1e-7);
  return std::clamp(static_cast<int64_t>(std::ceil(seconds / of_call)), int64_t{1}, most_calls);
}

/// Seconds of a call in the fastest of several windows, in about `budget` seconds.
double fastest(const at::Device& device, double budget, const std::function<void()>& action) {
  const double began = steady_seconds();
  const int64_t calls = calls_in(peak_window_seconds, device, action);
  double best = timed_calls(device, calls, action);
  while (steady_seconds() - began < budget)
    best = std::min(best, timed_calls(device, calls, action));
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

[[noreturn]] void refuse(const std::string& what,
                         const std::string& name,
                         const std::vector<std::string>& known) {
  throw Error("there is no " + what + " '" + name + "'", "one of " + join(known, ", "));
}

model::Precision precision_of(const std::string& name) {
  const std::vector<std::string>& names = names_of(model::Precision());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) refuse("precision", name, names);
  return static_cast<model::Precision>(found - names.begin());
}

/// Those of `all` that one of the names matches; without names those that are chosen by default.
template <class T, class Matches, class IsDefault>
std::vector<T> chosen(const std::vector<T>& all,
                      const std::string& what,
                      const std::vector<std::string>& names,
                      const Matches& matches,
                      const IsDefault& is_default) {
  std::vector<std::string> known;
  for (const T& one : all) known.push_back(one.name);
  for (const std::string& name : names) {
    if (std::none_of(
            known.begin(), known.end(), [&](const auto& one) { return matches(one, name); }))
      refuse(what, name, known);
  }
  std::vector<T> found;
  for (const T& one : all) {
    const bool is_named = std::any_of(
        names.begin(), names.end(), [&](const auto& name) { return matches(one.name, name); });
    if (names.empty() ? is_default(one) : is_named) found.push_back(one);
  }
  return found;
}

nlohmann::json measure(const OperationCase& operation, const at::Device& device) {
  const int64_t fused_calls = calls_in(operation_window_seconds, device, operation.fused);
  const int64_t baseline_calls = calls_in(operation_window_seconds, device, operation.baseline);
  std::vector<double> fused, baseline;
  for (int i = 0; i < windows; ++i) {
    fused.push_back(timed_calls(device, fused_calls, operation.fused));
    baseline.push_back(timed_calls(device, baseline_calls, operation.baseline));
  }
  const double seconds = median(fused);
  nlohmann::json values = {{"seconds", seconds},
                           {"windows", fused},
                           {"peer", operation.baseline_name},
                           {"peer_seconds", median(baseline)},
                           {"peer_windows", baseline}};
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
  const bool on_gpu = device.is_cuda();
  const auto makers = chosen(
      operation_makers(),
      "operation",
      wanted.operations,
      [](const std::string& known, const std::string& name) { return starts_with(known, name); },
      [](const OperationMaker&) { return true; });
  const auto all_sizes =
      chosen(operation_sizes(),
             "size",
             wanted.sizes,
             std::equal_to<std::string>(),
             [&](const OperationSizes& sizes) { return on_gpu ? sizes.on_gpu : sizes.on_cpu; });
  const nlohmann::json ceilings = {{"matrix_product", peak_matrix_product(precision, device)},
                                   {"memory", peak_memory_copy(device)}};
  events.send(worker::Result{nlohmann::json{{"ceilings", ceilings}}});
  for (const OperationSizes& sizes : all_sizes) {
    for (const OperationMaker& maker : makers) {
      nlohmann::json values = measure(maker.make(sizes, options), device);
      values["operation"] = maker.name;
      values["size"] = sizes.name;
      values["shape"] = sizes.describe();
      events.send(worker::Result{values});
    }
  }
}

}  // namespace forge::libtorch
