// What stands around linear attention in its blocks: the short convolution of the projection, log
// decays, and the gated norm of the heads' outputs.

#include "backends/libtorch/ops/gated_norm/gated_norm.h"
#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"
#include "backends/libtorch/ops/short_conv/short_conv.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Projections of awkward widths: nothing but mixed channels, parts before and behind them, heads
/// of length 1, and heads wider than a block of the backward pass.
std::vector<std::vector<ops::ProjectionPart>> projections() {
  return {{{7, true}},
          {{1, true}},  // a head of one number has length 1: all of its gradient is rounding
          {{6, true, 3}, {6, true, 2}, {9, true}, {4}},
          {{5}, {300, true}, {2}, {1}},
          {{280, true, 140}, {256, true, 16}, {3}},
          // What a GPU has kernels for, with vectors of 8 channels and of 4.
          {{64, true, 64}, {128, true, 32}, {256, true}, {16}, {4}, {4}},
          {{40}, {40, true}, {20, true}, {4}},
          {{384, true, 192}, {8, true}}};
}

TEST_CASE("short_conv agrees with its reference", "[ops]") {
  at::manual_seed(41);
  for (const Types& types : types_of_passes()) {
    for (const auto& parts : projections()) {
      int64_t width = 0, mixed = 0;
      for (const ops::ProjectionPart& part : parts) {
        width += part.channels;
        mixed += part.is_mixed ? part.channels : 0;
      }
      if (width % 2 == 0) width += 4;  // channels that are ignored
      for (const int64_t length : {0, 1, 3, 64, 65, 151}) {
        for (const int64_t kernel : {0, 2, 4}) {
          for (const bool with_bias : {false, true}) {
            for (const bool with_silu : {false, true}) {
              INFO(types.name << " W " << width << " T " << length << " kernel " << kernel
                              << " bias " << with_bias << " silu " << with_silu);
              // The gradient of a bias is a sum over positions: that of two may cancel.
              const double bound = (length == 1 ? 2 : 1) * types.tolerance;
              const auto call = [&](const auto& operation) {
                return [&](const Tensors& in) {
                  const ops::ShortConv conv{
                      kernel > 0 ? in[1] : at::Tensor(),
                      with_bias ? in[2] : at::Tensor(),
                      with_silu,
                      0.1};  // a smaller one lets short heads enlarge rounding
                  return at::cat(operation(in[0], conv, parts), 2);
                };
              };
              REQUIRE(fused_against_reference(types,
                                              call(ops::short_conv),
                                              call(ops::short_conv_reference),
                                              {activation({2, length, width}),
                                               weight({mixed, 1, std::max<int64_t>(kernel, 1)}),
                                               weight({mixed})}) <= bound);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("what stands around linear attention gives the same bits at any number of threads",
          "[ops]") {
  at::manual_seed(44);
  const int64_t length = 200, channels = 48;
  const auto leaf = [](at::IntArrayRef shape) { return at::randn(shape).requires_grad_(true); };
  const Tensors leaves = {leaf({3, length, 2 * channels}),
                          leaf({channels, 1, 4}),
                          leaf({channels}),
                          leaf({channels}),
                          leaf({channels}),
                          leaf({3}),
                          leaf({channels})};
  const auto gradients = [&](int threads) {
    at::set_num_threads(threads);
    for (const at::Tensor& x : leaves) at::Tensor(x).mutable_grad() = at::Tensor();
    const std::vector<at::Tensor> parts =
        ops::short_conv(leaves[0], {leaves[1], leaves[2]}, {{channels, true, 16}, {channels}});
    const at::Tensor gate = ops::log_decay(parts[1], leaves[3], 16);
    const at::Tensor y =
        ops::gated_norm(parts[0], gate, {leaves[4], leaves[3], 1e-5, true}, {parts[1], leaves[5]});
    const ops::HeadGates gates = ops::head_gates({parts[1], {}, leaves[3], leaves[6]});
    (y.square().sum() + (gates.log_decay * gates.beta).sum()).backward();
    std::vector<at::Tensor> flat;
    for (const at::Tensor& x : leaves) flat.push_back(x.grad().flatten());
    return at::cat(flat);
  };
  const at::Tensor one = gradients(1), two = gradients(2);
  REQUIRE(at::equal(one, two));
}

TEST_CASE("a head of zeros has length 0 and a finite gradient", "[ops]") {
  const at::Tensor x = at::zeros({1, 5, 8}).requires_grad_(true);
  const at::Tensor y = ops::short_conv(x, {}, {{8, true, 4}})[0];
  REQUIRE(at::equal(y, at::zeros({1, 5, 8})));
  y.sum().backward();
  REQUIRE(x.grad().isfinite().all().item<bool>());
}

TEST_CASE("log_decay agrees with its reference and is exact in both tails", "[ops]") {
  at::manual_seed(42);
  for (const Types& types : types_of_passes()) {
    for (const auto& [rows, channels] :
         {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {65, 17}, {130, 64}}) {
      for (const double scale : {1.0, 20.0}) {
        INFO(types.name << " N " << rows << " C " << channels);
        const auto call = [&](const auto& operation) {
          return [&](const Tensors& in) { return operation(in[0], in[1], 16); };
        };
        REQUIRE(fused_against_reference(
                    types,
                    call(ops::log_decay),
                    call(ops::log_decay_reference),
                    {activation({rows, channels}, scale), weight({channels})}) <= types.tolerance);
      }
    }
  }
  const at::Tensor x = at::linspace(-80, 80, 3201, at::kFloat).unsqueeze(1);
  const at::Tensor exact =
      ops::log_decay_reference(x.to(at::kDouble), at::zeros({1}, at::kDouble), 1);
  const at::Tensor found = ops::log_decay(x, at::zeros({1}), 1).to(at::kDouble);
  REQUIRE((found / exact - 1).abs().max().item<double>() < 1e-6);
}

TEST_CASE("head_gates agrees with its reference", "[ops]") {
  at::manual_seed(45);
  for (const Types& types : types_of_passes()) {
    for (const int64_t heads : {1, 4, 24, 100, 300}) {
      for (const int64_t length : {0, 1, 65, 130}) {
        for (const bool with_write : {false, true}) {
          INFO(types.name << " H " << heads << " T " << length << " write " << with_write);
          const auto call = [&](const auto& operation) {
            return [&](const Tensors& in) {
              const ops::HeadGates gates =
                  operation({in[0], with_write ? in[1] : at::Tensor(), in[2], in[3]});
              return at::cat({gates.log_decay, gates.beta}, -1);
            };
          };
          REQUIRE(fused_against_reference(types,
                                          call(ops::head_gates),
                                          call(ops::head_gates_reference),
                                          {activation({2, length, heads}, 3),
                                           activation({2, length, heads}, 3),
                                           weight({heads}),
                                           weight({heads})}) <= types.tolerance);
        }
      }
    }
  }
}

TEST_CASE("gated_norm agrees with its reference", "[ops]") {
  at::manual_seed(43);
  for (const Types& types : types_of_passes()) {
    for (const auto& [channels, width, heads] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                                 {24, 24, 4},
                                                 {24, 8, 3},
                                                 {512, 128, 4},
                                                 {144, 48, 9},
                                                 {768, 768, 6},
                                                 {40, 20, 4},
                                                 {258, 129, 1}}) {
      for (const int64_t length : {0, 1, 65, 130}) {
        for (const bool gate_first : {false, true}) {
          for (const bool with_bias : {false, true}) {
            for (const bool with_skip : {false, true}) {
              INFO(types.name << " C " << channels << " D " << width << " T " << length << " first "
                              << gate_first << " bias " << with_bias << " skip " << with_skip);
              const auto call = [&](const auto& operation) {
                return [&](const Tensors& in) {
                  const ops::GatedNorm norm{
                      in[2], with_bias ? in[3] : at::Tensor(), 1e-5, gate_first};
                  const ops::HeadSkip skip{in[4], in[5]};
                  return operation(in[0], in[1], norm, with_skip ? skip : ops::HeadSkip());
                };
              };
              REQUIRE(fused_against_reference(types,
                                              call(ops::gated_norm),
                                              call(ops::gated_norm_reference),
                                              {activation({2, length, channels}),
                                               activation({2, length, channels}),
                                               weight({width}),
                                               weight({channels}),
                                               activation({2, length, channels}),
                                               weight({heads})}) <= types.tolerance);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gated_norm_linear agrees with its reference", "[ops]") {
  at::manual_seed(46);
  for (const Types& types : types_of_products()) {
    for (const auto& [channels, width, heads] :
         {std::tuple<int64_t, int64_t, int64_t>{24, 8, 3}, {256, 64, 4}, {128, 128, 2}}) {
      for (const int64_t length : {0, 1, 65}) {
        for (const bool with_skip : {false, true}) {
          INFO(types.name << " C " << channels << " D " << width << " T " << length << " skip "
                          << with_skip);
          const bool adds = length != 65;
          const auto norm_of = [&](const Tensors& in) {
            return ops::GatedNorm{in[2], in[3], 1e-5, with_skip};
          };
          const auto skip_of = [&](const Tensors& in) {
            return with_skip ? ops::HeadSkip{in[4], in[5]} : ops::HeadSkip();
          };
          const auto fused = [&](const Tensors& in) {
            return ops::gated_norm_linear(in[0],
                                          in[1],
                                          norm_of(in),
                                          skip_of(in),
                                          types.matrix(in[6]),
                                          adds ? in[7] : at::Tensor());
          };
          const auto reference = [&](const Tensors& in) {
            const at::Tensor y = at::linear(
                ops::gated_norm_reference(in[0], in[1], norm_of(in), skip_of(in)), in[6]);
            return adds ? in[7] + y : y;
          };
          REQUIRE(fused_against_reference(types,
                                          fused,
                                          reference,
                                          {activation({2, length, channels}),
                                           activation({2, length, channels}),
                                           weight({width}),
                                           weight({channels}),
                                           activation({2, length, channels}),
                                           weight({heads}),
                                           weight({16, channels}, 0.1),
                                           activation({2, length, 16})}) <= types.tolerance);
        }
      }
    }
  }
}

TEST_CASE("what two operations compute again is computed once, with the same gradients", "[ops]") {
  at::manual_seed(47);
  const int64_t heads = 2, width = 8;
  const Tensors drawn = {at::randn({2, 70, 3 * heads * width}),
                         at::randn({3 * heads * width, 1, 4}),
                         at::randn({2, 70, heads}),
                         at::randn({heads}),
                         at::rand({heads * width})};
  int computed = 0;
  const auto gradients = [&](bool recomputed, int passes) {
    Tensors leaves;
    for (const at::Tensor& x : drawn) leaves.push_back(x.clone().requires_grad_(true));
    const std::vector<ops::ProjectionPart> parts(3, {heads * width, true, 0});
    const auto inputs_of = [&, parts, weight = leaves[1]](const Tensors& from) {
      ++computed;
      Tensors qkv = ops::short_conv(from[0], {weight, {}}, parts);
      for (at::Tensor& x : qkv) x = x.unflatten(2, {heads, width});
      return Tensors{qkv[0], qkv[1], qkv[2], -from[1].square(), {}};
    };
    const Tensors sources = {leaves[0], leaves[2]};
    ops::Recomputation again;
    if (recomputed) again = {sources, std::make_shared<ops::RecomputedTensors>(inputs_of)};
    const Tensors in = inputs_of(sources);
    const at::Tensor o = ops::recomputed_linear_attention(
                             {in[0], in[1], in[2], in[3], in[4], {}}, {0.5, false}, again)
                             .output.flatten(2);
    const at::Tensor y =
        ops::gated_norm(o, o, {leaves[4], {}}, ops::HeadSkip{in[2].flatten(2), leaves[3], again});
    for (int i = 0; i < passes; ++i) y.square().sum().backward({}, /*retain_graph=*/i + 1 < passes);
    Tensors flat;
    for (const at::Tensor& x : leaves) flat.push_back(x.grad().flatten());
    return at::cat(flat);
  };
  const at::Tensor kept = gradients(false, 1);
  computed = 0;
  REQUIRE(at::equal(kept, gradients(true, 1)));
  REQUIRE(computed == 2);  // forward, and once backward
  computed = 0;
  REQUIRE(at::allclose(2 * kept, gradients(true, 2)));
  REQUIRE(computed == 3);
}

}  // namespace
}  // namespace forge::tests
