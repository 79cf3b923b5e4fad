#include "backends/libtorch/ops/short_conv/cuda.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/short_conv/short_conv.h"

namespace forge::ops {
namespace {

using Parts = std::vector<ProjectionPart>;

/// The parts that are mixed, or the others, with their tensors.
template <class T>
cuda::PartPlaces<T> places_of(const Parts& parts,
                              bool mixed,
                              const std::vector<at::Tensor>& tensors) {
  cuda::PartPlaces<T> places{};
  int first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int channels = static_cast<int>(parts[i].channels);
    if (parts[i].is_mixed == mixed) {
      places.place[places.count++] = {first,
                                      channels,
                                      static_cast<int>(parts[i].head_width),
                                      tensors.empty() ? nullptr : cuda::write<T>(tensors[i]),
                                      0,
                                      0};
    }
    first += channels;
  }
  return places;
}

template <class T>
cuda::ShortConvPass<T> arguments(const at::Tensor& x,
                                 const ShortConv& conv,
                                 const Parts& parts,
                                 const std::vector<at::Tensor>& tensors) {
  const cuda::PartPlaces<T> mixed = places_of<T>(parts, true, tensors);
  int64_t channels = 0;
  for (int i = 0; i < mixed.count; ++i) channels += mixed.place[i].channels;
  return {{x.size(0), x.size(1), channels, nullptr},
          token_stride(x),
          mixed.place[0].first,
          conv.weight.defined() ? static_cast<int>(conv.weight.size(2)) : 0,
          conv.silu,
          static_cast<float>(conv.length_eps),
          cuda::read<T>(x),
          cuda::read<float>(conv.weight),
          cuda::read<float>(conv.bias),
          mixed};
}

int64_t channels_of(const Parts& parts) {
  int64_t channels = 0;
  for (const ProjectionPart& part : parts) channels += part.channels;
  return channels;
}

}  // namespace

bool cuda_short_conv_supports(const at::Tensor& x, const ShortConv& conv, const Parts& parts) {
  int64_t mixed = 0;
  for (const ProjectionPart& part : parts) mixed += part.is_mixed ? 1 : 0;
  const int64_t ignored = x.size(2) > channels_of(parts) ? 1 : 0;
  const int64_t others = static_cast<int64_t>(parts.size()) - mixed + ignored;
  constexpr int64_t most_channels = 1 << 20;
  if (mixed == 0 || mixed > cuda::most_projection_parts || others > cuda::most_projection_parts ||
      x.size(2) > most_channels)
    return false;
  bool fits = false;
  cuda::with_type(x, [&](auto type) {
    const auto in = arguments<decltype(type)>(x, conv, parts, {});
    fits = cuda::short_conv_fits(in, 4) || cuda::short_conv_fits(in, 8);
  });
  return fits;
}

void short_conv_forward_cuda(const at::Tensor& x,
                             const ShortConv& conv,
                             const Parts& parts,
                             const std::vector<at::Tensor>& results) {
  cuda::with_type(x, [&](auto type) {
    cuda::short_conv_forward(arguments<decltype(type)>(x, conv, parts, results),
                             cuda::current_stream());
  });
}

void short_conv_backward_cuda(const at::Tensor& x,
                              const ShortConv& conv,
                              const Parts& parts,
                              const std::vector<at::Tensor>& grad_parts,
                              at::Tensor& grad_x,
                              at::Tensor& grad_w,
                              at::Tensor& grad_bias) {
  const int64_t taps = conv.weight.defined() ? conv.weight.numel() : 0;
  const int64_t biases = conv.bias.defined() ? conv.bias.numel() : 0;
  cuda::BlockSums block_sums(x, taps + biases);
  const int channels = static_cast<int>(channels_of(parts));
  const int ignored = static_cast<int>(x.size(2)) - channels;
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::PartPlaces<T> others = places_of<T>(parts, false, grad_parts);
    if (ignored > 0) others.place[others.count++] = {channels, ignored, 0, nullptr, 0, 0};
    cuda::short_conv_backward(
        arguments<T>(x, conv, parts, grad_parts),
        cuda::ShortConvGradient<T>{cuda::write<T>(grad_x), token_stride(grad_x), others},
        block_sums.allocate(),
        cuda::current_stream());
  });
  if (taps + biases == 0) return;
  const at::Tensor sums = block_sums.total();
  if (taps > 0) grad_w = sums.narrow(0, 0, taps).view(conv.weight.sizes());
  if (biases > 0) grad_bias = sums.narrow(0, taps, biases).view(conv.bias.sizes());
}

}  // namespace forge::ops
