// Linear attention: the chunk forms against the recurrence token by token in float64, forward and
// backward, over awkward sizes and from no decay to a total one.

#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using Inputs = ops::LinearAttentionInputs;

enum class Form { channel_decay, scalar_decay, shared_keys, delta_rule };
constexpr Form forms[] = {
    Form::channel_decay, Form::scalar_decay, Form::shared_keys, Form::delta_rule};

/// How log decays are drawn.
enum class Decay { none, weak, strong, mixed };
constexpr Decay decays[] = {Decay::none, Decay::weak, Decay::strong, Decay::mixed};

struct Sizes {
  int64_t batch, length, heads, keys, values;
};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << "B " << s.batch << " T " << s.length << " H " << s.heads << " K " << s.keys << " V "
             << s.values << " ";
}

at::Tensor draw(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

/// Log decays a token: 0, around -0.1, down to -30, and channels of all kinds side by side.
at::Tensor log_decays(at::IntArrayRef shape, Decay decay) {
  switch (decay) {
    case Decay::none: return at::zeros(shape, at::kDouble);
    case Decay::weak: return -0.1 * at::rand(shape, at::kDouble);
    case Decay::strong: return -30 * at::rand(shape, at::kDouble);
    case Decay::mixed: break;
  }
  const at::Tensor strengths = at::rand({shape.back()}, at::kDouble).mul(9).sub(8).exp().mul(3.75);
  return -strengths * at::rand(shape, at::kDouble);
}

Inputs draw_inputs(const Sizes& s, Form form, Decay decay, bool with_state) {
  const int64_t key_heads = form == Form::shared_keys ? 1 : s.heads;
  Inputs in;
  in.q = draw({s.batch, s.length, key_heads, s.keys});
  in.k = draw({s.batch, s.length, key_heads, s.keys});
  in.v = draw({s.batch, s.length, s.heads, s.values});
  if (form == Form::delta_rule) in.k = in.k / in.k.norm(2, -1, true);
  std::vector<int64_t> decay_shape = {s.batch, s.length, s.heads};
  if (form == Form::channel_decay) {
    decay_shape.push_back(s.keys);
  } else {
    in.beta = at::rand(decay_shape, at::kDouble);
    if (form == Form::scalar_decay && s.heads % 2 == 0) in.beta = at::Tensor();
  }
  in.log_decay = log_decays(decay_shape, decay);
  if (with_state) in.state = draw({s.batch, s.heads, s.keys, s.values});
  return in;
}

std::vector<at::Tensor*> tensors_of(Inputs& in) {
  std::vector<at::Tensor*> list;
  for (at::Tensor* x : {&in.q, &in.k, &in.v, &in.log_decay, &in.beta, &in.state}) {
    if (x->defined()) list.push_back(x);
  }
  return list;
}

ops::LinearAttentionOptions options_of(const Sizes& s, Form form) {
  return {1 / std::sqrt(double(s.keys)), form == Form::delta_rule};
}

/// Output, state and the gradients of the inputs, in float64.
using Operation = decltype(&ops::linear_attention);
std::vector<at::Tensor> run(Operation operation,
                            Inputs in,
                            const ops::LinearAttentionOptions& options,
                            at::ScalarType type,
                            const ops::LinearAttention& upstream) {
  std::vector<at::Tensor> leaves;
  for (at::Tensor* x : tensors_of(in)) {
    leaves.push_back(x->to(type).detach().clone().requires_grad_(true));
    // A slice of a larger tensor, as a model gives it a part of a projection.
    *x = at::cat({leaves.back(), leaves.back().detach()}, 1).narrow(1, 0, x->size(1));
  }
  const ops::LinearAttention results = operation(in, options);
  REQUIRE(results.output.scalar_type() == type);
  at::Tensor sum = at::zeros({}, at::kDouble);
  if (upstream.output.defined()) sum = sum + (results.output * upstream.output).sum();
  if (upstream.state.defined()) sum = sum + (results.state * upstream.state).sum();
  if (sum.requires_grad()) sum.backward();  // that of nothing does not
  std::vector<at::Tensor> found = {results.output.detach(), results.state.detach()};
  for (const at::Tensor& leaf : leaves)
    found.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf.detach()));
  return found;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.numel() > 0 ? std::max(1.0, b.abs().max().item<double>()) : 1;
  return largest_difference(a, b) / scale;
}

void check(
    const Sizes& s, Form form, Decay decay, bool with_state, at::ScalarType type, double most) {
  INFO(s << "form " << int(form) << " decay " << int(decay) << " state " << with_state << " "
         << at::toString(type));
  Inputs in = draw_inputs(s, form, decay, with_state);
  // Numbers that both types have.
  for (at::Tensor* x : tensors_of(in)) *x = x->to(type).to(at::kDouble);
  const ops::LinearAttentionOptions options = options_of(s, form);
  const ops::LinearAttention upstream{draw(in.v.sizes()),
                                      with_state ? draw(in.state.sizes()) : at::Tensor()};
  const auto expected = run(ops::linear_attention_reference, in, options, at::kDouble, upstream);
  for (const Operation operation : {ops::linear_attention, ops::linear_attention_composed}) {
    const auto found = run(operation, in, options, type, upstream);
    // Without kernels sums of decays are of the type itself: strong ones cost float32 digits.
    const bool is_composed = operation == ops::linear_attention_composed;
    const double limit = is_composed && type == at::kFloat ? 20 * most : most;
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      INFO((is_composed ? "composed, result " : "result ") << i);
      REQUIRE(found[i].sizes() == expected[i].sizes());
      REQUIRE(relative_difference(found[i], expected[i]) <= limit);
    }
  }
}

TEST_CASE("linear attention agrees with its recurrence at any length", "[ops]") {
  at::manual_seed(31);
  for (const int64_t length : {0, 1, 2, 15, 64, 65, 150, 300}) {
    for (const Form form : forms) {
      for (const Decay decay : decays) {
        const Sizes s{2, length, 3, 5, 6};
        check(s, form, decay, length % 2 == 1, at::kDouble, 1e-11);
        check(s, form, decay, length % 2 == 1, at::kFloat, 5e-6);
      }
    }
  }
}

TEST_CASE("linear attention agrees with its recurrence at any width", "[ops]") {
  at::manual_seed(32);
  for (const Form form : forms) {
    for (const auto& [keys, values] :
         {std::pair<int64_t, int64_t>{1, 1}, {1, 70}, {16, 64}, {17, 129}, {64, 32}, {128, 256}}) {
      const Sizes s{1, 70, 2, keys, values};
      check(s, form, Decay::weak, true, at::kDouble, 1e-11);
      check(s, form, Decay::mixed, true, at::kFloat, 5e-6);
    }
    check({0, 70, 2, 4, 4}, form, Decay::weak, true, at::kFloat, 0);
    check({1, 70, 1, 4, 4}, form, Decay::weak, true, at::kDouble, 1e-11);
    check({3, 70, 20, 4, 4}, form, Decay::weak, true, at::kDouble, 1e-11);
  }
}

TEST_CASE("chunks with one reference and with sub-blocks are both tested", "[ops]") {
  at::manual_seed(33);
  const Sizes s{2, 150, 3, 5, 6};  // three chunks a head
  const auto beyond = [&](Decay decay) {
    const Inputs in = draw_inputs(s, Form::channel_decay, decay, false);
    return ops::chunks_beyond_one_reference(in.log_decay);
  };
  REQUIRE(beyond(Decay::none) == 0);
  REQUIRE(beyond(Decay::weak) == 0);
  REQUIRE(beyond(Decay::strong) == 18);
  // On either side of the border, where the factors are largest.
  for (const double decay : {-148.0, -152.0}) {
    Inputs in = draw_inputs({1, 64, 1, 2, 3}, Form::channel_decay, Decay::none, false);
    in.log_decay.select(3, 1).fill_(decay / 63);
    in.log_decay = in.log_decay.to(at::kFloat).to(at::kDouble);
    REQUIRE(ops::chunks_beyond_one_reference(in.log_decay) == (decay < -150 ? 1 : 0));
    const ops::LinearAttention upstream{draw(in.v.sizes()), {}};
    for (at::Tensor* x : tensors_of(in)) *x = x->to(at::kFloat).to(at::kDouble);
    const auto expected = run(ops::linear_attention_reference, in, {}, at::kDouble, upstream);
    const auto found = run(ops::linear_attention, in, {}, at::kFloat, upstream);
    for (size_t i = 0; i < found.size(); ++i)
      REQUIRE(relative_difference(found[i], expected[i]) <= 5e-6);
  }
}

TEST_CASE("linear attention goes on from a state, in pieces of any length", "[ops]") {
  at::manual_seed(34);
  const Sizes s{2, 100, 3, 5, 6};
  for (const Form form : forms) {
    INFO(int(form));
    const Inputs in = draw_inputs(s, form, Decay::weak, true);
    const ops::LinearAttention whole = ops::linear_attention(in, options_of(s, form));
    for (const std::vector<int64_t>& pieces :
         {std::vector<int64_t>{1, 99}, {64, 36}, {7, 17, 1, 1, 74}, {99, 1}}) {
      at::Tensor state = in.state;
      std::vector<at::Tensor> outputs;
      int64_t begin = 0;
      for (const int64_t length : pieces) {
        Inputs piece = in;
        piece.state = at::Tensor();
        for (at::Tensor* x : tensors_of(piece)) *x = x->narrow(1, begin, length);
        piece.state = state;
        const ops::LinearAttention part = ops::linear_attention(piece, options_of(s, form));
        outputs.push_back(part.output);
        state = part.state;
        begin += length;
      }
      REQUIRE(largest_difference(at::cat(outputs, 1), whole.output) <= 1e-12);
      REQUIRE(largest_difference(state, whole.state) <= 1e-12);
    }
  }
}

TEST_CASE("linear attention of bfloat16 is that of the same numbers in float32", "[ops]") {
  at::manual_seed(35);
  const Sizes s{1, 70, 2, 8, 8};
  for (const Form form : forms) {
    Inputs in = draw_inputs(s, form, Decay::weak, true), wide;
    for (at::Tensor* x : tensors_of(in)) *x = x->to(at::kBFloat16);
    wide = in;
    for (at::Tensor* x : tensors_of(wide)) *x = x->to(at::kFloat);
    const ops::LinearAttention narrow = ops::linear_attention(in, {});
    const ops::LinearAttention expected = ops::linear_attention(wide, {});
    REQUIRE(at::equal(narrow.output, expected.output.to(at::kBFloat16)));
    REQUIRE(at::equal(narrow.state, expected.state));
  }
}

TEST_CASE("linear attention gives the same bits at any number of threads", "[ops]") {
  at::manual_seed(36);
  for (const Form form : forms) {
    const Sizes s{2, 150, 6, 16, 32};
    const Inputs in = draw_inputs(s, form, Decay::mixed, true);
    const ops::LinearAttention upstream{draw(in.v.sizes()), draw(in.state.sizes())};
    const auto results = [&](int threads) {
      at::set_num_threads(threads);
      return run(ops::linear_attention, in, options_of(s, form), at::kFloat, upstream);
    };
    const auto one = results(1), two = results(2);
    for (size_t i = 0; i < one.size(); ++i) REQUIRE(at::equal(one[i], two[i]));
  }
}

TEST_CASE("linear attention names a wrong shape", "[ops]") {
  const Sizes s{2, 3, 4, 5, 6};
  const auto complaint = [&](Form form, const std::function<void(Inputs&)>& change) {
    Inputs in = draw_inputs(s, form, Decay::weak, true);
    change(in);
    try {
      ops::linear_attention(in, options_of(s, form));
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  REQUIRE(has(complaint(Form::delta_rule, [](Inputs& in) { in.k = in.k.narrow(1, 0, 2); }),
              "q and k must be [2, 3, 4 or 1, K]"));
  REQUIRE(has(complaint(Form::delta_rule, [](Inputs& in) { in.beta = at::Tensor(); }),
              "the delta rule needs beta"));
  REQUIRE(has(complaint(Form::channel_decay,
                        [](Inputs& in) {
                          in.beta = at::ones({2, 3, 4}, at::kDouble);
                        }),
              "goes with neither beta nor the delta rule"));
  REQUIRE(
      has(complaint(Form::scalar_decay, [](Inputs& in) { in.state = in.state.narrow(3, 0, 1); }),
          "the state must be [2, 4, 5, 6]"));
  REQUIRE(has(
      complaint(Form::shared_keys, [](Inputs& in) { in.log_decay = in.log_decay.unsqueeze(3); }),
      "log_decay must be [2, 3, 4, 5]"));
}

}  // namespace
}  // namespace forge::tests
