// Operations that hold several, each against the composition of its parts' references.
#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "tests/support/op_check.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;

double tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-11 : 2e-5; }

/// What a Canon layer may be: none, plain, without residual, within documents, with an activation.
constexpr int layer_variants = 5;

ops::CanonLayer layer_of(int variant, const at::Tensor& weight, int64_t batch, int64_t length) {
  if (variant == 0) return {};
  const at::Tensor docs = (at::arange(length, at::kInt).floor_divide(5))
                              .to(at::kInt)
                              .expand({batch, length})
                              .contiguous();
  return {weight, {variant != 2, variant == 4}, variant == 3 ? docs : at::Tensor()};
}

TEST_CASE("norm_linear agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(31);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 3, 64, 65, 129, 151}) {
      for (const int64_t channels : {1, 17, 256}) {
        for (int variant = 0; variant < layer_variants; ++variant) {
          INFO("T " << length << " C " << channels << " variant " << variant);
          const auto run = [&](const auto& operation) {
            return [&](const Tensors& in) {
              const ops::NormLinear y =
                  operation(in[0], in[1], {}, layer_of(variant, in[2], 2, length), in[3]);
              // What goes past the block is worth something too.
              return at::cat({y.projection, y.residual * 0.7}, 2);
            };
          };
          const double difference =
              fused_against_reference(run(ops::norm_linear),
                                      run(ops::norm_linear_reference),
                                      {sliced_normal({2, length, channels}, type),
                                       at::randn({channels}, type),
                                       at::randn({channels, 1, variant == 1 ? 3 : 4}, type),
                                       sliced_normal({7, channels}, type)});
          REQUIRE(difference <= tolerance(type));
        }
      }
    }
  }
}

TEST_CASE("swiglu_linear agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(32);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 3, 64, 65, 129, 151}) {
      for (const int64_t width : {1, 3, 129}) {
        for (int variant = 0; variant < layer_variants; ++variant) {
          INFO("T " << length << " I " << width << " variant " << variant);
          const auto run = [&](const auto& operation) {
            return [&](const Tensors& in) {
              return operation(in[0], layer_of(variant, in[1], 2, length), in[2], in[3]);
            };
          };
          const double difference =
              fused_against_reference(run(ops::swiglu_linear),
                                      run(ops::swiglu_linear_reference),
                                      {sliced_normal({2, length, 2 * width}, type),
                                       at::randn({2 * width, 1, variant == 1 ? 2 : 4}, type),
                                       sliced_normal({7, width}, type),
                                       sliced_normal({2, length, 7}, type)});
          REQUIRE(difference <= tolerance(type));
        }
      }
    }
  }
}

TEST_CASE("self_attention agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(33);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 3, 64, 65, 129}) {
      for (const int64_t kv_heads : {1, 2, 4}) {
        for (int variant = 0; variant < layer_variants; ++variant) {
          for (const int64_t rope_dim : {0, 4, 8}) {
            INFO("T " << length << " G " << kv_heads << " variant " << variant << " rope "
                      << rope_dim);
            const ops::HeadLayout layout{4, kv_heads, 8};
            const bool interleaved = variant % 2 == 1;
            const ops::RotaryTable table =
                rope_dim == 0 ? ops::RotaryTable{}
                              : ops::rotary_table(length + 3, rope_dim, 1e4, interleaved, type);
            const auto run = [&](const auto& operation) {
              return [&](const Tensors& in) {
                const ops::CanonLayer layer = layer_of(variant, in[1], 2, length);
                return operation(in[0], layer, table, layout, layer.doc_ids);
              };
            };
            const double difference =
                fused_against_reference(run([](const auto&... in) {
                                          return ops::self_attention(in...);
                                        }),
                                        run(ops::self_attention_reference),
                                        {sliced_normal({2, length, layout.width()}, type),
                                         at::randn({layout.width(), 1, 4}, type)});
            REQUIRE(difference <= tolerance(type));
          }
        }
      }
    }
  }
}

TEST_CASE("what lies between the matrix products has the same bits at any number of threads",
          "[ops]") {
  at::manual_seed(34);
  const ops::CanonLayer layer{at::randn({24, 1, 4}), {}, {}};
  const at::Tensor x = at::randn({3, 200, 24}), norm_w = at::randn({24}),
                   upstream = at::randn({3, 200, 24}), grad_half = at::randn({3, 200, 12});
  const ops::RotaryTable table =
      ops::rotary_table(200, 4, 1e4, false, at::TensorOptions(at::kFloat));
  const auto results = [&](int threads) {
    at::set_num_threads(threads);
    Tensors all;
    const auto like = [&](const at::Tensor& shape) {
      all.push_back(at::empty_like(shape));
      return all.back();
    };
    at::Tensor y = like(x), half = like(grad_half), prepared = like(x), again = like(grad_half);
    ops::norm_canon_forward_cpu(x, norm_w, {}, layer, y);
    ops::canon_swiglu_forward_cpu(x, layer, half);
    ops::prepare_heads_cpu(x, layer, table, {2, 2, 4}, prepared);
    at::Tensor grad_x = like(x), grad_norm = like(norm_w), grad_canon = like(layer.weight);
    ops::norm_canon_backward_cpu(x, norm_w, {}, layer, upstream, x, grad_x, grad_norm, grad_canon);
    at::Tensor grad_gate_up = like(x), grad_taps = like(layer.weight);
    ops::canon_swiglu_backward_cpu(x, layer, grad_half, again, grad_gate_up, grad_taps);
    for (at::Tensor& tensor : all) tensor = tensor.flatten();
    return at::cat(all);
  };
  const at::Tensor one = results(1);
  const at::Tensor two = results(2);
  REQUIRE(at::equal(one, two));
}

TEST_CASE("the joint operations of an empty batch are empty, their weights' gradients zero",
          "[ops]") {
  const ops::HeadLayout layout{2, 1, 4};
  at::Tensor norm_w = at::randn({6}).requires_grad_(true),
             canon_a = at::randn({6, 1, 4}).requires_grad_(true),
             canon_b = at::randn({16, 1, 4}).requires_grad_(true),
             canon_d = at::randn({8, 1, 4}).requires_grad_(true);
  const at::Tensor qkv =
      ops::norm_linear(at::empty({0, 9, 6}), norm_w, {}, {canon_a, {}, {}}, at::randn({16, 6}))
          .projection;
  REQUIRE(qkv.sizes() == at::IntArrayRef({0, 9, 16}));
  const at::Tensor mixed = ops::self_attention(qkv, {canon_b, {}, {}}, {}, layout);
  REQUIRE(mixed.sizes() == at::IntArrayRef({0, 9, 8}));
  const at::Tensor y = ops::swiglu_linear(mixed, {canon_d, {}, {}}, at::randn({6, 4}));
  REQUIRE(y.sizes() == at::IntArrayRef({0, 9, 6}));
  y.sum().backward();
  for (const at::Tensor& leaf : {norm_w, canon_a, canon_b, canon_d}) {
    REQUIRE(at::equal(leaf.grad(), at::zeros_like(leaf.detach())));
  }
}

}  // namespace
}  // namespace forge::tests
