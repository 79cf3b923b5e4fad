#include "backends/libtorch/ops/short_conv/short_conv.h"

#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/activation.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using canon::Chunk;
using canon::Tokens;
using Parts = std::vector<ProjectionPart>;

/// A part with its place: its first channel in the projection and among the mixed channels.
struct PlacedPart {
  ProjectionPart part;
  int64_t first, first_mixed;
};

struct PlacedParts {
  std::vector<PlacedPart> parts;
  int64_t first_mixed = 0, mixed = 0;  ///< the mixed channels of the projection
};

PlacedParts placed(const Parts& parts) {
  PlacedParts result;
  int64_t first = 0;
  for (const ProjectionPart& part : parts) {
    if (part.is_mixed && result.mixed == 0) result.first_mixed = first;
    TORCH_CHECK(!part.is_mixed || first == result.first_mixed + result.mixed,
                "short_conv: mixed parts must lie side by side");
    result.parts.push_back({part, first, result.mixed});
    if (part.is_mixed) result.mixed += part.channels;
    first += part.channels;
  }
  return result;
}

/// Of plain Torch operations; `convolve` is the Canon layer's operation or its reference.
std::vector<at::Tensor> composed(const at::Tensor& x,
                                 const ShortConv& conv,
                                 const Parts& parts,
                                 decltype(&canon_conv) convolve) {
  const PlacedParts places = placed(parts);
  at::Tensor mixed = x.narrow(2, places.first_mixed, places.mixed);
  if (conv.weight.defined()) mixed = convolve(mixed, conv.weight, {false, false}, {});
  if (conv.bias.defined()) mixed = mixed + conv.bias.to(mixed.scalar_type());
  if (conv.silu) mixed = at::silu(mixed);
  std::vector<at::Tensor> results;
  for (const PlacedPart& place : places.parts) {
    const auto [channels, is_mixed, head_width] = place.part;
    if (!is_mixed) {
      results.push_back(x.narrow(2, place.first, channels));
      continue;
    }
    at::Tensor y = mixed.narrow(2, place.first_mixed, channels);
    if (head_width > 0) {
      const at::Tensor heads = y.unflatten(2, {channels / head_width, head_width});
      y = (heads * (heads * heads).sum(-1, true).add(conv.length_eps).rsqrt()).flatten(2);
    }
    results.push_back(y.contiguous());
  }
  return results;
}

/// The convolution of the mixed channels; no taps without one.
template <class T>
canon::Convolution<T> mixed_convolution(const at::Tensor& x,
                                        const ShortConv& conv,
                                        const PlacedParts& places) {
  const at::Tensor mixed = x.narrow(2, places.first_mixed, places.mixed);
  return canon::convolution<T>(mixed, {conv.weight, {false, false}, {}});
}

/// What goes into the activation: conv(x) + bias of the tokens begin … end - 1 of a chunk, for some
/// of the mixed channels. `x` begins with the first of them.
template <class T>
FORGE_INLINE void before_activation(const canon::Convolution<T>& p,
                                    const Chunk& tokens,
                                    canon::Channels channels,
                                    const T* bias,
                                    const Tokens<const T>& x,
                                    const Tokens<T>& y) {
  if (p.kernel > 0) canon::convolve(p, tokens, channels, x, y);
  for (int64_t t = tokens.begin; t < tokens.end; ++t) {
    T* out = y.at(t);
    if (p.kernel == 0) std::copy(x.at(t), x.at(t) + channels.count, out);
    if (!bias) continue;
    const T* more = bias + channels.first;
#pragma omp simd
    for (int64_t c = 0; c < channels.count; ++c) out[c] += more[c];
  }
}

/// 1 / sqrt(sum(x^2) + eps)
template <class T>
FORGE_INLINE T length_scale(int64_t width, T eps, const T* x) {
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t c = 0; c < width; ++c) squares += x[c] * x[c];
  return 1 / std::sqrt(squares + eps);
}

/// `channels` channels of one token of a part; y may lie where x does.
template <class T>
FORGE_INLINE void activate(
    int64_t channels, int64_t head_width, bool with_silu, T eps, const T* x, T* y) {
  if (with_silu) {
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * sigmoid(x[c]);
  } else if (x != y) {
    std::copy(x, x + channels, y);
  }
  if (head_width == 0) return;
  for (T* head = y; head < y + channels; head += head_width) {
    const T scale = length_scale(head_width, eps, head);
#pragma omp simd
    for (int64_t c = 0; c < head_width; ++c) head[c] *= scale;
  }
}

/// Writes the gradient of x, over it, from that of y. With y = s r, s = silu(x) and r its length's
/// inverse: ds = r (dy - y (y . dy)).
template <class T>
FORGE_INLINE void activate_gradient(
    int64_t channels, int64_t head_width, bool with_silu, T eps, const T* grad_y, T* memory, T* x) {
  const int64_t group = head_width > 0 ? head_width : channels;
  T *value = memory, *slope = memory + group;
  for (int64_t first = 0; first < channels; first += group) {
    T* in = x + first;
    const T* upstream = grad_y + first;
    if (with_silu) {
#pragma omp simd
      for (int64_t c = 0; c < group; ++c) {
        const Silu<T> s = silu(in[c]);
        value[c] = s.value;
        slope[c] = s.slope;
      }
    } else {
      std::copy(in, in + group, value);
      std::fill(slope, slope + group, T(1));
    }
    T scale = 1, along = 0;
    if (head_width > 0) {
      scale = length_scale(group, eps, value);
#pragma omp simd reduction(+ : along)
      for (int64_t c = 0; c < group; ++c) along += value[c] * upstream[c];
      along *= scale * scale;
    }
#pragma omp simd
    for (int64_t c = 0; c < group; ++c) in[c] = scale * (upstream[c] - value[c] * along) * slope[c];
  }
}

void short_conv_forward_cpu(const at::Tensor& x,
                            const ShortConv& conv,
                            const PlacedParts& places,
                            const std::vector<at::Tensor>& results) {
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Convolution<T> p = mixed_convolution<T>(x, conv, places);
    const T* bias = conv.bias.defined() ? conv.bias.data_ptr<T>() : nullptr;
    const T eps = static_cast<T>(conv.length_eps);
    const int64_t width = x.size(2);
    canon::for_each_chunk<T>(p.batch, p.length, p.channels, [&](const Chunk& chunk, T* memory) {
      const Tokens<const T> in{x.data_ptr<T>() + chunk.row * p.length * width, 0, width};
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          const Tokens<T> mixed{memory, t, p.channels};
          before_activation(
              p, chunk.token(t), p.all(), bias, in.from_channel(places.first_mixed), mixed);
          for (size_t i = 0; i < results.size(); ++i) {
            const auto& [part, first, first_mixed] = places.parts[i];
            if (!part.is_mixed) continue;
            T* out = results[i].data_ptr<T>() + (chunk.row * p.length + t) * part.channels;
            activate(part.channels, part.head_width, conv.silu, eps, memory + first_mixed, out);
          }
        }
      });
    });
  });
}

// Mixed channels that the backward pass takes at a time through a chunk, or a head if that is more,
// so that all it touches stays in a core's L2 cache.
constexpr int64_t mixed_block_channels = 128;

int64_t block_of(const ProjectionPart& part) {
  if (part.head_width == 0) return std::min(part.channels, mixed_block_channels);
  return part.head_width * std::max<int64_t>(1, mixed_block_channels / part.head_width);
}

/// Where the gradients go. Sums over tokens are a chunk's.
template <class T>
struct ShortConvSums {
  T *taps, *bias;
};

/// Some channels of a mixed part through one chunk. The transposed convolution reads the gradients
/// of K - 1 tokens behind it, which two chunks compute.
template <class T>
FORGE_INLINE void block_gradient(const canon::Convolution<T>& p,
                                 const Chunk& chunk,
                                 canon::Channels channels,
                                 const ShortConv& conv,
                                 int64_t head_width,
                                 const Tokens<const T>& x,
                                 const Tokens<const T>& grad_y,
                                 const Tokens<T>& grad_x,
                                 const ShortConvSums<T>& sums,
                                 T* memory) {
  const int64_t halo_end = std::min(chunk.end + p.halo(), p.length);
  const T* bias = conv.bias.defined() ? conv.bias.data_ptr<T>() : nullptr;
  const Tokens<T> grad{memory, chunk.begin, channels.count};
  T* activation_memory = grad.at(chunk.begin + chunk_rows + canon::max_kernel);
  before_activation(p, chunk.until(halo_end), channels, bias, x, grad);
  for (int64_t t = chunk.begin; t < halo_end; ++t) {
    activate_gradient(channels.count,
                      head_width,
                      conv.silu,
                      static_cast<T>(conv.length_eps),
                      grad_y.at(t),
                      activation_memory,
                      grad.at(t));
  }
  if (sums.bias) {
    T* sum = sums.bias + channels.first;
    for (int64_t t = chunk.begin; t < chunk.end; ++t) {
      const T* more = grad.at(t);
#pragma omp simd
      for (int64_t c = 0; c < channels.count; ++c) sum[c] += more[c];
    }
  }
  if (p.kernel > 0) {
    canon::accumulate_taps(p, chunk, channels, x, grad.read(), sums.taps);
    canon::convolve_transposed(p, chunk, channels, grad.read(), grad_x);
    return;
  }
  for (int64_t t = chunk.begin; t < chunk.end; ++t)
    std::copy(grad.at(t), grad.at(t) + channels.count, grad_x.at(t));
}

void short_conv_backward_cpu(const at::Tensor& x,
                             const ShortConv& conv,
                             const PlacedParts& places,
                             const variable_list& grad_parts,
                             at::Tensor& grad_x,
                             at::Tensor& grad_w,
                             at::Tensor& grad_bias) {
  int64_t most_channels = 0;
  for (const PlacedPart& place : places.parts)
    most_channels = std::max(most_channels, block_of(place.part));
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Convolution<T> p = mixed_convolution<T>(x, conv, places);
    const int64_t width = x.size(2), chunks = p.chunk_count(), taps = p.kernel * p.channels;
    const int64_t of_parts = places.parts.back().first + places.parts.back().part.channels;
    const int64_t biases = grad_bias.defined() ? p.channels : 0;
    std::vector<T> tap_sums(chunks * taps, T(0));
    const at::Tensor bias_sums = at::zeros({chunks, biases}, x.options());
    const int64_t memory_size = (chunk_rows + canon::max_kernel + 2) * most_channels;
    canon::for_each_chunk<T>(p.batch, p.length, memory_size, [&](const Chunk& chunk, T* memory) {
      const int64_t row = chunk.row * p.length;
      const Tokens<const T> in{x.data_ptr<T>() + row * width, 0, width};
      const Tokens<T> out{grad_x.data_ptr<T>() + row * width, 0, width};
      const ShortConvSums<T> sums{
          tap_sums.data() + chunk.index * taps,
          biases > 0 ? bias_sums.data_ptr<T>() + chunk.index * biases : nullptr};
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t t = chunk.begin; t < chunk.end; ++t)
          std::fill(out.at(t) + of_parts, out.at(t) + width, T(0));
        for (size_t i = 0; i < places.parts.size(); ++i) {
          const auto& [part, first, first_mixed] = places.parts[i];
          const Tokens<const T> upstream{
              grad_parts[i].data_ptr<T>() + row * part.channels, 0, part.channels};
          if (!part.is_mixed) {
            for (int64_t t = chunk.begin; t < chunk.end; ++t)
              std::copy(upstream.at(t), upstream.at(t) + part.channels, out.at(t) + first);
            continue;
          }
          const int64_t block = block_of(part);
          for (int64_t c = 0; c < part.channels; c += block) {
            block_gradient(p,
                           chunk,
                           {first_mixed + c, std::min(block, part.channels - c)},
                           conv,
                           part.head_width,
                           in.from_channel(first + c),
                           upstream.from_channel(c),
                           out.from_channel(first + c),
                           sums,
                           memory);
          }
        }
      });
    });
    if (taps > 0)
      canon::add_up_taps(p.channels, p.kernel, chunks, tap_sums.data(), grad_w.data_ptr<T>());
    if (biases > 0) at::sum_out(grad_bias, bias_sums, {0});
  });
}

struct ShortConvArguments {
  bool silu;
  double length_eps;
  Parts parts;
};

struct ShortConvFunction : public torch::autograd::Function<ShortConvFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const at::Tensor& weight,
                               const at::Tensor& bias,
                               const ShortConvArguments& arguments) {
    context->save_for_backward({x, weight, bias});
    keep_arguments(context, arguments);
    const ShortConv conv{
        or_undefined(weight), or_undefined(bias), arguments.silu, arguments.length_eps};
    const PlacedParts places = placed(arguments.parts);
    variable_list results;
    for (const PlacedPart& place : places.parts) {
      const int64_t channels = place.part.channels;
      results.push_back(place.part.is_mixed
                            ? at::empty({x.size(0), x.size(1), channels}, x.options())
                            : x.narrow(2, place.first, channels));
    }
    x.is_cuda() ? short_conv_forward_cuda(x, conv, arguments.parts, results)
                : short_conv_forward_cpu(x, conv, places, results);
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto arguments = kept_arguments<ShortConvArguments>(context);
    const ShortConv conv{
        or_undefined(saved[1]), or_undefined(saved[2]), arguments.silu, arguments.length_eps};
    at::Tensor grad_x = empty_token_rows(saved[0]), grad_w, grad_bias;
    if (conv.weight.defined()) grad_w = at::empty_like(conv.weight);
    if (conv.bias.defined()) grad_bias = at::empty_like(conv.bias);
    for (at::Tensor& grad : grad_outputs) grad = grad.contiguous();
    if (saved[0].is_cuda()) {
      short_conv_backward_cuda(
          saved[0], conv, arguments.parts, grad_outputs, grad_x, grad_w, grad_bias);
    } else {
      short_conv_backward_cpu(
          saved[0], conv, placed(arguments.parts), grad_outputs, grad_x, grad_w, grad_bias);
    }
    return {grad_x, grad_w, grad_bias, {}};
  }
};

}  // namespace

std::vector<at::Tensor> short_conv_reference(const at::Tensor& x,
                                             const ShortConv& conv,
                                             const Parts& parts) {
  return composed(x, conv, parts, canon_conv_reference);
}

std::vector<at::Tensor> short_conv(const at::Tensor& x, const ShortConv& conv, const Parts& parts) {
  int64_t width = 0, mixed = 0;
  for (const auto& [channels, is_mixed, head_width] : parts) {
    width += channels;
    mixed += is_mixed ? channels : 0;
    TORCH_CHECK(head_width == 0 || (is_mixed && channels % head_width == 0),
                "short_conv: a part of ",
                channels,
                " channels has no heads of ",
                head_width);
  }
  TORCH_CHECK(x.dim() == 3 && x.size(2) >= width,
              "short_conv: x must be [batch, tokens, ",
              width,
              " or more], is ",
              x.sizes());
  TORCH_CHECK(!conv.bias.defined() || conv.bias.numel() == mixed,
              "short_conv: the bias must be [",
              mixed,
              "], is ",
              conv.bias.sizes());
  if (conv.weight.defined())
    check_canon_shapes(x.narrow(2, placed(parts).first_mixed, mixed), conv.weight, {});
  const auto fits = [&](const at::Tensor& small) {
    return !small.defined() || small.scalar_type() == small_weight_type(x);
  };
  const at::Tensor tokens = x.is_cuda() && has_equal_tokens(x) ? x : x.contiguous();
  const bool fused =
      fits(conv.weight) && fits(conv.bias) &&
      (has_cpu_kernel(x) || (has_cuda_kernel(x) && cuda_short_conv_supports(tokens, conv, parts)));
  if (!fused) return composed(x, conv, parts, canon_conv);
  return ShortConvFunction::apply(tokens,
                                  or_empty(conv.weight),
                                  or_empty(conv.bias),
                                  ShortConvArguments{conv.silu, conv.length_eps, parts});
}

}  // namespace forge::ops
