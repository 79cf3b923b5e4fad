// forge-bench-canon-conv: the fused Canon convolution beside Torch's grouped conv1d, forward and
// backward in alternating windows on the shapes of Llama 4M at 8 x 512 tokens. One JSON line each.

#include <algorithm>
#include <iostream>
#include <thread>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/base/clock.h"

namespace forge::ops {
namespace {

constexpr int windows = 5;
constexpr int64_t batch = 8, length = 512, kernel = 4;

at::Tensor grouped_conv1d(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::conv1d(x.transpose(1, 2), w, {}, 1, kernel - 1, 1, x.size(2));
  return x + y.narrow(2, 0, x.size(1)).transpose(1, 2);
}

/// Seconds of one forward and backward pass.
template <class Operation>
double seconds_of(const Operation& operation,
                  at::Tensor& x,
                  at::Tensor& w,
                  const at::Tensor& upstream) {
  x.mutable_grad() = w.mutable_grad() = at::Tensor();
  const double began = steady_seconds();
  operation(x, w).backward(upstream);
  return steady_seconds() - began;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void bench(const std::string& position, int64_t channels) {
  at::Tensor x = at::randn({batch, length, channels}).requires_grad_(true);
  at::Tensor w = at::rand({channels, 1, kernel}).requires_grad_(true);
  const at::Tensor upstream = at::randn({batch, length, channels});
  const auto fused = [](const at::Tensor& in, const at::Tensor& weight) {
    return canon_conv(in, weight, {});
  };
  std::vector<double> own, peer;
  for (int i = 0; i <= windows; ++i) {
    const double a = seconds_of(fused, x, w, upstream);
    const double b = seconds_of(grouped_conv1d, x, w, upstream);
    if (i == 0) continue;  // the first window pays for new memory
    own.push_back(a);
    peer.push_back(b);
  }
  const double milliseconds = median(own) * 1000;
  std::cout << nlohmann::json{{"name", "ops.canon_conv." + position},
                              {"value", milliseconds},
                              {"unit", "ms"},
                              {"peer", median(peer) * 1000},
                              {"peer_name", "at::conv1d, grouped"},
                              {"gigabytes_per_second", 5.0 * x.nbytes() / milliseconds / 1e6}}
                   .dump()
            << std::endl;
}

}  // namespace
}  // namespace forge::ops

int main() {
  at::set_num_threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  forge::ops::bench("A", 256);
  forge::ops::bench("B", 768);
  forge::ops::bench("D", 1536);
}
