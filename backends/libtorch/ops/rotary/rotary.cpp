#include "backends/libtorch/ops/rotary/rotary.h"

#include <cmath>

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/rotary/cpu.h"
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
  const at::Tensor channels = x.narrow(3, 0, 2 * half);
  at::Tensor a, b;
  if (table.interleaved) {
    const at::Tensor pairs = channels.unflatten(3, {half, 2});
    a = pairs.select(4, 0);
    b = pairs.select(4, 1);
  } else {
    a = channels.narrow(3, 0, half);
    b = channels.narrow(3, half, half);
  }
  const at::Tensor first = a * cos - b * sin;
  const at::Tensor second = a * sin + b * cos;
  const at::Tensor rotated =
      table.interleaved ? at::stack({first, second}, 4).flatten(3) : at::cat({first, second}, 3);
  const at::Tensor rest = x.narrow(3, 2 * half, x.size(3) - 2 * half);
  return at::cat({rotated.to(x.scalar_type()), rest}, 3);
}

namespace {

/// Rotates by the table's angles (direction +1), or by their negatives (-1), which is the gradient.
void rotate(const at::Tensor& x, const RotaryTable& table, int direction, at::Tensor& y) {
  const int64_t length = x.size(1), heads = x.size(2), width = x.size(3), half = table.cos.size(1);
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    at::parallel_for(0, x.size(0) * length, 64, [&](int64_t first, int64_t last) {
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t i = first; i < last; ++i) {
          const int64_t row = i / length, t = i % length;
          const T* in = x.data_ptr<T>() + row * x.stride(0) + t * x.stride(1);
          T* out = y.data_ptr<T>() + i * heads * width;
          for (int64_t head = 0; head < heads; ++head) {
            rotate_head(in + head * x.stride(2),
                        table.cos.data_ptr<T>() + t * half,
                        table.sin.data_ptr<T>() + t * half,
                        half,
                        width,
                        table.interleaved,
                        static_cast<T>(direction),
                        out + head * width);
          }
        }
      });
    });
  });
}

struct Rotary : public torch::autograd::Function<Rotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& cos,
                            const at::Tensor& sin,
                            bool interleaved) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    at::Tensor y = at::empty(x.sizes(), x.options());
    rotate(x, {cos, sin, interleaved}, +1, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grad_outputs[0].contiguous();
    at::Tensor grad_x = at::empty(grad.sizes(), grad.options());
    rotate(grad, {saved[0], saved[1], context->saved_data["interleaved"].toBool()}, -1, grad_x);
    return {grad_x, {}, {}, {}};
  }
};

}  // namespace

at::Tensor rotary(const at::Tensor& x, const RotaryTable& table) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) <= table.cos.size(0) && x.size(3) >= 2 * table.cos.size(1),
              "rotary: x must be [batch, up to ",
              table.cos.size(0),
              " tokens, heads, at least ",
              2 * table.cos.size(1),
              "], is ",
              x.sizes());
  const bool fused =
      has_cpu_kernel(x) && x.stride(3) == 1 && x.scalar_type() == table.cos.scalar_type();
  return fused ? Rotary::apply(x, table.cos, table.sin, table.interleaved)
               : rotary_reference(x, table);
}

}  // namespace forge::ops
