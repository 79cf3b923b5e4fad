#pragma once

#include "backends/libtorch/ops/canon_conv/cuda.h"

namespace forge::ops::cuda {

/// Mixed parts of a projection, and as many others with what is ignored, at most.
constexpr int most_projection_parts = 4;

/// Channels of a projection that have a tensor of their own [B, T, channels], contiguous.
template <class T>
struct PartPlace {
  int first;       ///< of its channels in the projection
  int channels;    ///< of the part
  int head_width;  ///< 0: its heads keep their length
  T* data;         ///< the result, or its gradient
  // How its vectors of channels are given to lanes, which place_lanes() decides.
  int first_lane, lanes_of_head;
};

template <class T>
struct PartPlaces {
  int count;
  PartPlace<T> place[most_projection_parts];
};

/// Arguments of short_conv's kernels. All widths and places, and the addresses of tokens, are
/// multiples of a vector of 4 or 8 channels.
template <class T>
struct ShortConvPass {
  Sequences sequences;  ///< of the projection; channels: the mixed ones
  int64_t stride;       ///< elements from token to token of x
  int first_mixed;
  int taps;  ///< 4, or 0: no convolution
  bool silu;
  float length_eps;
  const T* x;            ///< the projection
  const float* weights;  ///< [channels, taps]; the last tap is the current token's
  const float* bias;     ///< [channels], or null
  PartPlaces<T> mixed;   ///< the parts' results, or gradients of them
};

/// Of the backward pass alone.
template <class T>
struct ShortConvGradient {
  T* x;  ///< of the projection, all channels are written
  int64_t stride;
  /// Gradients of the parts that are not mixed; null: zeros, of channels that are ignored.
  PartPlaces<T> others;
};

/// Whether the kernels take vectors of `width` channels, 4 or 8.
template <class T>
bool short_conv_fits(const ShortConvPass<T>& in, int width);

/// Writes the mixed parts. At least one width fits.
template <class T>
void short_conv_forward(const ShortConvPass<T>& in, cudaStream_t stream);

/// Writes the gradient of the projection, and rows of sums: [channels, taps] for the weights, then
/// [channels] for the bias where there is one.
template <class T>
void short_conv_backward(const ShortConvPass<T>& in,
                         const ShortConvGradient<T>& grad,
                         const AllocateRows& sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
