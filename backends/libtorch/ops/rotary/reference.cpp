#include <cmath>

#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

RotaryTable rotary_table(int64_t length,
                         int64_t rope_dim,
                         double theta,
                         bool interleaved,
                         const at::TensorOptions& options) {
  const at::TensorOptions wide = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor pair = at::arange(rope_dim / 2, wide);
  const at::Tensor frequency =
      at::pow(at::scalar_tensor(theta, wide), pair * (-2.0 / double(rope_dim)));
  const at::Tensor angle = at::arange(length, wide).unsqueeze(1) * frequency.unsqueeze(0);
  return {angle.cos().to(options), angle.sin().to(options), interleaved};
}

at::Tensor rotary_reference(const at::Tensor& x, const RotaryTable& table) {
  const int64_t half = table.cos.size(1);
  const at::Tensor cos = table.cos.narrow(0, 0, x.size(1)).unsqueeze(1);  // [T, 1, r/2]
  const at::Tensor sin = table.sin.narrow(0, 0, x.size(1)).unsqueeze(1);
  const at::Tensor turning = x.narrow(3, 0, 2 * half);
  at::Tensor a, b;
  if (table.interleaved) {
    const at::Tensor pairs = turning.unflatten(3, {half, 2});
    a = pairs.select(4, 0);
    b = pairs.select(4, 1);
  } else {
    a = turning.narrow(3, 0, half);
    b = turning.narrow(3, half, half);
  }
  const at::Tensor first = a * cos - b * sin;
  const at::Tensor second = a * sin + b * cos;
  const at::Tensor turned =
      table.interleaved ? at::stack({first, second}, 4).flatten(3) : at::cat({first, second}, 3);
  const at::Tensor rest = x.narrow(3, 2 * half, x.size(3) - 2 * half);
  return at::cat({turned.to(x.scalar_type()), rest}, 3);
}

}  // namespace forge::ops
