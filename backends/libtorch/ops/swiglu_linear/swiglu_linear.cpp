#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/ops/swiglu/cpu.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor swiglu_linear_reference(const at::Tensor& gate_up,
                                   const CanonLayer& canon,
                                   const WeightMatrix& w,
                                   const at::Tensor& residual) {
  const at::Tensor y =
      at::linear(swiglu_reference(canon_layer_reference(gate_up, canon)), w.differentiable());
  return residual.defined() ? residual + y : y;
}

namespace {

using canon::Chunk;
using canon::Tokens;

// Channels of gate, and as many of up, that the backward pass takes at a time through a chunk, so
// that all it touches stays in a core's L2 cache.
constexpr int64_t block_channels = 128;

/// One chunk and some channels of the backward pass: what it reads and writes.
template <class T, class Out>
struct BackwardBlock {
  Tokens<const T> gate_up;  ///< of the chunk's row, as grad_gate_up
  Tokens<T> grad_gate_up;
  Tokens<const T> grad_y;  ///< of the chunk's row, as y
  Tokens<Out> y;
  T* sums;    ///< of the chunk
  T* memory;  ///< for tokens of a block
};

/// The transposed convolution reads the gradients of K - 1 tokens behind a chunk. Two chunks
/// compute those; only the one that they belong to writes their y.
template <class T, class Out>
FORGE_INLINE void backward_block(const canon::Convolution<T>& p,
                                 const Chunk& chunk,
                                 int64_t first,
                                 int64_t count,
                                 const BackwardBlock<T, Out>& b) {
  const int64_t width = p.channels / 2;
  const int64_t halo_end = std::min(chunk.end + p.kernel - 1, p.length);
  // Gate and up side by side: first the convolution's output, then, over it, its gradient.
  const Tokens<T> convolved{b.memory, chunk.begin, 2 * count};
  for (const int half : {0, 1}) {
    const canon::Channels channels{half * width + first, count};
    const auto in = b.gate_up.from_channel(channels.first);
    canon::convolve(p, chunk.until(halo_end), channels, in, convolved.from_channel(half * count));
  }
  for (int64_t t = chunk.begin; t < halo_end; ++t) {
    T* c = convolved.at(t);
    if (t < chunk.end) {
      swiglu_token_both(count, c, b.grad_y.at(t) + first, c, b.y.at(t) + first);
    } else {
      swiglu_token_gradient(count, c, b.grad_y.at(t) + first, c);
    }
  }
  for (const int half : {0, 1}) {
    const canon::Channels channels{half * width + first, count};
    const Tokens<const T> upstream = convolved.from_channel(half * count).read();
    const auto in = b.gate_up.from_channel(channels.first);
    canon::accumulate_taps(p, chunk, channels, in, upstream, b.sums);
    canon::convolve_transposed(
        p, chunk, channels, upstream, b.grad_gate_up.from_channel(channels.first));
  }
}

}  // namespace

void canon_swiglu_forward_cpu(const at::Tensor& gate_up, const CanonLayer& canon, at::Tensor& y) {
  if (!canon.weight.defined()) return swiglu_forward_cpu(gate_up, y);
  with_operand_type(y.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const auto p = canon::convolution<T>(gate_up, canon);
    const int64_t width = y.size(2);
    canon::for_each_chunk<T>(p.batch, p.length, p.channels, [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(gate_up, chunk);
      Out* out = y.data_ptr<Out>() + chunk.row * p.length * width;
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          canon::convolve(p, chunk.token(t), p.all(), in, Tokens<T>{memory, t, p.channels});
          swiglu_token(width, memory, out + t * width);
        }
      });
    });
  });
}

void canon_swiglu_backward_cpu(const at::Tensor& gate_up,
                               const CanonLayer& canon,
                               const at::Tensor& grad_y,
                               at::Tensor& y,
                               at::Tensor& grad_gate_up,
                               at::Tensor& grad_canon) {
  if (!canon.weight.defined()) return swiglu_backward_cpu(gate_up, grad_y, y, grad_gate_up);
  with_operand_type(y.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const auto p = canon::convolution<T>(gate_up, canon);
    const int64_t width = y.size(2), size = p.kernel * p.channels;
    const int64_t chunks = p.chunk_count();
    const int64_t memory_size = (chunk_rows + canon::max_kernel) * 2 * block_channels;
    std::vector<T> sums(chunks * size, T(0));
    canon::for_each_chunk<T>(p.batch, p.length, memory_size, [&](const Chunk& chunk, T* memory) {
      const int64_t row = chunk.row * p.length * width;
      const BackwardBlock<T, Out> block{p.row_to_read(gate_up, chunk),
                                        p.template row_to_write<T>(grad_gate_up, chunk),
                                        {grad_y.data_ptr<T>() + row, 0, width},
                                        {y.data_ptr<Out>() + row, 0, width},
                                        sums.data() + chunk.index * size,
                                        memory};
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t first = 0; first < width; first += block_channels) {
          backward_block(p, chunk, first, std::min(block_channels, width - first), block);
        }
      });
    });
    with_simd([&]() FORGE_SIMD_BODY {
      canon::add_up_taps(p.channels, p.kernel, chunks, sums.data(), grad_canon.data_ptr<T>());
    });
  });
}

namespace {

struct SwigluLinearArguments {
  CanonLayer canon;
  WeightMatrix matrix;
  bool adds;  ///< a residual
  Numbers numbers;
};

/// The weights that autograd tracks are arguments of their own; their gradients are returned.
struct SwiGluLinear : public torch::autograd::Function<SwiGluLinear> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& gate_up,
                            const at::Tensor&,  // the convolution's weight
                            const at::Tensor& w,
                            const at::Tensor& residual,
                            const SwigluLinearArguments& arguments) {
    const auto& [layer, matrix, adds, numbers] = arguments;
    context->save_for_backward({gate_up});
    keep_arguments(context, arguments);
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor out = at::empty({batch, length, w.size(0)}, gate_up.options());
    if (numbers == Numbers::unset) return out;
    at::Tensor y = at::empty({batch, length, w.size(1)}, matrix.operand().options());
    gate_up.is_cuda() ? canon_swiglu_forward_cuda(gate_up, layer, y)
                      : canon_swiglu_forward_cpu(gate_up, layer, y);
    at::Tensor out_rows = token_rows(out);
    linear_forward(
        token_rows(y), matrix.operand(), adds ? token_rows(residual) : at::Tensor(), out_rows);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const auto arguments = kept_arguments<SwigluLinearArguments>(context);
    const auto& [layer, matrix, adds, numbers] = arguments;
    const at::Tensor& w = matrix.operand();
    const at::Tensor grad_out = grad_outputs[0].contiguous();
    const at::Tensor grad = as_operand(token_rows(grad_out), w.scalar_type());
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor y = at::empty({batch, length, w.size(1)}, w.options());
    at::Tensor grad_y = at::empty(y.sizes(), gate_up.options()), grad_y_rows = token_rows(grad_y);
    at::Tensor grad_gate_up = at::empty_like(gate_up), grad_canon;
    at::Tensor grad_w = empty_gradient(matrix.stored);
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    linear_backward_x(grad, w, grad_y_rows);
    const auto run = gate_up.is_cuda() ? canon_swiglu_backward_cuda : canon_swiglu_backward_cpu;
    run(gate_up, layer, grad_y, y, grad_gate_up, grad_canon);
    linear_backward_w(grad, token_rows(y), grad_w);
    return {grad_gate_up, grad_canon, grad_w, adds ? grad_out : at::Tensor(), {}};
  }
};

}  // namespace

at::Tensor swiglu_linear(const at::Tensor& gate_up,
                         const CanonLayer& canon,
                         const WeightMatrix& w,
                         const at::Tensor& residual,
                         Numbers numbers) {
  const at::Tensor& operand = w.operand();
  TORCH_CHECK(gate_up.dim() == 3 && operand.dim() == 2 && gate_up.size(2) == 2 * operand.size(1),
              "swiglu_linear: gate_up must be [batch, tokens, 2 * ",
              operand.dim() == 2 ? operand.size(1) : -1,
              "], is ",
              gate_up.sizes());
  TORCH_CHECK(!residual.defined() ||
                  (residual.dim() == 3 && residual.size(0) == gate_up.size(0) &&
                   residual.size(1) == gate_up.size(1) && residual.size(2) == operand.size(0)),
              "swiglu_linear: the residual must be [batch, tokens, ",
              operand.size(0),
              "], is ",
              residual.sizes());
  if (canon.weight.defined()) check_canon_shapes(gate_up, canon.weight, canon.doc_ids);
  const bool fused = has_product_kernel(gate_up, operand.scalar_type()) &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return ops::linear(swiglu(canon_layer(gate_up, canon)), w, residual, numbers);
  const SwigluLinearArguments arguments{
      contiguous(canon), contiguous(w), residual.defined(), numbers};
  return SwiGluLinear::apply(whole_vectors(gate_up),
                             or_empty(arguments.canon.weight),
                             arguments.matrix.stored,
                             or_empty(residual),
                             arguments);
}

}  // namespace forge::ops
