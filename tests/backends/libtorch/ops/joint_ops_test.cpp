// What operations that hold several do at any number of threads and without tokens.
#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;

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
