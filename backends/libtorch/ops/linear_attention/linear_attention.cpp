#include "backends/libtorch/ops/linear_attention/linear_attention.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

void check_shapes(const LinearAttentionInputs& in, const LinearAttentionOptions& options) {
  TORCH_CHECK(in.v.dim() == 4, "linear_attention: v must be [B, T, H, V], is ", in.v.sizes());
  const int64_t batch = in.v.size(0), length = in.v.size(1), heads = in.v.size(2);
  TORCH_CHECK(in.k.dim() == 4 && in.q.sizes() == in.k.sizes() && in.k.size(0) == batch &&
                  in.k.size(1) == length && (in.k.size(2) == heads || in.k.size(2) == 1),
              "linear_attention: q and k must be [",
              batch,
              ", ",
              length,
              ", ",
              heads,
              " or 1, K], are ",
              in.q.sizes(),
              " and ",
              in.k.sizes());
  const int64_t keys = in.k.size(3);
  const std::vector<int64_t> tokens = {batch, length, heads};
  const bool channel_decay = in.log_decay.dim() == 4;
  std::vector<int64_t> decays = tokens;
  if (channel_decay) decays.push_back(keys);
  TORCH_CHECK(in.log_decay.sizes() == decays,
              "linear_attention: log_decay must be ",
              at::IntArrayRef(decays),
              ", is ",
              in.log_decay.sizes());
  TORCH_CHECK(!in.beta.defined() || in.beta.sizes() == tokens,
              "linear_attention: beta must be ",
              at::IntArrayRef(tokens),
              ", is ",
              in.beta.sizes());
  const std::vector<int64_t> state = {batch, heads, keys, in.v.size(3)};
  TORCH_CHECK(!in.state.defined() || in.state.sizes() == state,
              "linear_attention: the state must be ",
              at::IntArrayRef(state),
              ", is ",
              in.state.sizes());
  TORCH_CHECK(!channel_decay || (!in.beta.defined() && !options.delta_rule),
              "linear_attention: a decay for each row goes with neither beta nor the delta rule");
  TORCH_CHECK(!channel_decay || in.k.size(2) == heads,
              "linear_attention: a decay for each row needs a q and k for each head");
  TORCH_CHECK(!options.delta_rule || (in.beta.defined() && in.k.size(2) == heads),
              "linear_attention: the delta rule needs beta, and a q and k for each head");
}

/// With vectors in one piece each.
at::Tensor with_vectors(const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

/// An undefined tensor is an empty one, as for or_empty.
LinearAttentionInputs inputs_of(const variable_list& list) {
  return {list[0], list[1], list[2], list[3], or_undefined(list[4]), or_undefined(list[5])};
}
variable_list list_of(const LinearAttentionInputs& in) {
  return {in.q, in.k, in.v, in.log_decay, or_empty(in.beta), or_empty(in.state)};
}

/// As the kernels read them. A CPU computes bfloat16 in float32; a GPU reads tokens of bfloat16
/// beside numbers of float32.
LinearAttentionInputs in_kernel_types(const LinearAttentionInputs& in) {
  const at::ScalarType type = in.v.scalar_type();
  const at::ScalarType wide = type == at::kBFloat16 ? at::kFloat : type;
  const at::ScalarType of_tokens = in.v.is_cuda() ? type : wide;
  const auto token = [&](const at::Tensor& x) { return with_vectors(x.to(of_tokens)); };
  const auto number = [&](const at::Tensor& x) {
    return x.defined() ? x.to(wide).contiguous() : x;
  };
  return {token(in.q),
          token(in.k),
          token(in.v),
          number(in.log_decay),
          number(in.beta),
          number(in.state)};
}

struct LinearAttentionArguments {
  LinearAttentionOptions options;
  std::shared_ptr<RecomputedTensors> again;  ///< null: the inputs are kept
};

struct LinearAttentionFunction : public torch::autograd::Function<LinearAttentionFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& q,
                               const at::Tensor& k,
                               const at::Tensor& v,
                               const at::Tensor& log_decay,
                               const at::Tensor& beta,
                               const at::Tensor& state,
                               const LinearAttentionOptions& options,
                               const Recomputation& again) {
    context->set_materialize_grads(false);
    const variable_list inputs = {q, k, v, log_decay, beta, state};
    if (again.tensors) {
      again.tensors->add_user();
      variable_list kept = {state};
      kept.insert(kept.end(), again.sources.begin(), again.sources.end());
      context->save_for_backward(kept);
    } else {
      context->save_for_backward(inputs);
    }
    keep_arguments(context, LinearAttentionArguments{options, again.tensors});
    LinearAttention results{
        at::empty(v.sizes(), v.options()),
        at::empty({v.size(0), v.size(2), k.size(3), v.size(3)}, log_decay.options())};
    (v.is_cuda() ? linear_attention_forward_cuda : linear_attention_forward_cpu)(
        inputs_of(inputs), options, results);
    return {results.output, results.state};
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const auto arguments = kept_arguments<LinearAttentionArguments>(context);
    const LinearAttentionInputs inputs = kept_inputs(context, arguments);
    LinearAttention upstream{contiguous(grad_outputs[0]), contiguous(grad_outputs[1])};
    if (!upstream.output.defined())
      upstream.output = at::zeros(inputs.v.sizes(), inputs.v.options());
    const auto like = [](const at::Tensor& x) {
      return x.defined() ? at::empty(x.sizes(), x.options()) : at::Tensor();
    };
    LinearAttentionInputs grads{like(inputs.q),
                                like(inputs.k),
                                like(inputs.v),
                                like(inputs.log_decay),
                                like(inputs.beta),
                                like(inputs.state)};
    (inputs.v.is_cuda() ? linear_attention_backward_cuda : linear_attention_backward_cpu)(
        inputs, arguments.options, upstream, grads);
    return {grads.q, grads.k, grads.v, grads.log_decay, grads.beta, grads.state, {}, {}};
  }

 private:
  static LinearAttentionInputs kept_inputs(AutogradContext* context,
                                           const LinearAttentionArguments& arguments) {
    const variable_list kept = context->get_saved_variables();
    if (!arguments.again) return inputs_of(kept);
    variable_list list = arguments.again->take({kept.begin() + 1, kept.end()});
    return in_kernel_types({list[0], list[1], list[2], list[3], list[4], or_undefined(kept[0])});
  }
};

}  // namespace

bool cuda_linear_attention_supports(const LinearAttentionInputs& in) {
  const int64_t keys = in.k.size(3), values = in.v.size(3);
  constexpr int64_t most_blocks = 65535;  // of a grid's second and third dimension
  return has_cuda_kernel(in.v) && in.v.scalar_type() == at::kBFloat16 && in.v.numel() > 0 &&
         (keys == 32 || keys == 64 || keys == 128) && values % 16 == 0 &&
         in.v.size(0) <= most_blocks && in.v.size(2) <= most_blocks;
}

LinearAttention linear_attention(const LinearAttentionInputs& inputs,
                                 const LinearAttentionOptions& options) {
  return recomputed_linear_attention(inputs, options, {});
}

LinearAttention recomputed_linear_attention(const LinearAttentionInputs& inputs,
                                            const LinearAttentionOptions& options,
                                            const Recomputation& again) {
  check_shapes(inputs, options);
  const at::ScalarType type = inputs.v.scalar_type();
  const bool has_kernels = cuda_linear_attention_supports(inputs) || has_cpu_kernel(inputs.v) ||
                           (inputs.v.is_cpu() && type == at::kBFloat16);
  if (!has_kernels) return linear_attention_composed(inputs, options);
  const variable_list list = list_of(in_kernel_types(inputs));
  const variable_list results = LinearAttentionFunction::apply(
      list[0], list[1], list[2], list[3], list[4], list[5], options, again);
  return {results[0].to(type), results[1]};
}

}  // namespace forge::ops
