// What single operations do at their edges; agreement_test.cpp has how they agree with references.

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

/// Whether calling the action throws a Torch error that says `part`.
template <class Action>
bool fails_with(const std::string& part, const Action& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return std::string(error.what_without_backtrace()).find(part) != std::string::npos;
  }
  return false;
}

TEST_CASE("canon_conv of an empty batch is empty and wrong shapes are named", "[ops]") {
  const at::Tensor w = at::randn({5, 1, 4});
  REQUIRE(ops::canon_conv(at::empty({0, 7, 5}), w, {}).sizes() == at::IntArrayRef({0, 7, 5}));
  REQUIRE(fails_with("w must be [4, 1, kernel]", [&] {
    ops::canon_conv(at::randn({2, 3, 4}), w, {});
  }));
  REQUIRE(fails_with("[batch, tokens, channels]", [&] {
    ops::canon_conv(at::randn({2, 5}), w, {});
  }));
  REQUIRE(fails_with("2 to 4 taps", [&] {
    ops::canon_conv(at::randn({2, 3, 5}), at::randn({5, 1, 5}), {});
  }));
}

TEST_CASE("canon_conv gives the same bits at any number of threads", "[ops]") {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 200, 96}), w = at::randn({96, 1, 4}),
                   upstream = at::randn({3, 200, 96});
  const auto gradients = [&](int threads) {
    at::set_num_threads(threads);
    at::Tensor grad_x = at::empty_like(x), grad_w = at::empty_like(w);
    ops::canon_conv_backward_cpu(x, {w, {}, {}}, upstream, grad_x, grad_w);
    return at::cat({grad_x.flatten(), grad_w.flatten()});
  };
  const at::Tensor one = gradients(1);
  const at::Tensor two = gradients(2);
  REQUIRE(at::equal(one, two));
}

TEST_CASE("linear of an empty batch is empty and its weight has a gradient of zeros", "[ops]") {
  at::Tensor w = at::randn({5, 3}).requires_grad_(true);
  const at::Tensor y = ops::linear(at::empty({0, 7, 3}), w);
  REQUIRE(y.sizes() == at::IntArrayRef({0, 7, 5}));
  y.sum().backward();
  REQUIRE(at::equal(w.grad(), at::zeros({5, 3})));
  REQUIRE(fails_with("x must be [..., 3]", [&] { ops::linear(at::randn({2, 4}), w); }));
}

TEST_CASE("gemm of bfloat16 agrees with float64 however it multiplies", "[ops]") {
  at::manual_seed(18);
  for (const auto& run :
       {ops::gemm_in_float32, static_cast<decltype(&ops::gemm_in_float32)>(ops::gemm)}) {
    for (const int64_t m : {1, 2, 3, 129, 151}) {
      for (const int64_t n : {1, 3, 64, 151}) {
        for (const int64_t k : {0, 1, 2, 129, 4097}) {
          for (const bool transposed : {false, true}) {
            for (const bool add : {false, true}) {
              INFO("m " << m << " n " << n << " k " << k << " " << transposed << " " << add);
              const at::Tensor a = at::randn({m, k}).to(at::kBFloat16),
                               b = at::randn({k, n}).to(at::kBFloat16), c = at::randn({m, n + 2});
              const auto operand = [&](const at::Tensor& x, at::Tensor& stored) {
                stored = transposed ? x.t().contiguous() : x;
                return ops::Operand<at::BFloat16>{
                    stored.data_ptr<at::BFloat16>(), stored.size(1), transposed};
              };
              const at::Tensor before = c.clone();
              at::Tensor stored_a, stored_b;
              if (k == 0 && transposed) continue;  // no stride
              run({m, n, k, c.data_ptr<float>(), n + 2, add},
                  operand(a, stored_a),
                  operand(b, stored_b));
              at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
              if (add) exact += before.narrow(1, 0, n);
              const at::Tensor difference = (c.narrow(1, 0, n) - exact).abs();
              REQUIRE(difference.max().item<double>() <= 1e-6 * double(k + 1));
              REQUIRE(at::equal(c.narrow(1, n, 2), before.narrow(1, n, 2)));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("an operand is rounded to the nearest bfloat16 as Torch rounds", "[ops]") {
  at::manual_seed(19);
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor odd = at::tensor(
      {0.0f, -0.0f, 1.00390625f, 1.01171875f, 3.4e38f, -3.4e38f, 1e-40f, infinity, -infinity});
  const at::Tensor x = at::cat({odd, at::randn({100003}), at::randn({1001}) * 1e30});
  REQUIRE(at::equal(ops::as_operand(x, at::kBFloat16), x.to(at::kBFloat16)));
  const at::Tensor no_number = at::full({70}, std::nanf(""));
  REQUIRE(ops::as_operand(no_number, at::kBFloat16).isnan().all().item<bool>());
  REQUIRE(ops::as_operand(x, at::kFloat).is_same(x));
}

TEST_CASE("a parallel loop of the operations runs on all threads", "[ops]") {
  at::set_num_threads(2);
  std::array<int, 2> threads{};
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) threads[size_t(i)] = at::get_thread_num();
  });
  REQUIRE(threads[0] != threads[1]);
}

TEST_CASE("causal_attention takes documents whose numbers do not rise", "[ops]") {
  at::manual_seed(14);
  const at::Tensor docs = at::tensor({5, 5, 2, 2, 2, 5, 1}, at::kInt).view({1, 7});
  const at::Tensor q = at::randn({1, 7, 2, 4}), k = at::randn({1, 7, 1, 4});
  REQUIRE(at::equal(ops::causal_attention(q, k, k, ops::divide_documents(docs)),
                    ops::causal_attention_reference(q, k, k, docs)));
  const ops::Documents shorter = ops::divide_documents(docs.narrow(1, 0, 6));
  REQUIRE(
      fails_with("doc_ids must be int32 [1, 7]", [&] { ops::causal_attention(q, k, k, shorter); }));
}

TEST_CASE("documents are divided into the first token of each and where each begins", "[ops]") {
  const at::Tensor ids = at::tensor({0, 0, 1, 1, 4, 3, 3, 3, 5, 6}, at::kInt).view({2, 5});
  const ops::Documents documents = ops::divide_documents(ids);
  REQUIRE(at::equal(documents.first,
                    at::tensor({0, 0, 2, 2, 4, 0, 0, 0, 3, 4}, at::kInt).view({2, 5})));
  const std::vector<int32_t> starts = ops::document_starts(ids.data_ptr<int32_t>(), 2, 5);
  REQUIRE(starts.size() == 257);
  REQUIRE(std::vector<int32_t>(starts.begin(), starts.begin() + 7) ==
          std::vector<int32_t>({0, 2, 4, 5, 8, 9, 10}));
  REQUIRE(starts.back() == 10);
  REQUIRE(ops::document_starts(ids.data_ptr<int32_t>(), 2, 5, 257).size() == 513);
  REQUIRE(ops::document_starts(ids.data_ptr<int32_t>(), 1, 10).empty());  // 4, then 3
  REQUIRE_FALSE(ops::divide_documents(ids.view({1, 10})).first.defined());
  REQUIRE_FALSE(ops::divide_documents({}).defined());
  const at::Tensor each = at::arange(300, at::kInt);
  REQUIRE(ops::document_starts(each.data_ptr<int32_t>(), 1, 300).size() == 513);
  REQUIRE(fails_with("doc_ids must be int32", [&] { ops::divide_documents(each); }));
}

TEST_CASE("one document in a row is the same bits as no documents", "[ops]") {
  at::manual_seed(15);
  const at::Tensor q = at::randn({2, 200, 4, 8}), k = at::randn({2, 200, 2, 8});
  const ops::Documents docs = ops::divide_documents(at::zeros({2, 200}, at::kInt));
  REQUIRE(at::equal(ops::causal_attention(q, k, k, docs), ops::causal_attention(q, k, k)));
}

TEST_CASE("causal_attention stays finite at scores that overflow an exponential", "[ops]") {
  const at::Tensor q = at::full({1, 5, 1, 4}, 100.0), v = at::randn({1, 5, 1, 4});
  REQUIRE(at::isfinite(ops::causal_attention(q, q, v)).all().item<bool>());
}

TEST_CASE("rms_norm in low precision rounds before or after the product with its weight", "[ops]") {
  at::manual_seed(10);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = (at::randn({65, 151}) * 3).to(type);
    const at::Tensor w = at::randn({151}).to(type);
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor normalised = wide * (wide * wide).mean(-1, true).add(1e-6).rsqrt();
    const at::Tensor before = ops::rms_norm(x, w, {1e-6, true});
    const at::Tensor after = ops::rms_norm(x, w, {1e-6, false});
    REQUIRE(before.scalar_type() == type);
    REQUIRE(after.scalar_type() == type);
    // A product of two numbers of 11 significant bits is exact in float32, so this is one rounding.
    REQUIRE(at::equal(before, (w.to(at::kFloat) * normalised.to(type).to(at::kFloat)).to(type)));
    REQUIRE(at::equal(after, (w.to(at::kFloat) * normalised).to(type)));
    const at::Tensor exact = w.to(at::kDouble) * normalised.to(at::kDouble);
    const auto error = [&](const at::Tensor& y) {
      return (y.to(at::kDouble) - exact).abs().mean().item<double>();
    };
    REQUIRE(error(after) < 0.9 * error(before));
  }
}

TEST_CASE("rms_norm in low precision has the gradients of the wide one", "[ops]") {
  at::manual_seed(11);
  for (const bool round_before_weight : {true, false}) {
    const auto gradients = [&](at::ScalarType type) {
      at::manual_seed(12);
      at::Tensor x = at::randn({9, 33}).to(at::kBFloat16).to(type).requires_grad_(true);
      at::Tensor w = at::randn({33}).to(at::kBFloat16).to(type).requires_grad_(true);
      const at::Tensor upstream = at::randn({9, 33}).to(at::kBFloat16).to(type);
      (ops::rms_norm(x, w, {1e-5, round_before_weight}) * upstream).sum().backward();
      return at::cat({x.grad().flatten(), w.grad().flatten()}).to(at::kDouble);
    };
    const at::Tensor wide = gradients(at::kDouble);
    const double largest = wide.abs().max().item<double>();
    const at::Tensor difference = (gradients(at::kBFloat16) - wide).abs();
    REQUIRE(difference.max().item<double>() < 0.03 * largest);
  }
}

TEST_CASE("rotary rotates the pair at position p by p times its frequency", "[ops]") {
  const ops::RotaryTable table =
      ops::rotary_table(4, 4, 100.0, false, at::TensorOptions(at::kDouble));
  const at::Tensor x = at::tensor({1.0, 0.0, 0.0, 2.0}, at::kDouble)
                           .view({1, 1, 1, 4})
                           .expand({1, 4, 1, 4})
                           .contiguous();
  const at::Tensor y = ops::rotary(x, table)[0][3][0];
  // pair 0 = channels 0 and 2, angle 3; pair 1 = channels 1 and 3, angle 3 * 100^(-1/2)
  REQUIRE(y[0].item<double>() == Approx(std::cos(3.0)));
  REQUIRE(y[2].item<double>() == Approx(std::sin(3.0)));
  REQUIRE(y[1].item<double>() == Approx(-2 * std::sin(0.3)));
  REQUIRE(y[3].item<double>() == Approx(2 * std::cos(0.3)));
}

TEST_CASE("linear_cross_entropy of no scored row is 0 and has no gradient", "[ops]") {
  const at::TensorOptions options = at::TensorOptions(test_device());
  const at::Tensor x = at::randn({3, 4}, options).requires_grad_(true);
  const at::Tensor w = at::randn({5, 4}, options).requires_grad_(true);
  const at::Tensor unscored = at::full({3}, ops::ignored_target, options.dtype(at::kInt));
  const at::Tensor loss = ops::linear_cross_entropy(x, w, unscored);
  REQUIRE(loss.item<double>() == 0);
  loss.backward();
  REQUIRE(x.grad().abs().max().item<double>() == 0);
  REQUIRE(w.grad().abs().max().item<double>() == 0);
}

TEST_CASE("linear_cross_entropy refuses a target outside the vocabulary", "[ops]") {
  const at::Tensor x = at::randn({3, 4}), w = at::randn({5, 4});
  const at::Tensor unscored = at::full({3}, ops::ignored_target, at::kInt);
  const at::Tensor none = at::empty({0}, at::kInt);
  REQUIRE(ops::linear_cross_entropy(x.narrow(0, 0, 0), w, none).item<double>() == 0);
  REQUIRE(fails_with("outside the vocabulary of 5",
                     [&] { ops::linear_cross_entropy(x, w, at::full({3}, 5, at::kInt)); }));
  REQUIRE(ops::linear_cross_entropy_losses(x, w, unscored).sum().item<double>() == 0);
  REQUIRE(fails_with("outside the vocabulary of 5",
                     [&] { ops::linear_cross_entropy_losses(x, w, at::full({3}, 5, at::kInt)); }));
}

TEST_CASE("the negative log likelihood refuses a target outside the vocabulary", "[ops]") {
  const at::Tensor targets = at::full({3}, 9, at::kInt);
  REQUIRE(fails_with("outside the vocabulary of 9", [&] {
    ops::negative_log_likelihoods(at::randn({3, 9}), targets);
  }));
}

TEST_CASE("every reference case of the canon convolution agrees in double and single precision",
          "[vectors]") {
  std::vector<std::filesystem::path> files = vector_files("op_canon_conv");
  if (files.empty()) files.push_back(shared_vector_file("op_canon_conv.json"));
  for (const auto& file : files) {
    const nlohmann::json content = read_json(file);
    for (const auto& c : content.at("cases")) {
      for (const auto& [type, tolerance] :
           {std::pair(at::kDouble, 1e-9), std::pair(at::kFloat, 5e-6)}) {
        INFO(c.at("name") << " " << at::toString(type));
        const int64_t batch = c.at("B"), length = c.at("T"), channels = c.at("C"),
                      kernel = c.at("K");
        const at::Tensor x =
            float32_tensor_of(c.at("x"), {batch, length, channels}, type).requires_grad_(true);
        const at::Tensor w =
            float32_tensor_of(c.at("w"), {channels, 1, kernel}, type).requires_grad_(true);
        const at::Tensor docs = c.at("doc_ids").is_null()
                                    ? at::Tensor()
                                    : tensor_of(c.at("doc_ids"), {batch, length}, at::kInt);
        const at::Tensor y = ops::canon_conv(x, w, {c.at("residual"), c.at("silu")}, docs);
        REQUIRE(largest_difference(y, tensor_of(c.at("y"), y.sizes(), at::kDouble)) <= tolerance);
        (y * float32_tensor_of(c.at("upstream"), y.sizes(), type)).sum().backward();
        REQUIRE(largest_difference(x.grad(), tensor_of(c.at("grad_x"), x.sizes(), at::kDouble)) <=
                tolerance);
        REQUIRE(largest_difference(w.grad(), tensor_of(c.at("grad_w"), w.sizes(), at::kDouble)) <=
                tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace forge::tests

// What operations that hold several do at any number of threads and without tokens.

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
    at::Tensor y = like(x), half = like(grad_half), heads = like(x), again = like(grad_half);
    const ops::NormCanon layers{norm_w, {}, layer};
    ops::norm_canon_forward_cpu(x, layers, y);
    ops::canon_swiglu_forward_cpu(x, layer, half);
    ops::canon_rope_forward_cpu(x, {layer, table, {2, 2, 4}, {}}, heads);
    ops::NormCanonGradients grads{like(x), like(norm_w), like(layer.weight)};
    ops::norm_canon_backward_cpu(x, layers, upstream, x, grads);
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
  const at::Tensor mixed = ops::self_attention(qkv, {{canon_b, {}, {}}, {}, layout, {}});
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
