#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

LinearAttention linear_attention_reference(const LinearAttentionInputs& inputs,
                                           const LinearAttentionOptions& options) {
  const at::Tensor& v = inputs.v;
  const int64_t batch = v.size(0), length = v.size(1), heads = v.size(2), values = v.size(3);
  const int64_t keys = inputs.k.size(3);
  const at::ScalarType type = v.scalar_type() == at::kBFloat16 ? at::kFloat : v.scalar_type();
  at::Tensor state = inputs.state.defined()
                         ? inputs.state.to(type)
                         : at::zeros({batch, heads, keys, values}, v.options().dtype(type));
  std::vector<at::Tensor> outputs;
  for (int64_t t = 0; t < length; ++t) {
    const auto token = [&](const at::Tensor& x) { return x.select(1, t).to(type); };
    const auto of_heads = [&](const at::Tensor& x) {
      return token(x).expand({batch, heads, keys});
    };
    const at::Tensor q = of_heads(inputs.q), k = of_heads(inputs.k);
    at::Tensor decay = token(inputs.log_decay).exp();
    if (decay.dim() == 2) decay = decay.unsqueeze(-1);
    state = decay.unsqueeze(-1) * state;
    at::Tensor written = token(v);
    if (options.delta_rule) written = written - (k.unsqueeze(-1) * state).sum(2);
    if (inputs.beta.defined()) written = written * token(inputs.beta).unsqueeze(-1);
    state = state + k.unsqueeze(-1) * written.unsqueeze(2);
    outputs.push_back(options.scale * (q.unsqueeze(-1) * state).sum(2));
  }
  const at::Tensor output =
      outputs.empty() ? at::zeros_like(v, v.options().dtype(type)) : at::stack(outputs, 1);
  return {output.to(v.scalar_type()), state};
}

}  // namespace forge::ops
