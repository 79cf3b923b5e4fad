#include "backends/libtorch/ops/common/activation.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

HeadGates head_gates_reference(const HeadGateLogits& logits) {
  const at::ScalarType type = logits.a_log.scalar_type();
  const at::Tensor s = at::softplus(logits.step.to(type) + logits.step_bias);
  return {s * -logits.a_log.exp(), logits.write.defined() ? at::sigmoid(logits.write.to(type)) : s};
}

namespace {

/// log(1 + e^x)
template <class T>
FORGE_INLINE T softplus(T x) {
  return -log_sigmoid(-x);
}

HeadGateLogits logits_of(const variable_list& saved) {
  return {saved[0], or_undefined(saved[1]), saved[2], saved[3]};
}

/// A CPU's loops over heads. T is the type of all tensors.
template <class T>
struct GateHeads {
  int64_t count;
  std::vector<T> rate;  ///< -exp(a_log)
  const T* bias;
  const T *step, *write;  ///< write: null
  int64_t step_stride, write_stride;

  explicit GateHeads(const HeadGateLogits& logits)
      : count(logits.a_log.size(0)),
        rate(count),
        bias(logits.step_bias.data_ptr<T>()),
        step(logits.step.data_ptr<T>()),
        write(logits.write.defined() ? logits.write.data_ptr<T>() : nullptr),
        step_stride(row_stride(logits.step)),
        write_stride(write ? row_stride(logits.write) : 0) {
    const T* a = logits.a_log.data_ptr<T>();
    for (int64_t h = 0; h < count; ++h) rate[h] = -std::exp(a[h]);
  }
};

void head_gates_forward_cpu(const HeadGateLogits& logits, const HeadGates& gates) {
  with_element_type(logits.a_log.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GateHeads<T> p(logits);
    T *decay = gates.log_decay.data_ptr<T>(), *beta = gates.beta.data_ptr<T>();
    for_each_row_chunk(logits.step.size(0), [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t h = 0; h < p.count; ++h) {
          const T s = softplus(p.step[row * p.step_stride + h] + p.bias[h]);
          decay[row * p.count + h] = p.rate[h] * s;
          beta[row * p.count + h] = p.write ? sigmoid(p.write[row * p.write_stride + h]) : s;
        }
      }
    });
  });
}

void head_gates_backward_cpu(const HeadGateLogits& logits,
                             const HeadGates& grad_gates,
                             HeadGateLogits& grads) {
  const int64_t rows = logits.step.size(0), heads = logits.a_log.size(0);
  // Sums over the tokens of each chunk: of a_log and of the bias side by side.
  const at::Tensor sums = at::zeros({chunk_count(rows), 2 * heads}, logits.a_log.options());
  with_element_type(logits.a_log.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GateHeads<T> p(logits);
    const T* of_decay = grad_gates.log_decay.data_ptr<T>();
    const T* of_beta = grad_gates.beta.data_ptr<T>();
    T* of_step = grads.step.data_ptr<T>();
    T* of_write = p.write ? grads.write.data_ptr<T>() : nullptr;
    for_each_row_chunk(rows, [&](int64_t chunk, int64_t begin, int64_t end) {
      T* sum = sums.data_ptr<T>() + chunk * 2 * heads;
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t h = 0; h < heads; ++h) {
          const int64_t at = row * heads + h;
          const T z = p.step[row * p.step_stride + h] + p.bias[h];
          sum[h] += of_decay[at] * p.rate[h] * softplus(z);
          of_step[at] = (p.rate[h] * of_decay[at] + (p.write ? T(0) : of_beta[at])) * sigmoid(z);
          sum[heads + h] += of_step[at];
          if (!p.write) continue;
          const T b = sigmoid(p.write[row * p.write_stride + h]);
          of_write[at] = of_beta[at] * b * (1 - b);
        }
      }
    });
  });
  const std::vector<at::Tensor> parts = sums.sum(0).split(heads);
  grads.a_log = parts[0];
  grads.step_bias = parts[1];
}

/// Of rows [N, H].
struct HeadGatesFunction : public torch::autograd::Function<HeadGatesFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& step,
                               const at::Tensor& write,
                               const at::Tensor& a_log,
                               const at::Tensor& step_bias) {
    const variable_list saved = {step, write, a_log, step_bias};
    context->save_for_backward(saved);
    HeadGates gates{at::empty(step.sizes(), a_log.options()),
                    at::empty(step.sizes(), a_log.options())};
    step.is_cuda() ? head_gates_forward_cuda(logits_of(saved), gates)
                   : head_gates_forward_cpu(logits_of(saved), gates);
    return {gates.log_decay, gates.beta};
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const HeadGateLogits logits = logits_of(context->get_saved_variables());
    const HeadGates upstream{grad_outputs[0].contiguous(), grad_outputs[1].contiguous()};
    HeadGateLogits grads{at::empty(logits.step.sizes(), logits.step.options()), {}, {}, {}};
    if (logits.write.defined()) grads.write = at::empty(logits.step.sizes(), logits.step.options());
    (logits.step.is_cuda() ? head_gates_backward_cuda : head_gates_backward_cpu)(
        logits, upstream, grads);
    return {grads.step, grads.write, grads.a_log, grads.step_bias};
  }
};

}  // namespace

HeadGates head_gates(const HeadGateLogits& logits) {
  const auto& [step, write, a_log, step_bias] = logits;
  TORCH_CHECK(a_log.dim() == 1 && step_bias.sizes() == a_log.sizes() &&
                  step.size(-1) == a_log.size(0) &&
                  (!write.defined() || write.sizes() == step.sizes()),
              "head_gates: logits must be [..., ",
              a_log.size(0),
              "] alike, those of the step are ",
              step.sizes());
  constexpr int64_t most_heads = 256;
  const bool fused =
      a_log.scalar_type() == small_weight_type(step) &&
      step_bias.scalar_type() == a_log.scalar_type() &&
      (!write.defined() || write.scalar_type() == step.scalar_type()) &&
      (has_cpu_kernel(step) || (has_cuda_kernel(step) && step.size(-1) <= most_heads));
  if (!fused) return head_gates_reference(logits);
  const variable_list gates =
      HeadGatesFunction::apply(rows_in_one_piece(step),
                               write.defined() ? rows_in_one_piece(write) : or_empty(write),
                               a_log.contiguous(),
                               step_bias.contiguous());
  return {gates[0].view(step.sizes()), gates[1].view(step.sizes())};
}

}  // namespace forge::ops
