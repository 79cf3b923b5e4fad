#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/rotary/cpu.h"
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

/// Rotates the heads of queries and keys of token t by its angles (sign +1) or their negatives (-1)
/// and copies those of values. The result may lie where the token does.
template <class T, class Out>
FORGE_INLINE void rotate_token(const Angles<T>& angles,
                               const HeadLayout& layout,
                               int64_t t,
                               T sign,
                               const T* token,
                               Out* rotated) {
  const T *cos = angles.cos + t * angles.half, *sin = angles.sin + t * angles.half;
  for (int64_t head = 0; head < layout.heads + 2 * layout.kv_heads; ++head) {
    const int64_t half = head < layout.heads + layout.kv_heads ? angles.half : 0;
    const int64_t first = head * layout.head_dim;
    rotate_head(
        token + first, cos, sin, half, layout.head_dim, angles.interleaved, sign, rotated + first);
  }
}

}  // namespace

void canon_rope_forward_cpu(const at::Tensor& qkv, const CanonRope& rope, at::Tensor& heads) {
  with_operand_type(heads.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const Angles<T> angles = angles_of<T>(rope.rotary);
    const canon::Convolution<T> p = canon::convolution<T>(qkv, rope.canon);
    const auto task = [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(qkv, chunk);
      const auto out = p.template row_to_write<Out>(heads, chunk);
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          const T* token = in.at(t);
          if (p.kernel > 0) {
            token = memory;
            const Tokens<T> convolved{memory, t, p.channels};
            canon::convolve(p, chunk.token(t), p.all(), in, convolved);
          }
          rotate_token(angles, rope.layout, t, T(1), token, out.at(t));
        }
      });
    };
    canon::for_each_chunk<T>(p.batch, p.length, p.channels, task);
  });
}

void rope_backward_cpu(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad) {
  if (!rotary.cos.defined()) return;
  with_element_type(grad.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const Angles<T> angles = angles_of<T>(rotary);
    const int64_t length = grad.size(1), channels = grad.size(2);
    canon::for_each_chunk<T>(grad.size(0), length, 0, [&](const Chunk& chunk, T*) {
      T* row = grad.data_ptr<T>() + chunk.row * length * channels;
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          T* token = row + t * channels;
          rotate_token(angles, layout, t, T(-1), token, token);
        }
      });
    });
  });
}

}  // namespace forge::ops
