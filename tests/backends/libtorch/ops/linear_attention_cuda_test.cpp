// The CUDA kernels of linear attention, emulated on the CPU, against the recurrence in float64:
// output, final state and all gradients.

#include <iostream>

#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "tests/support/emulated_linear_attention.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests::emulated {
namespace {

using Call = EmulatedLinearAttention;
using Kind = Call::Kind;

enum class Decay { none, weak, strong, total, mixed, fresh };

struct Case {
  Kind kind;
  int64_t length;
  Decay decay;
  bool with_state;  ///< an initial state, and gradients of the final one
  int64_t keys = 32, values = 32, heads = 1, batch = 1;
  bool shared_keys = false, with_beta = true;
  int heads_of_block = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "kind " << int(c.kind) << " T " << c.length << " decay " << int(c.decay)
             << " state " << c.with_state << " K " << c.keys << " V " << c.values << " H "
             << c.heads << " B " << c.batch << " shared " << c.shared_keys << " beta "
             << c.with_beta << " heads of a block " << c.heads_of_block;
}

at::Tensor log_decays(at::IntArrayRef shape, Decay decay) {
  const at::Tensor uniform = at::rand(shape);
  switch (decay) {
    case Decay::none: return at::zeros(shape);
    case Decay::weak: return -0.1 * uniform;
    case Decay::strong: return -30 * uniform;
    case Decay::total: return at::full(shape, -1000.0);
    case Decay::fresh: {  // of a new model
      const at::Tensor logits = at::randn(shape);
      if (shape.size() == 4) return at::log_sigmoid(logits) / 16;
      const at::Tensor step = (at::rand({shape.back()}) * std::log(100.0) + std::log(1e-3)).exp();
      const at::Tensor rate = 1 + 15 * at::rand({shape.back()});
      return -rate * at::softplus(logits + step + at::log(-at::expm1(-step)));
    }
    case Decay::mixed: break;
  }
  return -uniform * at::rand({shape.back()}).mul(9).sub(8).exp().mul(3.75);
}

ops::LinearAttentionInputs draw_inputs(const Case& c) {
  const auto halves = [](at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16); };
  const int64_t key_heads = c.shared_keys ? 1 : c.heads;
  ops::LinearAttentionInputs in;
  in.q = halves({c.batch, c.length, key_heads, c.keys});
  in.k = halves({c.batch, c.length, key_heads, c.keys});
  in.v = halves({c.batch, c.length, c.heads, c.values});
  std::vector<int64_t> decays = {c.batch, c.length, c.heads};
  if (c.kind == Kind::channel_decay) {
    decays.push_back(c.keys);
  } else if (c.with_beta) {
    in.beta = at::rand(decays);
  }
  if (c.kind == Kind::delta_rule)
    in.k = (in.k / in.k.to(at::kFloat).norm(2, -1, true)).to(at::kBFloat16);
  in.log_decay = log_decays(decays, c.decay);
  if (c.with_state) in.state = at::randn({c.batch, c.heads, c.keys, c.values});
  return in;
}

/// Values as a new model's layers have them: behind short convolutions with SiLU, normalised for
/// the delta rule.
ops::LinearAttentionInputs draw_fresh_inputs(const Case& c) {
  ops::LinearAttentionInputs in = draw_inputs(c);
  const auto halves = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  if (c.kind == Kind::scalar_decay) {
    in.q = halves(at::randn(in.q.sizes()) * 0.5);
    in.k = halves(at::randn(in.k.sizes()) * 0.5);
    in.beta = -in.log_decay / (1 + 15 * at::rand({c.heads}));  // of rates from 1 to 16
    return in;
  }
  const auto active = [](const at::Tensor& like) { return at::silu(at::randn(like.sizes())); };
  const auto direction = [&](const at::Tensor& x) {
    return c.kind == Kind::delta_rule ? x / x.norm(2, -1, true) : x;
  };
  in.q = halves(direction(active(in.q)));
  in.k = halves(direction(active(in.k)));
  in.v = halves(active(in.v));
  return in;
}

struct Results {
  at::Tensor output, state;
  ops::LinearAttentionInputs grads;
};

using Operation = decltype(&ops::linear_attention);
using Conversion = at::Tensor (*)(const at::Tensor&);

at::Tensor in_float64(const at::Tensor& x) { return x.to(at::kDouble); }
at::Tensor on_test_device(const at::Tensor& x) { return x.to(test_device()); }

/// Results on the CPU, of inputs as `convert` gives them.
Results reference(const Case& c,
                  const ops::LinearAttentionInputs& in,
                  const ops::LinearAttention& upstream,
                  Operation operation = ops::linear_attention_reference,
                  Conversion convert = in_float64) {
  const auto leaf = [&](const at::Tensor& x) {
    return x.defined() ? convert(x).clone().requires_grad_(true) : x;
  };
  const ops::LinearAttentionInputs leaves{
      leaf(in.q), leaf(in.k), leaf(in.v), leaf(in.log_decay), leaf(in.beta), leaf(in.state)};
  const ops::LinearAttention found =
      operation(leaves, {1 / std::sqrt(double(c.keys)), c.kind == Kind::delta_rule});
  const auto wide = [](const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); };
  at::Tensor sum = (wide(found.output) * upstream.output).sum();
  if (upstream.state.defined()) sum = sum + (wide(found.state) * upstream.state).sum();
  sum.backward();
  const auto grad = [](const at::Tensor& x) { return x.defined() ? x.grad().cpu() : x; };
  return {found.output.detach().cpu(),
          found.state.detach().cpu(),
          {grad(leaves.q),
           grad(leaves.k),
           grad(leaves.v),
           grad(leaves.log_decay),
           grad(leaves.beta),
           grad(leaves.state)}};
}

template <class T>
T* pointer(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

Results emulated(const Case& c,
                 const ops::LinearAttentionInputs& in,
                 const ops::LinearAttention& upstream,
                 bool backwards = false) {
  const auto like = [](const at::Tensor& x) {
    return x.defined() ? at::full_like(x, std::nan("")) : x;
  };
  Results out{
      like(in.v),
      at::full({c.batch, c.heads, c.keys, c.values}, std::nan("")),
      {like(in.q), like(in.k), like(in.v), like(in.log_decay), like(in.beta), like(in.state)}};
  const int64_t groups = (c.heads + c.heads_of_block - 1) / c.heads_of_block;
  const at::Tensor of_groups = at::full({c.batch, c.length, groups, c.keys}, std::nan(""));
  const at::Tensor grad_q = of_groups.clone(), grad_k = of_groups.clone();
  const at::Tensor grad_output = upstream.output.to(at::kBFloat16).contiguous();
  const at::Tensor grad_state =
      upstream.state.defined() ? upstream.state.to(at::kFloat) : at::Tensor();
  Call call{};
  call.kind = c.kind;
  call.batch = c.batch;
  call.length = c.length;
  call.heads = c.heads;
  call.key_heads = in.q.size(2);
  call.keys = c.keys;
  call.values = c.values;
  call.scale = static_cast<float>(1 / std::sqrt(double(c.keys)));
  call.q = pointer<uint16_t>(in.q);
  call.k = pointer<uint16_t>(in.k);
  call.v = pointer<uint16_t>(in.v);
  call.log_decay = pointer<float>(in.log_decay);
  call.beta = pointer<float>(in.beta);
  call.state = pointer<float>(in.state);
  call.output = pointer<uint16_t>(out.output);
  call.final_state = pointer<float>(out.state);
  call.grad_output = pointer<uint16_t>(grad_output);
  call.grad_final_state = pointer<float>(grad_state);
  call.grad_q = pointer<float>(grad_q);
  call.grad_k = pointer<float>(grad_k);
  call.heads_of_block = c.heads_of_block;
  const bool rounds = c.shared_keys && groups == 1;
  call.rounded_grad_q = rounds ? pointer<uint16_t>(out.grads.q) : nullptr;
  call.rounded_grad_k = rounds ? pointer<uint16_t>(out.grads.k) : nullptr;
  call.grad_v = pointer<uint16_t>(out.grads.v);
  call.grad_log_decay = pointer<float>(out.grads.log_decay);
  call.grad_beta = pointer<float>(out.grads.beta);
  call.grad_state = pointer<float>(out.grads.state);
  call.backwards = backwards;
  run_emulated_forward(call);
  run_emulated_backward(call);
  if (!rounds) out.grads.q = c.shared_keys ? grad_q.sum(2, true) : grad_q;
  if (!rounds) out.grads.k = c.shared_keys ? grad_k.sum(2, true) : grad_k;
  return out;
}

std::vector<std::pair<const char*, at::Tensor>> list(const Results& r) {
  return {{"output", r.output},
          {"state", r.state},
          {"dq", r.grads.q},
          {"dk", r.grads.k},
          {"dv", r.grads.v},
          {"dlg", r.grads.log_decay},
          {"dbeta", r.grads.beta},
          {"dstate", r.grads.state}};
}

ops::LinearAttention draw_upstream(const Case& c, const ops::LinearAttentionInputs& in) {
  return {at::randn(in.v.sizes()).to(at::kBFloat16).to(at::kDouble),
          c.with_state ? at::randn({c.batch, c.heads, c.keys, c.values}).to(at::kDouble)
                       : at::Tensor()};
}

using Compute = Results (*)(const Case&,
                            const ops::LinearAttentionInputs&,
                            const ops::LinearAttention&);

Results on_emulation(const Case& c,
                     const ops::LinearAttentionInputs& in,
                     const ops::LinearAttention& upstream) {
  return emulated(c, in, upstream);
}
Results on_gpu(const Case& c,
               const ops::LinearAttentionInputs& in,
               const ops::LinearAttention& upstream) {
  return reference(c, in, upstream, ops::linear_attention, on_test_device);
}

void check(const Case& c, Compute compute = on_emulation) {
  INFO(c);
  const ops::LinearAttentionInputs in = draw_inputs(c);
  const ops::LinearAttention upstream = draw_upstream(c, in);
  const auto expected = list(reference(c, in, upstream)), found = list(compute(c, in, upstream));
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, right] = expected[i];
    if (!right.defined()) continue;
    const at::Tensor x = found[i].second.to(at::kDouble);
    const double most = std::string(name) == "dlg" ? 3e-2 : 1e-2;
    const double error = (x - right).norm().item<double>(), size = right.norm().item<double>();
    INFO(name << ": error " << error << " of " << size);
    // What total decay leaves of a gradient is no number to compare with.
    CHECK(error <= most * size + 1e-5 * std::sqrt(double(x.numel())));
  }
}

void check_lengths_and_decays(Kind kind, Compute compute = on_emulation) {
  for (const int64_t length : {1, 15, 64, 65, 150, 300}) {
    const Decay decay = length % 2 == 1 ? Decay::weak : Decay::mixed;
    check({kind, length, decay, length != 64}, compute);
  }
  for (const Decay decay : {Decay::none, Decay::strong, Decay::total})
    check({kind, 150, decay, true}, compute);
}

TEST_CASE("emulated CUDA kernels: a decay for each head", "[ops][cuda_emulation]") {
  at::manual_seed(41);
  check_lengths_and_decays(Kind::scalar_decay);
  check({Kind::scalar_decay, 100, Decay::weak, true, 64, 80, 2, 2, true});
  check({Kind::scalar_decay, 70, Decay::weak, true, 128, 16, 2, 1, true, false});
  // Blocks that add the gradients of several heads up.
  check({Kind::scalar_decay, 70, Decay::weak, true, 128, 64, 3, 2, true, true, 3});
  check({Kind::scalar_decay, 100, Decay::mixed, true, 32, 16, 5, 1, true, true, 2});
  check({Kind::scalar_decay, 70, Decay::mixed, true, 64, 144, 4, 1, true, true, 3});
  check({Kind::scalar_decay, 70, Decay::total, true, 32, 16, 3, 1, true, true, 3});
}

TEST_CASE("emulated CUDA kernels: the delta rule", "[ops][cuda_emulation]") {
  at::manual_seed(42);
  check_lengths_and_decays(Kind::delta_rule);
  check({Kind::delta_rule, 100, Decay::weak, true, 64, 80, 2, 2});
  check({Kind::delta_rule, 70, Decay::weak, true, 128, 16});
}

TEST_CASE("emulated CUDA kernels: a decay for each channel", "[ops][cuda_emulation]") {
  at::manual_seed(43);
  check_lengths_and_decays(Kind::channel_decay);
  check({Kind::channel_decay, 100, Decay::mixed, true, 64, 80, 2, 2});
  check({Kind::channel_decay, 70, Decay::weak, true, 128, 16});
}

TEST_CASE("emulated CUDA kernels do not depend on the order of threads", "[ops][cuda_emulation]") {
  at::manual_seed(44);
  for (const Kind kind : {Kind::scalar_decay, Kind::delta_rule, Kind::channel_decay}) {
    const bool shared = kind == Kind::scalar_decay;
    const Case c{kind, 80, Decay::weak, true, 32, 80, 3, 1, shared, true, shared ? 3 : 1};
    const ops::LinearAttentionInputs in = draw_inputs(c);
    const ops::LinearAttention upstream = draw_upstream(c, in);
    const auto one = list(emulated(c, in, upstream)), other = list(emulated(c, in, upstream, true));
    for (size_t i = 0; i < one.size(); ++i) {
      INFO(c << " " << one[i].first);
      if (one[i].second.defined()) CHECK(at::equal(one[i].second, other[i].second));
    }
  }
}

TEST_CASE("linear attention in chunks of plain Torch operations", "[ops]") {
  at::manual_seed(45);
  for (const Kind kind : {Kind::scalar_decay, Kind::delta_rule, Kind::channel_decay}) {
    for (const int64_t length : {1, 15, 64, 65, 150}) {
      for (const Decay decay : {Decay::none, Decay::weak, Decay::strong, Decay::mixed}) {
        const bool shared = kind == Kind::scalar_decay && length % 2 == 1;
        const Case c{kind,
                     length,
                     decay,
                     length != 64,
                     5,
                     6,
                     3,
                     2,
                     shared,
                     length != 15 || kind == Kind::delta_rule};
        const ops::LinearAttentionInputs in = draw_inputs(c);
        const ops::LinearAttention upstream = draw_upstream(c, in);
        const auto expected = list(reference(c, in, upstream));
        const auto found = list(reference(c, in, upstream, ops::linear_attention_composed));
        for (size_t i = 0; i < expected.size(); ++i) {
          INFO(c << " " << expected[i].first);
          const at::Tensor &right = expected[i].second, &x = found[i].second;
          if (right.defined())
            CHECK((x - right).norm().item<double>() <= 1e-11 * (1 + right.norm().item<double>()));
        }
      }
    }
  }
}

TEST_CASE("linear attention of bfloat16 on a GPU", "[ops]") {
  at::manual_seed(46);
  if (!test_device().is_cuda()) {
    SUCCEED("FORGE_TEST_DEVICE names no GPU");
    return;
  }
  for (const Kind kind : {Kind::scalar_decay, Kind::delta_rule, Kind::channel_decay}) {
    check_lengths_and_decays(kind, on_gpu);
    for (const int64_t keys : {32, 64, 128}) {
      check({kind, 300, Decay::weak, true, keys, 256, 3, 2}, on_gpu);
      check({kind, 200, Decay::mixed, false, keys, 80, 2, 2}, on_gpu);
    }
    check({kind, 70, Decay::weak, true, 24, 40, 2}, on_gpu);  // no kernels: in plain Torch
  }
  check({Kind::scalar_decay, 300, Decay::weak, true, 128, 256, 4, 2, true}, on_gpu);
  // Many rows: blocks add the gradients of several heads up, and of all.
  check({Kind::scalar_decay, 70, Decay::weak, true, 64, 64, 6, 200, true}, on_gpu);
  check({Kind::scalar_decay, 70, Decay::weak, true, 64, 64, 3, 600, true}, on_gpu);
}

double relative_norm(const at::Tensor& x, const at::Tensor& to) {
  return (x.norm() / to.norm()).item<double>();
}

constexpr std::pair<const char*, Kind> kinds[] = {
    {"gla5", Kind::channel_decay}, {"gdn2", Kind::delta_rule}, {"mamba2", Kind::scalar_decay}};

/// Of the layer's output: Mamba2 adds what skips the state (D = 1).
double error_of_output(const Case& c,
                       const ops::LinearAttentionInputs& in,
                       const at::Tensor& found,
                       const at::Tensor& right) {
  if (c.kind != Kind::scalar_decay) return relative_norm(found.to(at::kDouble) - right, right);
  const at::Tensor skip = in.v.to(at::kDouble);
  const at::Tensor sum = (found.to(at::kDouble) + skip).to(at::kBFloat16).to(at::kDouble);
  return relative_norm(sum - right - skip, right + skip);
}

TEST_CASE("outputs of a new model's layers are little worse than their rounding to bfloat16",
          "[ops][cuda_emulation]") {
  at::manual_seed(48);
  const double bounds[] = {1.9e-3, 3.2e-3, 2.0e-3};  // rounding alone: 1.65e-3
  for (size_t i = 0; i < std::size(kinds); ++i) {
    const Kind kind = kinds[i].second;
    const Case c{kind, 256, Decay::fresh, false, 128, 64, 1, 1, kind == Kind::scalar_decay};
    const ops::LinearAttentionInputs in = draw_fresh_inputs(c);
    const ops::LinearAttention upstream = draw_upstream(c, in);
    const at::Tensor right = reference(c, in, upstream).output;
    INFO(kinds[i].first);
    CHECK(error_of_output(c, in, emulated(c, in, upstream).output, right) <= bounds[i]);
  }
}

/// Prints how far results are from the recurrence in float64, relative to their norms, at the
/// shapes of the shipped models.
TEST_CASE("errors of linear attention of bfloat16 on a GPU", "[ops]") {
  at::manual_seed(47);
  if (!test_device().is_cuda()) {
    SUCCEED("FORGE_TEST_DEVICE names no GPU");
    return;
  }
  for (const auto& [name, kind] : kinds) {
    for (const auto& [length, keys, values] :
         {std::array<int64_t, 3>{512, 64, 128}, std::array<int64_t, 3>{1024, 128, 256}}) {
      const bool is_shared = kind == Kind::scalar_decay;
      const Case c{kind, length, Decay::fresh, false, keys, values, 2, 1, is_shared};
      const ops::LinearAttentionInputs in = draw_fresh_inputs(c);
      const ops::LinearAttention upstream = draw_upstream(c, in);
      const auto expected = list(reference(c, in, upstream)), found = list(on_gpu(c, in, upstream));
      std::cout << "error of linear_attention." << name << " T " << length << " K " << keys << " V "
                << values << ": layer "
                << error_of_output(c, in, found[0].second, expected[0].second);
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto& [result, right] = expected[i];
        if (!right.defined()) continue;
        INFO(name << " T " << length << " " << result);
        const double error = relative_norm(found[i].second.to(at::kDouble) - right, right);
        std::cout << " " << result << " " << error;
        CHECK(error <= (std::string(result) == "dlg" ? 3e-2 : 1e-2));
      }
      std::cout << "\n";
    }
  }
}

TEST_CASE("the GPU's kernels take bfloat16 on a GPU alone", "[ops]") {
  const ops::LinearAttentionInputs in = draw_inputs({Kind::scalar_decay, 3, Decay::weak, true});
  CHECK_FALSE(ops::cuda_linear_attention_supports(in));
}

}  // namespace
}  // namespace forge::tests::emulated
