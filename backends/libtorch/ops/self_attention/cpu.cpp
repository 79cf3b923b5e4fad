#include "backends/libtorch/ops/canon_conv/problem.h"
#include "backends/libtorch/ops/rotary/kernels.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using canon::Chunk;
using canon::Tokens;

/// The rotary table over pointers.
template <class T>
struct Angles {
  const T *cos = nullptr, *sin = nullptr;
  int64_t half = 0;
  bool interleaved = false;
};

template <class T>
Angles<T> angles_of(const RotaryTable& table) {
  if (!table.cos.defined()) return {};
  return {table.cos.data_ptr<T>(), table.sin.data_ptr<T>(), table.cos.size(1), table.interleaved};
}

template <class T>
FORGE_INLINE void turn_token(
    const Angles<T>& angles, const HeadLayout& layout, int64_t t, T sign, T* token) {
  const T *cos = angles.cos + t * angles.half, *sin = angles.sin + t * angles.half;
  for (int64_t head = 0; head < layout.heads + layout.kv_heads; ++head) {
    T* x = token + head * layout.head_dim;
    rotate_head(x, cos, sin, angles.half, layout.head_dim, angles.interleaved, sign, x);
  }
}

template <class T>
void prepare(const at::Tensor& qkv,
             const CanonLayer& layer,
             const RotaryTable& rotary,
             const HeadLayout& layout,
             at::Tensor& prepared) {
  const Angles<T> angles = angles_of<T>(rotary);
  canon::Problem<T> p{qkv.size(0), qkv.size(1), qkv.size(2), 0, {}, nullptr};
  if (layer.weight.defined())
    p = canon::problem<T>(qkv, layer.weight, layer.options.residual, layer.doc_ids);
  canon::for_each_chunk(p.batch, p.length, [&](const Chunk& chunk) {
    const auto in = p.row_to_read(qkv.data_ptr<T>(), chunk.row);
    const auto out = p.row_to_write(prepared.data_ptr<T>(), chunk.row);
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t t = chunk.begin; t < chunk.end; ++t) {
        if (p.kernel > 0) {
          canon::convolve(p, chunk.row, t, t + 1, p.all(), in, out);
        } else {
          std::copy(in.at(t), in.at(t) + p.channels, out.at(t));
        }
        if (angles.half > 0) turn_token(angles, layout, t, T(1), out.at(t));
      }
    });
  });
}

template <class T>
void turn_back(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad) {
  const Angles<T> angles = angles_of<T>(rotary);
  const int64_t length = grad.size(1), channels = grad.size(2);
  canon::for_each_chunk(grad.size(0), length, [&](const Chunk& chunk) {
    T* row = grad.data_ptr<T>() + chunk.row * length * channels;
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t t = chunk.begin; t < chunk.end; ++t) {
        turn_token(angles, layout, t, T(-1), row + t * channels);
      }
    });
  });
}

}  // namespace

void prepare_heads_cpu(const at::Tensor& qkv,
                       const CanonLayer& canon,
                       const RotaryTable& rotary,
                       const HeadLayout& layout,
                       at::Tensor& prepared) {
  qkv.scalar_type() == at::kFloat ? prepare<float>(qkv, canon, rotary, layout, prepared)
                                  : prepare<double>(qkv, canon, rotary, layout, prepared);
}

void turn_heads_back_cpu(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad) {
  if (!rotary.cos.defined()) return;
  grad.scalar_type() == at::kFloat ? turn_back<float>(rotary, layout, grad)
                                   : turn_back<double>(rotary, layout, grad);
}

}  // namespace forge::ops
