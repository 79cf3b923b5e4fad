// The CUDA kernels around linear attention, emulated on the CPU, against the references in float64:
// results, gradients and sums over tokens. What the kernels must not read is not a number.

#include <functional>
#include <numeric>

#include "backends/libtorch/ops/gated_norm/gated_norm.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"
#include "backends/libtorch/ops/short_conv/short_conv.h"
#include "tests/support/emulated_mixer.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;

at::ScalarType type_of(bool narrow) { return narrow ? at::kBFloat16 : at::kFloat; }

at::Tensor draw(at::IntArrayRef shape, at::ScalarType type, double scale = 1) {
  return (at::randn(shape) * scale).to(type);
}

/// Memory that nothing has written: not a number.
at::Tensor unwritten(at::IntArrayRef shape, at::ScalarType type) {
  return at::full(shape, std::nan(""), at::TensorOptions(type));
}

/// x as a part of rows that are `stride` numbers apart, with nothing between them.
at::Tensor in_wider_rows(const at::Tensor& x, int64_t stride) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = stride;
  at::Tensor part = unwritten(shape, x.scalar_type()).narrow(-1, 0, x.size(-1));
  part.copy_(x);
  return part;
}

/// The results and gradients of a reference in float64; undefined tensors stay so.
struct Expected {
  Tensors results, gradients;
};
Expected expected(const std::function<Tensors(const Tensors&)>& reference,
                  const Tensors& inputs,
                  const Tensors& upstream) {
  Tensors leaves;
  for (const at::Tensor& x : inputs)
    leaves.push_back(x.defined() ? x.to(at::kDouble).clone().requires_grad_(true) : x);
  Expected out;
  at::Tensor sum = at::zeros({}, at::kDouble);
  const Tensors results = reference(leaves);
  for (size_t i = 0; i < results.size(); ++i) {
    sum = sum + (results[i] * upstream[i].to(at::kDouble)).sum();
    out.results.push_back(results[i].detach());
  }
  sum.backward();
  for (const at::Tensor& x : leaves) {
    if (!x.defined()) {
      out.gradients.push_back(x);
      continue;
    }
    out.gradients.push_back(x.grad().defined() ? x.grad() : at::zeros_like(x.detach()));
  }
  return out;
}

/// By the norm of the difference; what bfloat16 rounds is rounded once.
void check_close(const char* name, bool narrow, const at::Tensor& found, const at::Tensor& right) {
  const double error = (found.to(at::kDouble) - right).norm().item<double>();
  const double size = right.norm().item<double>();
  INFO(name << ": error " << error << " of " << size);
  CHECK(error <= (narrow ? 3e-3 : 1e-6) * size + 1e-7 * std::sqrt(double(right.numel())));
}

at::Tensor tensor_of_sums(std::vector<float>& sums, int64_t first, int64_t count) {
  return at::from_blob(sums.data() + first, {count}).clone();
}

/// A short_conv call with everything that it reads and writes.
struct ConvCase {
  std::vector<ops::ProjectionPart> parts;
  int64_t length;
  int64_t beyond = 0;  ///< numbers between rows of x
  int taps = 4;
  bool with_bias = true, silu = true, narrow = true;
  int64_t batch = 2, resident = 3;
  int64_t ignored = 0;  ///< channels behind the parts, with gradients of zero
};

std::ostream& operator<<(std::ostream& out, const ConvCase& c) {
  for (const auto& part : c.parts)
    out << part.channels << (part.is_mixed ? "m" : "") << "/" << part.head_width << " ";
  return out << "T " << c.length << " beyond " << c.beyond << " taps " << c.taps << " bias "
             << c.with_bias << " silu " << c.silu << " narrow " << c.narrow << " resident "
             << c.resident << " ignored " << c.ignored;
}

struct ConvRun {
  at::Tensor x, weight, bias;
  Tensors results, upstream;
  at::Tensor grad_x;
  std::vector<float> sums;

  explicit ConvRun(const ConvCase& c, bool backwards = false) {
    const at::ScalarType type = type_of(c.narrow);
    int64_t width = 0, mixed = 0;
    for (const auto& part : c.parts) {
      width += part.channels;
      mixed += part.is_mixed ? part.channels : 0;
    }
    width += c.ignored;
    x = in_wider_rows(draw({c.batch, c.length, width}, type), width + c.beyond);
    if (c.taps > 0) weight = draw({mixed, 1, c.taps}, at::kFloat);
    if (c.with_bias) bias = draw({mixed}, at::kFloat);
    EmulatedShortConv call{};
    call.narrow = c.narrow;
    call.backwards = backwards;
    call.resident = c.resident;
    call.batch = c.batch;
    call.length = c.length;
    call.stride = width + c.beyond;
    call.taps = c.taps;
    call.silu = c.silu;
    call.length_eps = 0.01f;
    call.x = x.data_ptr();
    call.weights = c.taps > 0 ? weight.data_ptr<float>() : nullptr;
    call.bias = c.with_bias ? bias.data_ptr<float>() : nullptr;
    for (const auto& part : c.parts) {
      results.push_back(unwritten({c.batch, c.length, part.channels}, type));
      upstream.push_back(draw({c.batch, c.length, part.channels}, type));
      call.parts.push_back(
          {part.channels, part.is_mixed, part.head_width, results.back().data_ptr()});
    }
    REQUIRE((emulated_short_conv_fits(call, 4) || emulated_short_conv_fits(call, 8)));
    run_emulated_forward(call);
    const int64_t grad_stride = (width + 7) / 8 * 8;
    grad_x = unwritten({c.batch, c.length, grad_stride}, type);
    call.grad_stride = grad_stride;
    call.grad_x = grad_x.data_ptr();
    for (size_t i = 0; i < c.parts.size(); ++i) call.parts[i].data = upstream[i].data_ptr();
    if (c.ignored > 0) call.parts.push_back({c.ignored, false, 0, nullptr});
    sums = run_emulated_backward(call);
  }
};

void check(const ConvCase& c) {
  INFO(c);
  ConvRun run(c);
  const Expected right = expected(
      [&](const Tensors& in) {
        return ops::short_conv_reference(in[0], {in[1], in[2], c.silu, 0.01f}, c.parts);
      },
      {run.x, run.weight, run.bias},
      run.upstream);
  for (size_t i = 0; i < c.parts.size(); ++i) {
    if (c.parts[i].is_mixed) check_close("y", c.narrow, run.results[i], right.results[i]);
  }
  const int64_t width = run.x.size(2);
  check_close("dx", c.narrow, run.grad_x.narrow(2, 0, width), right.gradients[0]);
  // Nothing is written behind a token.
  CHECK(run.grad_x.narrow(2, width, run.grad_x.size(2) - width).isnan().all().item<bool>());
  const int64_t taps = run.weight.defined() ? run.weight.numel() : 0;
  if (taps > 0) {
    const at::Tensor of_weight = tensor_of_sums(run.sums, 0, taps);
    check_close("dw", false, of_weight, right.gradients[1].flatten());
  }
  if (c.with_bias) {
    const at::Tensor of_bias = tensor_of_sums(run.sums, taps, run.bias.numel());
    check_close("dbias", false, of_bias, right.gradients[2]);
  }
}

const std::vector<ops::ProjectionPart> of_gdn2 = {
    {64, true, 32}, {64, true, 32}, {128, true}, {16}, {4}, {4}};
const std::vector<ops::ProjectionPart> of_mamba2 = {{48}, {40, true}, {16, true}, {16, true}, {4}};

TEST_CASE("emulated CUDA kernels: short_conv", "[ops][cuda_emulation]") {
  at::manual_seed(51);
  for (const bool narrow : {true, false}) {
    for (const int64_t length : {1, 2, 3, 5, 33, 70}) {
      check({of_gdn2, length, 0, 4, false, true, narrow});
      check({of_mamba2, length, 0, 4, true, true, narrow});
    }
    check({of_gdn2, 37, 24, 4, true, false, narrow});   // in wider rows
    check({of_mamba2, 37, 20, 4, true, true, narrow});  // rows at multiples of 8 bytes
    check({of_gdn2, 37, 0, 0, false, true, narrow});    // the activation alone
    check({of_gdn2, 6, 0, 0, false, false, narrow});    // heads' lengths alone
    check({of_gdn2, 300, 0, 4, false, true, narrow, 3, 1});
    check({of_mamba2, 37, 0, 4, true, true, narrow, 2, 3, 4});
    check({of_gdn2, 37, 0, 4, true, true, narrow, 2, 3, 8});
    check({{{32}, {32, true}}, 9, 0, 4, true, true, narrow, 2, 3, 32});
    check({{{4, true}}, 9, 0, 4, true, true, narrow});
    // Heads that fill no power of two of lanes, and that need vectors of 8 channels.
    check({{{96, true, 48}, {24, true, 24}, {8, true}}, 21, 0, 4, true, true, narrow});
    check({{{384, true, 192}, {256, true, 256}, {40, true}, {3}}, 21, 5, 4, true, true, narrow});
    check({{{8}, {300, true}, {12, true, 12}}, 21, 0, 4, true, true, narrow});
  }
}

TEST_CASE("emulated CUDA kernels: which projections short_conv takes", "[ops][cuda_emulation]") {
  const auto fits =
      [](const std::vector<ops::ProjectionPart>& parts, int taps, int64_t beyond, int width) {
        int64_t channels = beyond;
        for (const auto& part : parts) channels += part.channels;
        const at::Tensor x = at::zeros({2, 3, channels}, at::kBFloat16);
        EmulatedShortConv call{};
        call.batch = 2;
        call.length = 3;
        call.stride = channels;
        call.taps = taps;
        call.x = x.data_ptr();
        for (const auto& part : parts)
          call.parts.push_back({part.channels, part.is_mixed, part.head_width, nullptr});
        return emulated_short_conv_fits(call, width);
      };
  CHECK(fits(of_gdn2, 4, 0, 8));
  CHECK(fits(of_gdn2, 0, 0, 8));
  CHECK_FALSE(fits(of_gdn2, 3, 0, 8));
  CHECK_FALSE(fits(of_gdn2, 4, 4, 8));  // rows that are not multiples of 16 bytes apart
  CHECK(fits(of_gdn2, 4, 4, 4));
  CHECK_FALSE(fits(of_gdn2, 4, 2, 4));
  CHECK(fits({{256, true, 256}}, 4, 0, 8));
  CHECK_FALSE(fits({{256, true, 256}}, 4, 0, 4));  // a head wider than a warp
  CHECK_FALSE(fits({{4}, {8, true}}, 4, 4, 8));
  CHECK_FALSE(fits({{6, true}}, 4, 2, 4));
}

struct NormCase {
  int64_t tokens, channels, width, heads;  ///< heads 0: no skip
  int64_t beyond = 0;
  bool with_bias = true, gate_first = false, narrow = true;
  int64_t resident = 3;
};

std::ostream& operator<<(std::ostream& out, const NormCase& c) {
  return out << "N " << c.tokens << " C " << c.channels << " D " << c.width << " H " << c.heads
             << " beyond " << c.beyond << " bias " << c.with_bias << " first " << c.gate_first
             << " narrow " << c.narrow;
}

struct NormRun {
  at::Tensor o, gate, weight, bias, skip, factor, upstream;
  at::Tensor y, y_again, grad_o, grad_gate, grad_skip;
  std::vector<float> sums;

  explicit NormRun(const NormCase& c, bool backwards = false) {
    const at::ScalarType type = type_of(c.narrow);
    const std::vector<int64_t> shape = {c.tokens, c.channels};
    o = draw(shape, type);
    gate = in_wider_rows(draw(shape, type), c.channels + c.beyond);
    weight = draw({c.width}, at::kFloat);
    if (c.with_bias) bias = draw({c.channels}, at::kFloat);
    if (c.heads > 0) {
      skip = draw(shape, type);
      factor = draw({c.heads}, at::kFloat);
    }
    upstream = draw(shape, type);
    y = unwritten(shape, type);
    y_again = y.clone();
    grad_o = y.clone();
    grad_gate = in_wider_rows(y, c.channels + c.beyond);
    grad_skip = y.clone();
    const auto of = [](const at::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; };
    const auto floats = [](const at::Tensor& x) {
      return x.defined() ? x.data_ptr<float>() : nullptr;
    };
    EmulatedGatedNorm call{};
    call.narrow = c.narrow;
    call.backwards = backwards;
    call.resident = c.resident;
    call.tokens = c.tokens;
    call.channels = c.channels;
    call.width = c.width;
    call.head_width = c.heads > 0 ? c.channels / c.heads : c.channels;
    call.gate_stride = call.grad_gate_stride = c.channels + c.beyond;
    call.gate_first = c.gate_first;
    call.eps = 1e-5f;
    call.o = of(o);
    call.gate = of(gate);
    call.skip = of(skip);
    call.weight = floats(weight);
    call.bias = floats(bias);
    call.factor = floats(factor);
    call.y = of(y);
    run_emulated_forward(call);
    call.y = of(y_again);
    call.grad_y = of(upstream);
    call.grad_o = of(grad_o);
    call.grad_gate = of(grad_gate);
    call.grad_skip = c.heads > 0 ? of(grad_skip) : nullptr;
    sums = run_emulated_backward(call);
  }
};

void check(const NormCase& c) {
  INFO(c);
  NormRun run(c);
  const Expected right = expected(
      [&](const Tensors& in) -> Tensors {
        const ops::HeadSkip skip = c.heads > 0 ? ops::HeadSkip{in[4], in[5]} : ops::HeadSkip();
        return {ops::gated_norm_reference(in[0], in[1], {in[2], in[3], 1e-5f, c.gate_first}, skip)};
      },
      {run.o, run.gate, run.weight, run.bias, run.skip, run.factor},
      {run.upstream});
  check_close("y", c.narrow, run.y, right.results[0]);
  CHECK(at::equal(run.y, run.y_again));
  check_close("do", c.narrow, run.grad_o, right.gradients[0]);
  check_close("dgate", c.narrow, run.grad_gate, right.gradients[1]);
  int64_t first = 0;
  const auto check_sums = [&](const char* name, const at::Tensor& exact) {
    if (!exact.defined()) return;
    const at::Tensor found = tensor_of_sums(run.sums, first, exact.numel());
    check_close(name, false, found, exact);
    first += exact.numel();
  };
  check_sums("dweight", right.gradients[2]);
  check_sums("dbias", right.gradients[3]);
  if (c.heads == 0) return;
  check_close("dskip", c.narrow, run.grad_skip, right.gradients[4]);
  check_sums("dfactor", right.gradients[5]);
}

TEST_CASE("emulated CUDA kernels: gated_norm", "[ops][cuda_emulation]") {
  at::manual_seed(52);
  for (const bool narrow : {true, false}) {
    for (const int64_t tokens : {1, 2, 7, 40}) {
      check({tokens, 512, 128, 0, 0, true, false, narrow});   // teams of half a warp
      check({tokens, 512, 512, 4, 36, false, true, narrow});  // teams of two warps, rows anywhere
      check({tokens, 768, 256, 0, 0, false, false, narrow});  // a warp
    }
    check({9, 144, 48, 9, 8, true, true, narrow});       // teams with threads that have no channels
    check({9, 1152, 384, 0, 0, true, false, narrow});    // the same of warps
    check({5, 4096, 4096, 32, 0, false, true, narrow});  // all threads of a block
    check({5, 2304, 256, 0, 0, true, false, narrow});
    check({3, 8, 8, 1, 3, true, true, narrow});
    check({70, 16, 8, 2, 0, true, false, narrow, 1});
  }
}

struct DecayRun {
  at::Tensor x, bias, upstream, y, grad_x;
  std::vector<float> sums;

  DecayRun(int64_t tokens, int64_t channels, bool narrow, double scale, bool backwards = false) {
    x = draw({tokens, channels}, type_of(narrow), scale);
    bias = draw({channels}, at::kFloat);
    upstream = draw({tokens, channels}, at::kFloat);
    y = unwritten({tokens, channels}, at::kFloat);
    grad_x = unwritten({tokens, channels}, type_of(narrow));
    EmulatedLogDecay call{};
    call.narrow = narrow;
    call.backwards = backwards;
    call.tokens = tokens;
    call.channels = channels;
    call.normalizer = 16;
    call.x = x.data_ptr();
    call.bias = bias.data_ptr<float>();
    call.log_decay = y.data_ptr<float>();
    call.grad_log_decay = upstream.data_ptr<float>();
    call.grad_x = grad_x.data_ptr();
    run_emulated_forward(call);
    sums = run_emulated_backward(call);
  }
};

TEST_CASE("emulated CUDA kernels: log_decay", "[ops][cuda_emulation]") {
  at::manual_seed(53);
  for (const bool narrow : {true, false}) {
    for (const auto& [tokens, channels] :
         {std::pair<int64_t, int64_t>{1, 8}, {50, 256}, {50, 24}, {9, 2064}, {700, 16}}) {
      for (const double scale : {1.0, 30.0}) {
        INFO("N " << tokens << " C " << channels << " scale " << scale << " narrow " << narrow);
        DecayRun run(tokens, channels, narrow, scale);
        const Expected right = expected(
            [](const Tensors& in) -> Tensors {
              return {ops::log_decay_reference(in[0], in[1], 16)};
            },
            {run.x, run.bias},
            {run.upstream});
        check_close("y", false, run.y, right.results[0]);
        check_close("dx", narrow, run.grad_x, right.gradients[0]);
        check_close("dbias", false, tensor_of_sums(run.sums, 0, channels), right.gradients[1]);
      }
    }
  }
}

struct GatesRun {
  at::Tensor step, write, a_log, bias, log_decay, beta;
  Tensors upstream;
  at::Tensor grad_step, grad_write;
  std::vector<float> sums;

  GatesRun(int64_t tokens, int64_t heads, bool with_write, bool narrow, bool backwards = false) {
    const at::ScalarType type = type_of(narrow);
    const std::vector<int64_t> shape = {tokens, heads};
    step = in_wider_rows(draw(shape, type, 4), heads + 5);
    if (with_write) write = in_wider_rows(draw(shape, type, 4), heads + 3);
    a_log = draw({heads}, at::kFloat);
    bias = draw({heads}, at::kFloat);
    log_decay = unwritten(shape, at::kFloat);
    beta = log_decay.clone();
    upstream = {draw(shape, at::kFloat), draw(shape, at::kFloat)};
    grad_step = unwritten(shape, type);
    grad_write = grad_step.clone();
    EmulatedHeadGates call{};
    call.narrow = narrow;
    call.backwards = backwards;
    call.tokens = tokens;
    call.heads = heads;
    call.step_stride = heads + 5;
    call.write_stride = heads + 3;
    call.step = step.data_ptr();
    call.write = with_write ? write.data_ptr() : nullptr;
    call.a_log = a_log.data_ptr<float>();
    call.step_bias = bias.data_ptr<float>();
    call.log_decay = log_decay.data_ptr<float>();
    call.beta = beta.data_ptr<float>();
    call.grad_log_decay = upstream[0].data_ptr<float>();
    call.grad_beta = upstream[1].data_ptr<float>();
    call.grad_step = grad_step.data_ptr();
    call.grad_write = with_write ? grad_write.data_ptr() : nullptr;
    run_emulated_forward(call);
    sums = run_emulated_backward(call);
  }
};

TEST_CASE("emulated CUDA kernels: head_gates", "[ops][cuda_emulation]") {
  at::manual_seed(54);
  for (const bool narrow : {true, false}) {
    for (const bool with_write : {false, true}) {
      for (const auto& [tokens, heads] :
           {std::pair<int64_t, int64_t>{1, 1}, {300, 4}, {900, 6}, {9, 256}, {33, 100}}) {
        INFO("N " << tokens << " H " << heads << " write " << with_write << " narrow " << narrow);
        GatesRun run(tokens, heads, with_write, narrow);
        const Expected right = expected(
            [&](const Tensors& in) -> Tensors {
              const ops::HeadGates gates = ops::head_gates_reference({in[0], in[1], in[2], in[3]});
              return {gates.log_decay, gates.beta};
            },
            {run.step, run.write, run.a_log, run.bias},
            run.upstream);
        check_close("log decay", false, run.log_decay, right.results[0]);
        check_close("beta", false, run.beta, right.results[1]);
        check_close("dstep", narrow, run.grad_step, right.gradients[0]);
        if (with_write) check_close("dwrite", narrow, run.grad_write, right.gradients[1]);
        check_close("da", false, tensor_of_sums(run.sums, 0, heads), right.gradients[2]);
        check_close("dbias", false, tensor_of_sums(run.sums, heads, heads), right.gradients[3]);
      }
    }
  }
}

TEST_CASE("emulated CUDA kernels of mixers do not depend on the order of threads",
          "[ops][cuda_emulation]") {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return at::equal(a.nan_to_num(7), b.nan_to_num(7));  // what lies between rows stays unwritten
  };
  const auto twice = [](const auto& make) {
    at::manual_seed(55);
    const auto forwards = make(false);
    at::manual_seed(55);
    const auto backwards = make(true);
    CHECK(forwards.sums == backwards.sums);
    return std::pair(forwards, backwards);
  };
  const auto [conv, conv_again] = twice([](bool backwards) {
    return ConvRun({of_gdn2, 70}, backwards);
  });
  CHECK(same(conv.grad_x, conv_again.grad_x));
  for (size_t i = 0; i < conv.results.size(); ++i)
    CHECK(same(conv.results[i], conv_again.results[i]));
  const auto [norm, norm_again] = twice([](bool backwards) {
    return NormRun({40, 512, 512, 4, 36}, backwards);
  });
  CHECK(same(norm.y, norm_again.y));
  CHECK(same(norm.grad_o, norm_again.grad_o));
  CHECK(same(norm.grad_gate, norm_again.grad_gate));
  const auto [decay, decay_again] =
      twice([](bool backwards) { return DecayRun(50, 256, true, 1, backwards); });
  CHECK(same(decay.grad_x, decay_again.grad_x));
  const auto [gates, gates_again] =
      twice([](bool backwards) { return GatesRun(300, 4, true, true, backwards); });
  CHECK(same(gates.grad_step, gates_again.grad_step));
}

}  // namespace
}  // namespace forge::tests
