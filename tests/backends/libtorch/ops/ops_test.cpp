// Every fused operation against its reference, forward and backward, over awkward sizes.
#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "tests/support/op_check.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;

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

double tolerance(at::ScalarType type) { return type == at::kDouble ? 1e-11 : 2e-5; }

TEST_CASE("canon_conv agrees with its reference", "[ops]") {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 3, 63, 64, 65, 129, 151}) {
      for (const int64_t channels : {1, 3, 16, 129}) {
        for (const int64_t kernel : {2, 3, 4}) {
          for (const int variant : {0, 1, 2, 3}) {
            INFO("T " << length << " C " << channels << " K " << kernel << " variant " << variant);
            const ops::CanonConvOptions options{(variant & 1) == 0, (variant & 2) != 0};
            const at::Tensor docs =
                variant == 3 ? at::randint(0, 3, {2, length}, at::kInt) : at::Tensor();
            const double difference = fused_against_reference(
                [&](const Tensors& in) { return ops::canon_conv(in[0], in[1], options, docs); },
                [&](const Tensors& in) {
                  return ops::canon_conv_reference(in[0], in[1], options, docs);
                },
                {sliced_normal({2, length, channels}, type),
                 at::randn({channels, 1, kernel}, type)});
            REQUIRE(difference <= tolerance(type));
          }
        }
      }
    }
  }
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
    ops::canon_conv_backward_cpu(x, w, {}, {}, upstream, grad_x, grad_w);
    return at::cat({grad_x.flatten(), grad_w.flatten()});
  };
  const at::Tensor one = gradients(1);
  const at::Tensor two = gradients(2);
  REQUIRE(at::equal(one, two));
}

TEST_CASE("linear agrees with its reference", "[ops]") {
  at::manual_seed(16);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t rows : {1, 2, 3, 129, 151}) {
      for (const int64_t in : {1, 3, 256, 1031}) {
        for (const int64_t out : {1, 5, 129, 768}) {
          INFO("rows " << rows << " in " << in << " out " << out);
          const double difference = fused_against_reference(
              [](const Tensors& t) { return ops::linear(t[0], t[1]); },
              [](const Tensors& t) { return at::linear(t[0], t[1]); },
              {sliced_normal({2, rows, in}, type), sliced_normal({out, in}, type)});
          REQUIRE(difference <= tolerance(type));
        }
      }
    }
  }
}

TEST_CASE("linear of an empty batch is empty and its weight has a gradient of zeros", "[ops]") {
  at::Tensor w = at::randn({5, 3}).requires_grad_(true);
  const at::Tensor y = ops::linear(at::empty({0, 7, 3}), w);
  REQUIRE(y.sizes() == at::IntArrayRef({0, 7, 5}));
  y.sum().backward();
  REQUIRE(at::equal(w.grad(), at::zeros({5, 3})));
  REQUIRE(fails_with("x must be [..., 3]", [&] { ops::linear(at::randn({2, 4}), w); }));
}

TEST_CASE("a parallel loop of the operations runs on all threads", "[ops]") {
  at::set_num_threads(2);
  std::array<int, 2> threads{};
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) threads[size_t(i)] = at::get_thread_num();
  });
  REQUIRE(threads[0] != threads[1]);
}

TEST_CASE("causal_attention agrees with its reference", "[ops]") {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 3, 63, 64, 65, 129, 300}) {
      for (const int64_t kv_heads : {1, 2, 4}) {
        INFO("T " << length << " kv heads " << kv_heads);
        const double difference = fused_against_reference(
            [](const Tensors& in) { return ops::causal_attention(in[0], in[1], in[2]); },
            [](const Tensors& in) { return ops::causal_attention_reference(in[0], in[1], in[2]); },
            {at::randn({2, length, 4, 8}, type),
             at::randn({2, length, kv_heads, 8}, type),
             at::randn({2, length, kv_heads, 8}, type)});
        REQUIRE(difference <= tolerance(type));
      }
    }
  }
}

/// Rows of documents of random lengths around `mean`, numbered from 0 on.
at::Tensor random_documents(int64_t rows, int64_t length, int64_t mean) {
  const at::Tensor begins = at::randint(0, mean, {rows, length}, at::kInt).eq(0);
  return begins.cumsum(1).to(at::kInt);
}

TEST_CASE("causal_attention within documents agrees with its reference", "[ops]") {
  at::manual_seed(13);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t length : {1, 2, 127, 128, 129, 300}) {
      for (const int64_t mean : {1, 3, 50, 1000}) {
        INFO("T " << length << " documents of about " << mean);
        const at::Tensor docs = random_documents(2, length, mean);
        const double difference = fused_against_reference(
            [&](const Tensors& in) { return ops::causal_attention(in[0], in[1], in[2], docs); },
            [&](const Tensors& in) {
              return ops::causal_attention_reference(in[0], in[1], in[2], docs);
            },
            {at::randn({2, length, 4, 8}, type),
             at::randn({2, length, 2, 8}, type),
             at::randn({2, length, 2, 8}, type)});
        REQUIRE(difference <= tolerance(type));
      }
    }
  }
}

TEST_CASE("causal_attention takes documents whose numbers do not rise", "[ops]") {
  at::manual_seed(14);
  const at::Tensor docs = at::tensor({5, 5, 2, 2, 2, 5, 1}, at::kInt).view({1, 7});
  const at::Tensor q = at::randn({1, 7, 2, 4}), k = at::randn({1, 7, 1, 4});
  REQUIRE(at::equal(ops::causal_attention(q, k, k, docs),
                    ops::causal_attention_reference(q, k, k, docs)));
  REQUIRE(fails_with("doc_ids must be int32 [1, 7]",
                     [&] { ops::causal_attention(q, k, k, docs.narrow(1, 0, 6)); }));
}

TEST_CASE("one document in a row is the same bits as no documents", "[ops]") {
  at::manual_seed(15);
  const at::Tensor q = at::randn({2, 200, 4, 8}), k = at::randn({2, 200, 2, 8});
  const at::Tensor docs = at::zeros({2, 200}, at::kInt);
  REQUIRE(at::equal(ops::causal_attention(q, k, k, docs), ops::causal_attention(q, k, k)));
}

TEST_CASE("causal_attention stays finite at scores that overflow an exponential", "[ops]") {
  const at::Tensor q = at::full({1, 5, 1, 4}, 100.0), v = at::randn({1, 5, 1, 4});
  REQUIRE(at::isfinite(ops::causal_attention(q, q, v)).all().item<bool>());
}

TEST_CASE("rms_norm agrees with its reference", "[ops]") {
  at::manual_seed(4);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t rows : {1, 2, 3, 64, 65, 129}) {
      for (const int64_t channels : {1, 2, 151, 256}) {
        INFO("rows " << rows << " channels " << channels);
        const double difference = fused_against_reference(
            [](const Tensors& in) { return ops::rms_norm(in[0], in[1], {}); },
            [](const Tensors& in) { return ops::rms_norm_reference(in[0], in[1], {}); },
            {sliced_normal({rows, channels}, type), at::randn({channels}, type)});
        REQUIRE(difference <= tolerance(type));
      }
    }
  }
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

TEST_CASE("rotary agrees with its reference for both pairings and partial rotation", "[ops]") {
  at::manual_seed(5);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const bool interleaved : {false, true}) {
      for (const int64_t rope_dim : {2, 6, 8}) {
        const ops::RotaryTable table =
            ops::rotary_table(17, rope_dim, 1e4, interleaved, at::TensorOptions(type));
        const double difference = fused_against_reference(
            [&](const Tensors& in) { return ops::rotary(in[0], table); },
            [&](const Tensors& in) { return ops::rotary_reference(in[0], table); },
            {at::randn({2, 17, 3, 8}, type)});
        REQUIRE(difference <= tolerance(type));
      }
    }
  }
}

TEST_CASE("rotary turns the pair at position p by p times its frequency", "[ops]") {
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

TEST_CASE("swiglu agrees with its reference", "[ops]") {
  at::manual_seed(6);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t width : {1, 3, 129, 768}) {
      const double difference =
          fused_against_reference([](const Tensors& in) { return ops::swiglu(in[0]); },
                                  [](const Tensors& in) { return ops::swiglu_reference(in[0]); },
                                  {at::randn({67, 2 * width}, type) * 4});
      REQUIRE(difference <= tolerance(type));
    }
  }
}

TEST_CASE("cross_entropy agrees with its reference for every z-loss and with ignored targets",
          "[ops]") {
  at::manual_seed(7);
  using ZLoss = ops::CrossEntropyOptions::ZLoss;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const ZLoss z_loss : {ZLoss::none, ZLoss::palm, ZLoss::lingua_code}) {
      for (const int64_t vocabulary : {1, 2, 37, 2000}) {
        at::Tensor targets = at::randint(0, vocabulary, {131}, at::kInt);
        targets.narrow(0, 5, 20).fill_(ops::ignored_target);
        const ops::CrossEntropyOptions options{z_loss, 0.01};
        const double difference = fused_against_reference(
            [&](const Tensors& in) { return ops::cross_entropy(in[0], targets, options); },
            [&](const Tensors& in) {
              return ops::cross_entropy_reference(in[0], targets, options);
            },
            {at::randn({131, vocabulary}, type) * 3});
        REQUIRE(difference <= tolerance(type));
      }
    }
  }
}

TEST_CASE("linear_cross_entropy agrees with its reference for every z-loss and over chunks",
          "[ops]") {
  at::manual_seed(17);
  using ZLoss = ops::CrossEntropyOptions::ZLoss;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const ZLoss z_loss : {ZLoss::none, ZLoss::palm, ZLoss::lingua_code}) {
      for (const int64_t rows : {1, 2, 3, 129, 151}) {
        for (const int64_t vocabulary : {1, 2, 37, 20000}) {  // the last one in chunks of 64 rows
          INFO("rows " << rows << " vocabulary " << vocabulary << " z-loss " << int(z_loss));
          at::Tensor targets = at::randint(0, vocabulary, {rows}, at::kInt);
          if (rows > 30) targets.narrow(0, 5, 20).fill_(ops::ignored_target);
          const ops::CrossEntropyOptions options{z_loss, 0.01};
          const double difference = fused_against_reference(
              [&](const Tensors& in) {
                return ops::linear_cross_entropy(in[0], in[1], targets, options);
              },
              [&](const Tensors& in) {
                return ops::linear_cross_entropy_reference(in[0], in[1], targets, options);
              },
              {sliced_normal({rows, 17}, type), sliced_normal({vocabulary, 17}, type)});
          REQUIRE(difference <= tolerance(type));
        }
      }
    }
  }
}

TEST_CASE("linear_cross_entropy of no scored row is no number, as cross_entropy is", "[ops]") {
  const at::Tensor x = at::randn({3, 4}), w = at::randn({5, 4});
  const at::Tensor unscored = at::full({3}, ops::ignored_target, at::kInt);
  REQUIRE(std::isnan(ops::linear_cross_entropy(x, w, unscored).item<double>()));
  const at::Tensor none = at::empty({0}, at::kInt);
  REQUIRE(std::isnan(ops::linear_cross_entropy(x.narrow(0, 0, 0), w, none).item<double>()));
  REQUIRE(fails_with("outside the vocabulary of 5",
                     [&] { ops::linear_cross_entropy(x, w, at::full({3}, 5, at::kInt)); }));
}

TEST_CASE("cross_entropy refuses a target outside the vocabulary", "[ops]") {
  const at::Tensor targets = at::full({3}, 9, at::kInt);
  REQUIRE(fails_with("outside the vocabulary of 9", [&] {
    ops::cross_entropy(at::randn({3, 9}), targets);
  }));
}

TEST_CASE("the summed negative log likelihood is the loss times the kept targets", "[ops]") {
  at::manual_seed(8);
  at::Tensor targets = at::randint(0, 11, {40}, at::kInt);
  targets.narrow(0, 0, 8).fill_(ops::ignored_target);
  const at::Tensor logits = at::randn({40, 11}, at::kDouble);
  REQUIRE(ops::negative_log_likelihood_sum(logits, targets) ==
          Approx(32 * ops::cross_entropy_reference(logits, targets).item<double>()));
}

TEST_CASE("adamw agrees with its reference over several steps", "[ops]") {
  at::manual_seed(9);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    at::Tensor p = at::randn({1031}, type), m = at::zeros_like(p), v = at::zeros_like(p);
    at::Tensor p2 = p.clone(), m2 = m.clone(), v2 = v.clone();
    for (int64_t step = 1; step <= 5; ++step) {
      const at::Tensor g = at::randn({1031}, type);
      const ops::AdamWStep adamw{1e-2, 0.9, 0.95, 1e-8, 0.1, step};
      ops::adamw_(p, g, m, v, adamw);
      ops::adamw_reference_(p2, g, m2, v2, adamw);
    }
    REQUIRE((p - p2).abs().max().item<double>() <= tolerance(type));
  }
}

}  // namespace
}  // namespace forge::tests
