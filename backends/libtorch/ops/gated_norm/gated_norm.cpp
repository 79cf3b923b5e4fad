#include "backends/libtorch/ops/gated_norm/gated_norm.h"

#include "backends/libtorch/ops/common/activation.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor gated_norm_reference(const at::Tensor& o,
                                const at::Tensor& gate,
                                const GatedNorm& norm,
                                const HeadSkip& skip) {
  const at::ScalarType type = norm.weight.scalar_type();
  at::Tensor x = o.to(type), g = gate.to(type);
  if (norm.gate_bias.defined()) g = g + norm.gate_bias;
  if (skip.x.defined()) {
    const int64_t heads = skip.factor.size(0);
    const at::Tensor by_head = skip.x.to(type).unflatten(-1, {heads, x.size(-1) / heads});
    x = x + (by_head * skip.factor.unsqueeze(-1)).flatten(-2);
  }
  if (norm.gate_first) x = x * at::silu(g);
  const int64_t width = norm.weight.size(0);
  const at::Tensor groups = x.unflatten(-1, {x.size(-1) / width, width});
  const at::Tensor scale = (groups * groups).mean(-1, true).add(norm.eps).rsqrt();
  const at::Tensor y = (norm.weight * (groups * scale)).flatten(-2);
  return (norm.gate_first ? y : y * at::silu(g)).to(o.scalar_type());
}

namespace {

/// Of one token: what is read, over pointers. Null where there is none.
template <class T>
struct GatedToken {
  const T *o, *gate, *bias, *skip;
};

/// Shape and small weights.
template <class T>
struct GatedLayout {
  int64_t channels, width, head_width;
  bool gate_first;
  T eps;
  const T *weight, *factor;
};

/// D channels of a token, from `first` on: what is normed before its gate, and the gate's silu and
/// its slope. Returns the sum of squares of what is normed.
template <class T>
FORGE_INLINE T gate_group(
    const GatedLayout<T>& p, const GatedToken<T>& token, int64_t first, T* x, T* value, T* slope) {
  const T *o = token.o + first, *gate = token.gate + first;
  if (token.skip) {
    for (int64_t c = 0; c < p.width;) {
      const int64_t head = (first + c) / p.head_width;
      const int64_t end = std::min(p.width, (head + 1) * p.head_width - first);
      const T factor = p.factor[head];
      const T* skip = token.skip + first;
#pragma omp simd
      for (int64_t i = c; i < end; ++i) x[i] = o[i] + factor * skip[i];
      c = end;
    }
  } else {
    std::copy(o, o + p.width, x);
  }
  T squares = 0;
  const T* bias = token.bias ? token.bias + first : nullptr;
  if (p.gate_first) {
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < p.width; ++c) {
      const Silu<T> s = silu(bias ? gate[c] + bias[c] : gate[c]);
      value[c] = s.value;
      slope[c] = s.slope;
      squares += (x[c] * s.value) * (x[c] * s.value);
    }
  } else {
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < p.width; ++c) {
      const Silu<T> s = silu(bias ? gate[c] + bias[c] : gate[c]);
      value[c] = s.value;
      slope[c] = s.slope;
      squares += x[c] * x[c];
    }
  }
  return squares;
}

template <class T>
FORGE_INLINE T group_scale(const GatedLayout<T>& p, T squares) {
  return 1 / std::sqrt(squares / static_cast<T>(p.width) + p.eps);
}

/// Both orders: y = w (x scale) value.
template <class T>
FORGE_INLINE void gated_token(const GatedLayout<T>& p,
                              const GatedToken<T>& token,
                              T* memory,
                              T* y) {
  T *x = memory, *value = x + p.width, *slope = value + p.width;
  for (int64_t first = 0; first < p.channels; first += p.width) {
    const T scale = group_scale(p, gate_group(p, token, first, x, value, slope));
    T* out = y + first;
#pragma omp simd
    for (int64_t c = 0; c < p.width; ++c) out[c] = p.weight[c] * (x[c] * scale) * value[c];
  }
}

/// Gradients of one token, and sums over tokens.
template <class T>
struct GatedTokenGradients {
  T *o, *gate, *skip;
  T *weight, *bias, *factor;
};

/// The gradient of the skip from that of what is normed, `first` its first channel.
template <class T>
FORGE_INLINE void skip_gradient(const GatedLayout<T>& p,
                                const GatedToken<T>& token,
                                int64_t first,
                                const GatedTokenGradients<T>& grad) {
  for (int64_t c = first; c < first + p.width;) {
    const int64_t head = c / p.head_width;
    const int64_t end = std::min(first + p.width, (head + 1) * p.head_width);
    const T factor = p.factor[head];
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = c; i < end; ++i) {
      grad.skip[i] = factor * grad.o[i];
      sum += grad.o[i] * token.skip[i];
    }
    grad.factor[head] += sum;
    c = end;
  }
}

/// With n = u scale, u what is normed: du = scale (dn - n mean(dn n)).
template <class T>
FORGE_INLINE void gated_token_gradient(const GatedLayout<T>& p,
                                       const GatedToken<T>& token,
                                       const T* grad_y,
                                       T* memory,
                                       const GatedTokenGradients<T>& grad) {
  T *x = memory, *value = x + p.width, *slope = value + p.width;
  for (int64_t first = 0; first < p.channels; first += p.width) {
    const T scale = group_scale(p, gate_group(p, token, first, x, value, slope));
    const T *up = grad_y + first, *w = p.weight;
    T *of_o = grad.o + first, *of_gate = grad.gate + first, *of_w = grad.weight, mean = 0;
    // Of n times n; in both orders it is that of y times y.
#pragma omp simd reduction(+ : mean)
    for (int64_t c = 0; c < p.width; ++c) mean += up[c] * w[c] * x[c] * value[c];
    mean *= scale / static_cast<T>(p.width);
    if (p.gate_first) {
#pragma omp simd
      for (int64_t c = 0; c < p.width; ++c) {
        const T n = x[c] * value[c] * scale;
        of_w[c] += up[c] * n;
        const T of_u = scale * (up[c] * w[c] - n * mean);
        of_o[c] = of_u * value[c];
        of_gate[c] = of_u * x[c] * slope[c];
      }
    } else {
#pragma omp simd
      for (int64_t c = 0; c < p.width; ++c) {
        const T n = x[c] * scale;
        of_w[c] += up[c] * n * value[c];
        of_o[c] = scale * (up[c] * w[c] * value[c] - n * mean);
        of_gate[c] = up[c] * w[c] * n * slope[c];
      }
    }
    if (grad.bias) {
      T* sum = grad.bias + first;
#pragma omp simd
      for (int64_t c = 0; c < p.width; ++c) sum[c] += of_gate[c];
    }
    if (token.skip) skip_gradient(p, token, first, grad);
  }
}

/// o and its like are [N, C]. The rows of the gate may lie apart, all else is contiguous.
struct GatedArguments {
  double eps;
  bool gate_first;
};

template <class T>
const T* data_or_null(const at::Tensor& x) {
  return x.defined() ? x.data_ptr<T>() : nullptr;
}

/// The saved tensors by their places.
struct GatedTensors {
  at::Tensor o, gate, weight, bias, skip, factor;

  explicit GatedTensors(const variable_list& list)
      : o(list[0]),
        gate(list[1]),
        weight(list[2]),
        bias(or_undefined(list[3])),
        skip(or_undefined(list[4])),
        factor(or_undefined(list[5])) {}

  template <class T>
  GatedLayout<T> layout(const GatedArguments& arguments) const {
    const int64_t channels = o.size(1);
    return {channels,
            weight.size(0),
            factor.defined() ? channels / factor.size(0) : channels,
            arguments.gate_first,
            static_cast<T>(arguments.eps),
            weight.data_ptr<T>(),
            data_or_null<T>(factor)};
  }
  template <class T>
  GatedToken<T> token(int64_t row) const {
    const int64_t first = row * o.size(1);
    return {o.data_ptr<T>() + first,
            gate.data_ptr<T>() + row * row_stride(gate),
            data_or_null<T>(bias),
            skip.defined() ? skip.data_ptr<T>() + first : nullptr};
  }
};

void gated_norm_forward_cpu(const GatedTensors& in,
                            const GatedArguments& arguments,
                            const at::Tensor& y) {
  with_element_type(in.o.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const auto p = in.layout<T>(arguments);
    for_each_row_chunk(in.o.size(0), [&](int64_t, int64_t begin, int64_t end) {
      std::vector<T> memory(3 * p.width);
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row)
          gated_token(p, in.token<T>(row), memory.data(), y.data_ptr<T>() + row * p.channels);
      });
    });
  });
}

/// What gated_norm_backward returns, on a CPU.
GatedNormGradients gated_norm_backward_cpu(const GatedTensors& in,
                                           const GatedArguments& arguments,
                                           const at::Tensor& grad_y) {
  const int64_t rows = in.o.size(0), chunks = chunk_count(rows);
  // Sums over the tokens of each chunk: of weight, bias and factor side by side.
  const int64_t bias_size = in.bias.defined() ? in.bias.size(0) : 0;
  const int64_t heads = in.factor.defined() ? in.factor.size(0) : 0;
  const int64_t width = in.weight.size(0);
  const at::Tensor sums = at::zeros({chunks, width + bias_size + heads}, in.o.options());
  const auto like_o = [&] { return at::empty(in.o.sizes(), in.o.options()); };
  GatedNormGradients grads;
  grads.o = like_o();
  grads.gate = like_o();
  if (heads > 0) grads.skip = like_o();
  with_element_type(in.o.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const auto p = in.layout<T>(arguments);
    for_each_row_chunk(rows, [&](int64_t chunk, int64_t begin, int64_t end) {
      std::vector<T> memory(3 * p.width);
      T* sum = sums.data_ptr<T>() + chunk * sums.size(1);
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row * p.channels;
          const GatedTokenGradients<T> grad{grads.o.data_ptr<T>() + first,
                                            grads.gate.data_ptr<T>() + first,
                                            heads > 0 ? grads.skip.data_ptr<T>() + first : nullptr,
                                            sum,
                                            bias_size > 0 ? sum + width : nullptr,
                                            sum + width + bias_size};
          const T* upstream = grad_y.data_ptr<T>() + first;
          gated_token_gradient(p, in.token<T>(row), upstream, memory.data(), grad);
        }
      });
    });
  });
  const std::vector<at::Tensor> parts = sums.sum(0).split_with_sizes({width, bias_size, heads});
  grads.weight = parts[0];
  if (bias_size > 0) grads.bias = parts[1];
  if (heads > 0) grads.factor = parts[2];
  return grads;
}

/// The saved tensors as the operation takes them.
GatedNormInputs inputs_of(const GatedTensors& in, const GatedArguments& arguments) {
  return {in.o,
          in.gate,
          {in.weight, in.bias, arguments.eps, arguments.gate_first},
          {in.skip, in.factor}};
}

struct GatedNormArguments {
  GatedArguments norm;
  WeightMatrix matrix;                       ///< of the product that follows; undefined: none does
  bool adds;                                 ///< a residual
  std::shared_ptr<RecomputedTensors> again;  ///< of the skip; or null
};

void gated_norm_pass(const GatedTensors& in, const GatedArguments& arguments, at::Tensor& y) {
  in.o.is_cuda() ? gated_norm_forward_cuda(inputs_of(in, arguments), y)
                 : gated_norm_forward_cpu(in, arguments, y);
}

/// y again, if it is defined, and the gradients of sum(y * grad_y).
GatedNormGradients gated_norm_gradients(const GatedTensors& in,
                                        const GatedArguments& arguments,
                                        const at::Tensor& grad_y,
                                        at::Tensor& y) {
  if (in.o.is_cuda()) return gated_norm_backward_cuda(inputs_of(in, arguments), grad_y, y);
  if (y.defined()) gated_norm_forward_cpu(in, arguments, y);
  return gated_norm_backward_cpu(in, arguments, grad_y);
}

/// All but the gate, which may be a part of a wider tensor, are contiguous rows.
struct GatedNormFunction : public torch::autograd::Function<GatedNormFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& o,
                            const at::Tensor& gate,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const at::Tensor& skip,
                            const at::Tensor& factor,
                            const at::Tensor&,  // the matrix
                            const at::Tensor& residual,
                            const GatedNormArguments& arguments,
                            const std::vector<at::Tensor>& sources) {
    const variable_list inputs = {o, gate, weight, bias, skip, factor};
    variable_list kept = inputs;
    if (arguments.again) {
      arguments.again->add_user();
      kept[4] = at::empty({0}, at::kInt);
      kept.insert(kept.end(), sources.begin(), sources.end());
    }
    context->save_for_backward(kept);
    keep_arguments(context, arguments);
    at::Tensor y = at::empty(o.sizes(), o.options());
    gated_norm_pass(GatedTensors(inputs), arguments.norm, y);
    if (!arguments.matrix.defined()) return y;
    const at::Tensor& w = arguments.matrix.operand();
    at::Tensor out = at::empty({o.size(0), w.size(0)}, o.options());
    linear_forward(as_operand(y, w.scalar_type()), w, or_undefined(residual), out);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    variable_list kept = context->get_saved_variables();
    const auto arguments = kept_arguments<GatedNormArguments>(context);
    const auto& [norm, matrix, adds, again] = arguments;
    if (again) kept[4] = again->take({kept.begin() + 6, kept.end()})[2].reshape(kept[0].sizes());
    const GatedTensors in(kept);
    const at::Tensor grad_out = grad_outputs[0].contiguous();
    at::Tensor grad_y = grad_out, y, grad_w;
    if (!matrix.defined()) {
      const GatedNormGradients grads = gated_norm_gradients(in, norm, grad_y, y);
      return {
          grads.o, grads.gate, grads.weight, grads.bias, grads.skip, grads.factor, {}, {}, {}, {}};
    }
    const at::Tensor& w = matrix.operand();
    const at::Tensor grad = as_operand(grad_out, w.scalar_type());
    y = at::empty(in.o.sizes(), in.o.options());
    grad_y = at::empty(in.o.sizes(), in.o.options());
    linear_backward_x(grad, w, grad_y);
    const GatedNormGradients grads = gated_norm_gradients(in, norm, grad_y, y);
    grad_w = empty_gradient(matrix.stored);
    linear_backward_w(grad, as_operand(y, w.scalar_type()), grad_w);
    return {grads.o,
            grads.gate,
            grads.weight,
            grads.bias,
            grads.skip,
            grads.factor,
            grad_w,
            adds ? grad_out : at::Tensor(),
            {},
            {}};
  }
};

/// Whether there is a kernel for gated_norm.
bool is_fused(const at::Tensor& o,
              const at::Tensor& gate,
              const GatedNorm& norm,
              const HeadSkip& skip) {
  const auto has_type = [](const at::Tensor& x, at::ScalarType type) {
    return !x.defined() || x.scalar_type() == type;
  };
  const at::ScalarType small = small_weight_type(o), type = o.scalar_type();
  const bool has_kernel =
      has_cpu_kernel(o) || (has_cuda_kernel(o) && cuda_gated_norm_supports(o, norm, skip));
  return has_kernel && has_type(norm.weight, small) && has_type(norm.gate_bias, small) &&
         has_type(skip.factor, small) && has_type(gate, type) && has_type(skip.x, type);
}

/// gated_norm where is_fused, and the product with the matrix if it is defined.
at::Tensor fused_gated_norm(const at::Tensor& o,
                            const at::Tensor& gate,
                            const GatedNorm& norm,
                            const HeadSkip& skip,
                            const WeightMatrix& matrix,
                            const at::Tensor& residual) {
  const auto rows = [](const at::Tensor& x) {
    return x.defined() ? whole_vectors(x).view({-1, x.size(-1)}) : x;
  };
  std::vector<int64_t> shape = o.sizes().vec();
  if (matrix.defined()) shape.back() = matrix.operand().size(0);
  return GatedNormFunction::apply(
             rows(o),
             rows_in_one_piece(gate),
             norm.weight.contiguous(),
             or_empty(norm.gate_bias),
             or_empty(rows(skip.x)),
             or_empty(skip.factor),
             or_empty(matrix.stored),
             or_empty(rows(residual)),
             GatedNormArguments{
                 {norm.eps, norm.gate_first}, matrix, residual.defined(), skip.again.tensors},
             skip.again.sources)
      .view(shape);
}

void check_gated_norm_shapes(const at::Tensor& o,
                             const at::Tensor& gate,
                             const GatedNorm& norm,
                             const HeadSkip& skip) {
  const int64_t channels = o.size(-1), width = norm.weight.size(0);
  TORCH_CHECK(gate.sizes() == o.sizes() && channels % width == 0,
              "gated_norm: o and gate must be [B, T, C] with C a multiple of ",
              width,
              ", are ",
              o.sizes(),
              " and ",
              gate.sizes());
  TORCH_CHECK(!norm.gate_bias.defined() || norm.gate_bias.numel() == channels,
              "gated_norm: the gate's bias must be [",
              channels,
              "], is ",
              norm.gate_bias.sizes());
  TORCH_CHECK(
      !skip.x.defined() || (skip.x.sizes() == o.sizes() && channels % skip.factor.size(0) == 0),
      "gated_norm: the skip must be shaped as o, with a factor for each head");
}

}  // namespace

at::Tensor gated_norm(const at::Tensor& o,
                      const at::Tensor& gate,
                      const GatedNorm& norm,
                      const HeadSkip& skip) {
  check_gated_norm_shapes(o, gate, norm, skip);
  if (!is_fused(o, gate, norm, skip)) return gated_norm_reference(o, gate, norm, skip);
  return fused_gated_norm(o, gate, norm, skip, {}, {});
}

at::Tensor gated_norm_linear(const at::Tensor& o,
                             const at::Tensor& gate,
                             const GatedNorm& norm,
                             const HeadSkip& skip,
                             const WeightMatrix& w,
                             const at::Tensor& residual) {
  check_gated_norm_shapes(o, gate, norm, skip);
  TORCH_CHECK(w.operand().dim() == 2 && w.operand().size(1) == o.size(-1),
              "gated_norm_linear: w must be [any, ",
              o.size(-1),
              "], is ",
              w.operand().sizes());
  const bool fused =
      is_fused(o, gate, norm, skip) && has_product_kernel(o, w.operand().scalar_type());
  return fused ? fused_gated_norm(o, gate, norm, skip, contiguous(w), residual)
               : linear(gated_norm(o, gate, norm, skip), w, residual);
}

}  // namespace forge::ops
