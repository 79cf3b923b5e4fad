// The chunk forms of plain Torch operations, for devices and types without kernels: as many
// sequential steps as a row has chunks, where the recurrence has as many as it has tokens.

#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// With a decay for each channel, differences of all pairs of tokens are formed: T tokens take T *
/// chunk * K numbers, so these chunks are shorter.
constexpr int64_t tokens_of_chunk(bool channel_decay) { return channel_decay ? 16 : 64; }

/// x [B, T, H or 1, …] as [B, H, chunks, tokens, …], zeros behind the last token.
at::Tensor in_chunks(const at::Tensor& x, int64_t heads, int64_t tokens, at::ScalarType type) {
  const int64_t length = x.size(1), chunks = (length + tokens - 1) / tokens;
  std::vector<int64_t> padding(static_cast<size_t>(2 * (x.dim() - 1)), 0);
  padding.back() = chunks * tokens - length;
  at::Tensor y = at::constant_pad_nd(x.to(type), padding).transpose(1, 2);
  std::vector<int64_t> shape = y.sizes().vec();
  shape[1] = heads;
  return y.expand(shape).unflatten(2, {chunks, tokens});
}

/// exp(later - earlier) of all pairs of a chunk's tokens, `dim` theirs; 0 where the earlier one
/// comes later. Not finite before the selection.
at::Tensor faded_pairs(const at::Tensor& sums, int64_t dim) {
  const int64_t tokens = sums.size(dim);
  at::Tensor is_later = at::ones({tokens, tokens}, sums.options().dtype(at::kBool)).triu(1);
  if (dim != sums.dim() - 1) is_later = is_later.unsqueeze(-1);
  const at::Tensor differences = sums.unsqueeze(dim + 1) - sums.unsqueeze(dim);
  return differences.clamp_max(0).masked_fill(is_later, -INFINITY).exp();
}

}  // namespace

LinearAttention linear_attention_composed(const LinearAttentionInputs& inputs,
                                          const LinearAttentionOptions& options) {
  const int64_t batch = inputs.v.size(0), length = inputs.v.size(1), heads = inputs.v.size(2);
  const int64_t keys = inputs.k.size(3), values = inputs.v.size(3);
  const bool channel_decay = inputs.log_decay.dim() == 4;
  const int64_t tokens = tokens_of_chunk(channel_decay);
  const at::ScalarType type =
      inputs.v.scalar_type() == at::kBFloat16 ? at::kFloat : inputs.v.scalar_type();
  const auto chunked = [&](const at::Tensor& x) { return in_chunks(x, heads, tokens, type); };
  const at::Tensor q = chunked(inputs.q), k = chunked(inputs.k), v = chunked(inputs.v);
  const at::Tensor sums = chunked(inputs.log_decay).cumsum(3);  // [B, H, chunks, tokens(, K)]
  const at::Tensor by_key = channel_decay ? sums : sums.unsqueeze(-1);
  const at::Tensor last = by_key.narrow(3, tokens - 1, 1);
  const at::Tensor q_begin = options.scale * q * by_key.exp();
  const at::Tensor k_end = k * (last - by_key).clamp_max(0).exp();
  const at::Tensor whole = last.exp().transpose(3, 4);  // [B, H, chunks, K or 1, 1]
  const at::Tensor pairs = faded_pairs(sums, 3);
  const at::Tensor products = channel_decay ? (q.unsqueeze(4) * k.unsqueeze(3) * pairs).sum(-1)
                                            : at::matmul(q, k.transpose(3, 4)) * pairs;
  const at::Tensor scores = options.scale * products;
  const at::Tensor beta =
      inputs.beta.defined() ? chunked(inputs.beta).unsqueeze(-1) : at::ones({}, v.options());
  at::Tensor system;  // unit lower triangular; what is on its diagonal is not read
  if (options.delta_rule) system = beta * at::matmul(k, k.transpose(3, 4)) * pairs;
  at::Tensor state = inputs.state.defined() ? inputs.state.to(type)
                                            : at::zeros({batch, heads, keys, values}, v.options());
  std::vector<at::Tensor> outputs;
  for (int64_t chunk = 0; chunk < v.size(2); ++chunk) {
    const auto of_chunk = [&](const at::Tensor& x) { return x.dim() > 0 ? x.select(2, chunk) : x; };
    at::Tensor written = of_chunk(v);
    if (options.delta_rule)
      written = written - of_chunk(by_key).exp() * at::matmul(of_chunk(k), state);
    written = of_chunk(beta) * written;
    if (options.delta_rule)
      written = at::linalg_solve_triangular(of_chunk(system), written, false, true, true);
    outputs.push_back(at::matmul(of_chunk(q_begin), state) + at::matmul(of_chunk(scores), written));
    state = of_chunk(whole) * state + at::matmul(of_chunk(k_end).transpose(2, 3), written);
  }
  if (outputs.empty()) return {at::zeros_like(inputs.v), state};
  const at::Tensor output = at::cat(outputs, 2).narrow(2, 0, length).transpose(1, 2).contiguous();
  return {output.to(inputs.v.scalar_type()), state.contiguous()};
}

}  // namespace forge::ops
