#include "backends/libtorch/worker/bench.h"

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/gated_norm/gated_norm.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/lion/lion.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"
#include "backends/libtorch/ops/muon/muon.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/short_conv/short_conv.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "backends/libtorch/ops/weight_update/weight_update.h"

namespace forge::libtorch {
namespace {

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<at::Tensor(const Tensors&)>;
using Sizes = OperationSizes;
using Options = at::TensorOptions;

constexpr int64_t kernel = 4;

/// One forward and backward pass.
std::function<void()> both_passes(const Operation& operation, Tensors inputs) {
  const at::Tensor gradient = at::ones_like(operation(inputs).detach());
  return [=]() mutable {
    for (at::Tensor& input : inputs) input.mutable_grad() = at::Tensor();
    operation(inputs).backward(gradient);
  };
}

OperationCase differentiated(
    const Operation& fused, const Operation& baseline, Tensors inputs, double flops, double bytes) {
  for (at::Tensor& input : inputs) input.requires_grad_(true);
  return {both_passes(fused, inputs), both_passes(baseline, inputs), flops, bytes};
}

/// In which norms and taps are kept: float32 beside bfloat16.
Options small(const Options& options) {
  return options.dtype() == at::kBFloat16 ? options.dtype(at::kFloat) : options;
}

at::Tensor normal(at::IntArrayRef shape, const Options& options) {
  return at::randn(shape, options) * 0.3;
}
at::Tensor stream(const Sizes& s, int64_t channels, const Options& options) {
  return normal({s.batch, s.length, channels}, options);
}
at::Tensor taps(int64_t channels, const Options& options) {
  return at::rand({channels, 1, kernel}, small(options)) - 0.5;
}

/// Of a product forward and its two backward.
double product_flops(const Sizes& s, int64_t in, int64_t out) {
  return 3.0 * 2 * static_cast<double>(s.tokens()) * static_cast<double>(in * out);
}

/// Bytes of `numbers` numbers for each token.
double pass_bytes(const Sizes& s, int64_t numbers, const Options& options) {
  return static_cast<double>(s.tokens() * numbers) *
         static_cast<double>(options.dtype().itemsize());
}

at::Tensor grouped_conv1d(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y =
      at::conv1d(x.transpose(1, 2), w.to(x.scalar_type()), {}, 1, kernel - 1, 1, x.size(2));
  return x + y.narrow(2, 0, x.size(1)).transpose(1, 2);
}

OperationCase canon(const Sizes& s, int64_t channels, const Options& o) {
  OperationCase result =
      differentiated([](const Tensors& in) { return ops::canon_conv(in[0], in[1], {}); },
                     [](const Tensors& in) { return grouped_conv1d(in[0], in[1]); },
                     {stream(s, channels, o), taps(channels, o)},
                     0,
                     pass_bytes(s, 5 * channels, o));
  result.baseline_name = "at::conv1d, grouped";
  return result;
}

OperationCase linear(const Sizes& s, const Options& o) {
  return differentiated([](const Tensors& in) { return ops::linear(in[0], in[1]); },
                        [](const Tensors& in) { return at::linear(in[0], in[1]); },
                        {stream(s, s.hidden, o), normal({2 * s.intermediate, s.hidden}, o)},
                        product_flops(s, s.hidden, 2 * s.intermediate),
                        0);
}

OperationCase rms_norm(const Sizes& s, const Options& o) {
  return differentiated([](const Tensors& in) { return ops::rms_norm(in[0], in[1], {}); },
                        [](const Tensors& in) { return ops::rms_norm_reference(in[0], in[1], {}); },
                        {stream(s, s.hidden, o), normal({s.hidden}, small(o))},
                        0,
                        pass_bytes(s, 5 * s.hidden, o));
}

OperationCase swiglu(const Sizes& s, const Options& o) {
  return differentiated([](const Tensors& in) { return ops::swiglu(in[0]); },
                        [](const Tensors& in) { return ops::swiglu_reference(in[0]); },
                        {stream(s, 2 * s.intermediate, o)},
                        0,
                        pass_bytes(s, 8 * s.intermediate, o));
}

OperationCase linear_cross_entropy(const Sizes& s, const Options& o) {
  const at::Tensor targets =
      at::randint(0, s.vocabulary, {s.tokens()}, Options(o.device()).dtype(at::kInt));
  return differentiated(
      [=](const Tensors& in) { return ops::linear_cross_entropy(in[0], in[1], targets); },
      [=](const Tensors& in) { return ops::linear_cross_entropy_reference(in[0], in[1], targets); },
      {normal({s.tokens(), s.hidden}, o), normal({s.vocabulary, s.hidden}, o)},
      product_flops(s, s.hidden, s.vocabulary),
      0);
}

/// A joint operation's Canon layer: the last of the inputs, or none.
ops::CanonLayer layer_of(bool with_canon, const Tensors& in) {
  return with_canon ? ops::CanonLayer{in.back(), {}, {}} : ops::CanonLayer{};
}

template <bool canon>
OperationCase norm_linear(const Sizes& s, const Options& o) {
  const auto call = [](const auto& operation) {
    return [&operation](const Tensors& in) {
      return operation(in[0], in[1], {}, layer_of(canon, in), in[2]).projection;
    };
  };
  return differentiated(call(ops::norm_linear),
                        call(ops::norm_linear_reference),
                        {stream(s, s.hidden, o),
                         normal({s.hidden}, small(o)),
                         normal({2 * s.intermediate, s.hidden}, o),
                         taps(s.hidden, o)},
                        product_flops(s, s.hidden, 2 * s.intermediate),
                        0);
}

template <bool canon>
OperationCase self_attention(const Sizes& s, const Options& o) {
  const ops::HeadLayout layout{s.heads, s.kv_heads, s.head_dim};
  const ops::RotaryTable table = ops::rotary_table(s.length, s.head_dim, 1e4, false, small(o));
  // Two products forward and five backward, of the lower triangle.
  const double flops = 7.0 * 2 * static_cast<double>(s.tokens()) *
                       (static_cast<double>(s.length) / 2) *
                       static_cast<double>(s.heads * s.head_dim);
  return differentiated(
      [=](const Tensors& in) {
        return ops::self_attention(in[0], {layer_of(canon, in), table, layout, {}});
      },
      [=](const Tensors& in) {
        return ops::self_attention_reference(in[0], {layer_of(canon, in), table, layout, {}});
      },
      {stream(s, layout.width(), o), taps(layout.width(), o)},
      flops,
      0);
}

template <bool canon>
OperationCase swiglu_linear(const Sizes& s, const Options& o) {
  return differentiated(
      [](const Tensors& in) { return ops::swiglu_linear(in[0], layer_of(canon, in), in[1]); },
      [](const Tensors& in) {
        return ops::swiglu_linear_reference(in[0], layer_of(canon, in), in[1]);
      },
      {stream(s, 2 * s.intermediate, o),
       normal({s.hidden, s.intermediate}, o),
       taps(2 * s.intermediate, o)},
      product_flops(s, s.intermediate, s.hidden),
      0);
}

enum class LinearFamily { gla5, gdn2, mamba2 };

/// Linear attention with values twice as wide as keys, as the families have them; beside it the
/// chunk form of plain Torch operations.
template <LinearFamily family>
OperationCase linear_attention(const Sizes& s, const Options& o) {
  const bool is_gla5 = family == LinearFamily::gla5, is_mamba2 = family == LinearFamily::mamba2;
  const int64_t keys = s.head_dim, values = 2 * s.head_dim, chunk = 64;
  const auto vectors = [&](int64_t heads, int64_t channels) {
    return normal({s.batch, s.length, heads, channels}, o);
  };
  const auto numbers = [&] { return at::rand({s.batch, s.length, s.heads}, small(o)); };
  const int64_t key_heads = is_mamba2 ? 1 : s.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(keys));
  Tensors inputs = {vectors(key_heads, keys),
                    vectors(key_heads, keys) * (3 * scale),  // of length 1, about
                    vectors(s.heads, values)};
  if (is_gla5) {
    inputs.push_back(at::rand({s.batch, s.length, s.heads, keys}, small(o)) * -0.1);
  } else {
    inputs.push_back(numbers() * -0.1);
    inputs.push_back(numbers());
  }
  const auto call = [=](const auto& operation) {
    return [=](const Tensors& in) {
      return operation({in[0], in[1], in[2], in[3], is_gla5 ? at::Tensor() : in[4], {}},
                       {scale, family == LinearFamily::gdn2})
          .output;
    };
  };
  // Forward and backward, see docs/MATHEMATICS.md.
  const auto K = static_cast<double>(keys), V = static_cast<double>(values), C = double(chunk);
  const double shared = is_mamba2 ? K / static_cast<double>(s.heads) : K;
  double flops = 14 * K * V + 6 * C * (K + V);
  if (is_mamba2) flops = 14 * K * V + 2 * C * (V + shared) + 2 * C * (2 * V + 3 * shared);
  if (family == LinearFamily::gdn2)
    flops = 22 * K * V + 4 * C * (K + V) + 2 * C * C / 3 + 2 * C * (6 * K + 5 * V);
  OperationCase result = differentiated(call(&ops::linear_attention),
                                        call(&ops::linear_attention_composed),
                                        inputs,
                                        flops * static_cast<double>(s.tokens() * s.heads),
                                        0);
  result.baseline_name = "plain Torch, in chunks";
  return result;
}

/// q, k and v of gdn2 from one projection: heads of q and k get length 1.
OperationCase short_conv(const Sizes& s, const Options& o) {
  const int64_t keys = s.heads * s.head_dim, channels = 4 * keys;
  const std::vector<ops::ProjectionPart> parts = {
      {keys, true, s.head_dim}, {keys, true, s.head_dim}, {2 * keys, true}};
  const auto call = [=](const auto& operation) {
    return [=](const Tensors& in) { return at::cat(operation(in[0], {in[1], {}}, parts), 2); };
  };
  return differentiated(call(&ops::short_conv),
                        call(&ops::short_conv_reference),
                        {stream(s, channels, o), taps(channels, o)},
                        0,
                        pass_bytes(s, 5 * channels, o));
}

OperationCase gated_norm(const Sizes& s, const Options& o) {
  const int64_t width = 2 * s.head_dim, channels = s.heads * width;
  const auto call = [](const auto& operation) {
    return [=](const Tensors& in) { return operation(in[0], in[1], {in[2], in[3]}, {}); };
  };
  return differentiated(call(&ops::gated_norm),
                        call(&ops::gated_norm_reference),
                        {stream(s, channels, o),
                         stream(s, channels, o),
                         normal({width}, small(o)),
                         normal({channels}, small(o))},
                        0,
                        pass_bytes(s, 8 * channels, o));
}

OperationCase log_decay(const Sizes& s, const Options& o) {
  const int64_t keys = s.heads * s.head_dim;
  const auto call = [](const auto& operation) {
    return [=](const Tensors& in) { return operation(in[0], in[1], 16); };
  };
  return differentiated(call(&ops::log_decay),
                        call(&ops::log_decay_reference),
                        {stream(s, keys, o), normal({keys}, small(o))},
                        0,
                        pass_bytes(s, 3 * keys, o) + pass_bytes(s, 2 * keys, small(o)));
}

using Update = std::function<void(Tensors&)>;

/// A call of `update` on a weight, its gradient and its moments.
std::function<void()> updating(const Sizes& s, const Options& o, const Update& update) {
  Tensors state;
  for (int i = 0; i < 4; ++i) state.push_back(normal({3 * s.intermediate, s.hidden}, o).abs());
  return [=]() mutable {
    const at::NoGradGuard no_grad;
    update(state);
  };
}

Update one_by_one(decltype(&ops::adamw_) operation) {
  return [=](Tensors& state) {
    const ops::AdamWStep step{1e-3, 0.9, 0.95, 1e-8, 0.1, 7};
    operation(state[0], state[1], state[2], state[3], step);
  };
}

/// The update that trains on a GPU, with the global norm.
Update all_at_once(const Options& o, ops::UpdateRule rule, bool has_second) {
  ops::UpdateState state = ops::make_update_state({1e-3}, o.device());
  const at::Tensor loss = at::ones({}, o);
  ops::UpdateOptions options;
  options.grad_clip = 1;
  options.groups = {{rule, 1, 0.1}};
  options.beta2 = 0.95;
  options.momentum = 0.95;
  options.nesterov = true;
  return [=](Tensors& tensors) mutable {
    const ops::WeightUpdate update = {
        {tensors[0], tensors[1], tensors[2], has_second ? tensors[3] : at::Tensor(), at::Tensor()}};
    ops::update_weights_cuda(update, options, loss, state);
  };
}

/// Whether the device updates all weights in one call.
bool is_at_once(const Options& o) { return o.device().is_cuda() && o.dtype() == at::kFloat; }

double update_bytes(const Sizes& s, const Options& o, int passes) {
  const double numbers = static_cast<double>(3 * s.intermediate * s.hidden);
  return passes * numbers * static_cast<double>(o.dtype().itemsize());
}

/// An update of all the weights of a block's MLP, which are kept in float32 beside bfloat16.
OperationCase adamw(const Sizes& s, const Options& options) {
  const Options o = small(options);
  const bool at_once = is_at_once(o);
  const Update fused =
      at_once ? all_at_once(o, ops::UpdateRule::adamw, true) : one_by_one(ops::adamw_);
  // Four tensors are read and three are written; the norm reads the gradient once more.
  return {updating(s, o, fused),
          updating(s, o, one_by_one(ops::adamw_reference_)),
          0,
          update_bytes(s, o, at_once ? 8 : 7)};
}

OperationCase lion(const Sizes& s, const Options& options) {
  const Options o = small(options);
  const auto alone = [](decltype(&ops::lion_) operation) -> Update {
    return [=](Tensors& state) { operation(state[0], state[1], state[2], {1e-4, 0.9, 0.99, 0.1}); };
  };
  const bool at_once = is_at_once(o);
  const Update fused = at_once ? all_at_once(o, ops::UpdateRule::lion, false) : alone(ops::lion_);
  return {updating(s, o, fused),
          updating(s, o, alone(ops::lion_reference_)),
          0,
          update_bytes(s, o, at_once ? 6 : 5)};
}

/// The matrix is taller than wide, so that an iteration squares columns.
OperationCase muon(const Sizes& s, const Options& options) {
  const Options o = small(options);
  const Update alone = [](Tensors& state) {
    ops::muon_(state[0], state[1], state[2], {1e-3, 1, 0.95, true, 0.1, {}});
  };
  const Update plain = [](Tensors& state) {
    state[2].mul_(0.95).add_(state[1], 0.05);
    const at::Tensor ahead = 0.05 * state[1] + 0.95 * state[2];
    state[0].mul_(1 - 1e-4).add_(ops::orthogonalised_reference(ahead, {}), -1e-3);
  };
  const double rows = static_cast<double>(3 * s.intermediate);
  const double columns = static_cast<double>(s.hidden);
  const double products = 5 * 2 * columns * columns * (2 * rows + columns);
  const Update fused = is_at_once(o) ? all_at_once(o, ops::UpdateRule::muon, false) : alone;
  return {updating(s, o, fused), updating(s, o, plain), products, update_bytes(s, o, 6)};
}

}  // namespace

std::string OperationSizes::describe() const {
  return std::to_string(batch) + " x " + std::to_string(length) + " tokens, hidden " +
         std::to_string(hidden) + ", MLP " + std::to_string(intermediate) + ", " +
         std::to_string(heads) + " heads of " + std::to_string(head_dim) + ", vocabulary " +
         std::to_string(vocabulary);
}

const std::vector<OperationSizes>& operation_sizes() {
  static const std::vector<OperationSizes> sizes = {
      {"4m", 8, 512, 256, 768, 2000, 4, 4, 64, true, false},
      {"4m_large_batch", 32, 512, 256, 768, 2000, 4, 4, 64, false, true},
      {"162m", 32, 1024, 768, 2048, 32000, 8, 8, 96, false, true},
      {"162m_heads_of_128", 32, 1024, 768, 2048, 32000, 6, 6, 128, false, false},
      {"long_rows", 8, 4096, 1024, 2816, 32000, 8, 8, 128, false, false},
      {"162m_one_row", 1, 1024, 768, 2048, 32000, 8, 8, 96, false, false},
  };
  return sizes;
}

const std::vector<OperationMaker>& operation_makers() {
  static const std::vector<OperationMaker> makers = {
      {"canon_conv.a", [](const Sizes& s, const Options& o) { return canon(s, s.hidden, o); }},
      {"canon_conv.b",
       [](const Sizes& s, const Options& o) {
         return canon(s, (s.heads + 2 * s.kv_heads) * s.head_dim, o);
       }},
      {"canon_conv.d",
       [](const Sizes& s, const Options& o) { return canon(s, 2 * s.intermediate, o); }},
      {"linear", linear},
      {"rms_norm", rms_norm},
      {"swiglu", swiglu},
      {"linear_cross_entropy", linear_cross_entropy},
      {"norm_linear", norm_linear<false>},
      {"self_attention", self_attention<false>},
      {"swiglu_linear", swiglu_linear<false>},
      {"norm_linear.canon", norm_linear<true>},
      {"self_attention.canon", self_attention<true>},
      {"swiglu_linear.canon", swiglu_linear<true>},
      {"linear_attention.gla5", linear_attention<LinearFamily::gla5>},
      {"linear_attention.gdn2", linear_attention<LinearFamily::gdn2>},
      {"linear_attention.mamba2", linear_attention<LinearFamily::mamba2>},
      {"short_conv", short_conv},
      {"gated_norm", gated_norm},
      {"log_decay", log_decay},
      {"adamw", adamw},
      {"lion", lion},
      {"muon", muon},
  };
  return makers;
}

}  // namespace forge::libtorch
