// forge-bench-ops: every fused operation beside the plain Torch operations that are its reference,
// forward and backward in alternating windows, float32, on the shapes of Llama 4M at 8 x 512
// tokens. One JSON line each; "gigaflops" and "gigabytes_per_second" are what the operation's
// least products and least traffic come to in its time.

#include <omp.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <thread>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/base/clock.h"

namespace forge::ops {
namespace {

constexpr int windows = 5;
constexpr int64_t batch = 8, length = 512, tokens = batch * length;
constexpr int64_t hidden = 256, mlp = 768, vocabulary = 2000, kernel = 4;
const HeadLayout layout{4, 4, 64};

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<at::Tensor(const Tensors&)>;

struct Case {
  std::string name;
  Operation fused, peer;
  Tensors inputs;
  double flops = 0;  ///< of matrix products, forward and backward
  double bytes = 0;  ///< read and written where all of an operation stayed in registers
  std::string peer_name = "plain Torch";
};

/// Milliseconds of one forward and backward pass.
double milliseconds_of(const Operation& operation, Tensors& inputs) {
  for (at::Tensor& input : inputs) input.mutable_grad() = at::Tensor();
  const double began = steady_seconds();
  const at::Tensor y = operation(inputs);
  y.backward(at::ones_like(y.detach()));
  return 1000 * (steady_seconds() - began);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void bench(Case c) {
  for (at::Tensor& input : c.inputs) input.requires_grad_(true);
  std::vector<double> own, peer;
  for (int i = 0; i <= windows; ++i) {
    const double a = milliseconds_of(c.fused, c.inputs);
    const double b = milliseconds_of(c.peer, c.inputs);
    if (i == 0) continue;  // the first window pays for new memory
    own.push_back(a);
    peer.push_back(b);
  }
  const double milliseconds = median(own);
  nlohmann::json line = {{"name", "ops." + c.name},
                         {"value", milliseconds},
                         {"unit", "ms"},
                         {"peer", median(peer)},
                         {"peer_name", c.peer_name}};
  if (c.flops > 0) line["gigaflops"] = c.flops / milliseconds / 1e6;
  if (c.bytes > 0) line["gigabytes_per_second"] = c.bytes / milliseconds / 1e6;
  std::cout << line.dump() << std::endl;
}

at::Tensor normal(at::IntArrayRef shape) { return at::randn(shape) * 0.3; }
at::Tensor stream_of(int64_t channels) { return normal({batch, length, channels}); }

at::Tensor grouped_conv1d(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::conv1d(x.transpose(1, 2), w, {}, 1, kernel - 1, 1, x.size(2));
  return x + y.narrow(2, 0, x.size(1)).transpose(1, 2);
}

/// Of a product forward and its two backward.
double product_flops(int64_t in, int64_t out) { return 3.0 * 2 * tokens * double(in * out); }

/// Bytes of a pass over tokens of so many numbers.
double pass(int64_t numbers) { return 4.0 * tokens * double(numbers); }

void bench_canon_conv(const std::string& position, int64_t channels) {
  bench({"canon_conv." + position,
         [](const Tensors& in) { return canon_conv(in[0], in[1], {}); },
         [](const Tensors& in) { return grouped_conv1d(in[0], in[1]); },
         {stream_of(channels), at::rand({channels, 1, kernel})},
         0,
         pass(5 * channels),
         "at::conv1d, grouped"});
}

/// Joint operations with a Canon layer and without; the layer's weight is the last input.
void bench_joint(bool with_canon) {
  const std::string suffix = with_canon ? ".canon" : "";
  const auto layer = [=](const Tensors& in) {
    return with_canon ? CanonLayer{in.back(), {}, {}} : CanonLayer{};
  };
  const RotaryTable table = rotary_table(length, 64, 1e4, false, at::TensorOptions(at::kFloat));
  const auto taps = [](int64_t channels) { return at::rand({channels, 1, kernel}) - 0.5; };
  const double scores = 7.0 * 2 * tokens * (length / 2.0) * double(layout.heads * layout.head_dim);
  bench({"norm_linear" + suffix,
         [=](const Tensors& in) {
           return norm_linear(in[0], in[1], {}, layer(in), in[2]).projection;
         },
         [=](const Tensors& in) {
           return norm_linear_reference(in[0], in[1], {}, layer(in), in[2]).projection;
         },
         {stream_of(hidden), normal({hidden}), normal({2 * mlp, hidden}), taps(hidden)},
         product_flops(hidden, 2 * mlp)});
  bench(
      {"self_attention" + suffix,
       [=](const Tensors& in) { return self_attention(in[0], layer(in), table, layout); },
       [=](const Tensors& in) { return self_attention_reference(in[0], layer(in), table, layout); },
       {stream_of(layout.width()), taps(layout.width())},
       scores});
  bench({"swiglu_linear" + suffix,
         [=](const Tensors& in) { return swiglu_linear(in[0], layer(in), in[1]); },
         [=](const Tensors& in) { return swiglu_linear_reference(in[0], layer(in), in[1]); },
         {stream_of(2 * mlp), normal({hidden, mlp}), taps(2 * mlp)},
         product_flops(mlp, hidden)});
}

void bench_single() {
  bench({"linear",
         [](const Tensors& in) { return ops::linear(in[0], in[1]); },
         [](const Tensors& in) { return at::linear(in[0], in[1]); },
         {stream_of(hidden), normal({2 * mlp, hidden})},
         product_flops(hidden, 2 * mlp)});
  bench({"rms_norm",
         [](const Tensors& in) { return rms_norm(in[0], in[1], {}); },
         [](const Tensors& in) { return rms_norm_reference(in[0], in[1], {}); },
         {stream_of(hidden), normal({hidden})},
         0,
         pass(5 * hidden)});
  bench({"swiglu",
         [](const Tensors& in) { return swiglu(in[0]); },
         [](const Tensors& in) { return swiglu_reference(in[0]); },
         {stream_of(2 * mlp)},
         0,
         pass(3 * mlp + 5 * mlp)});
  const at::Tensor targets = at::randint(0, vocabulary, {tokens}, at::kInt);
  bench({"linear_cross_entropy",
         [=](const Tensors& in) { return linear_cross_entropy(in[0], in[1], targets); },
         [=](const Tensors& in) { return linear_cross_entropy_reference(in[0], in[1], targets); },
         {normal({tokens, hidden}), normal({vocabulary, hidden})},
         product_flops(hidden, vocabulary)});
}

}  // namespace
}  // namespace forge::ops

int main() {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  at::set_num_threads(threads);
  omp_set_num_threads(threads);
  forge::ops::bench_canon_conv("A", 256);
  forge::ops::bench_canon_conv("B", 768);
  forge::ops::bench_canon_conv("D", 1536);
  forge::ops::bench_single();
  forge::ops::bench_joint(false);
  forge::ops::bench_joint(true);
}
