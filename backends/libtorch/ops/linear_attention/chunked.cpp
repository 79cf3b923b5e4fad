#include "backends/libtorch/ops/linear_attention/linear_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// x [B, T, H, ...] as [B, H, chunks, tokens, ...]; zeros behind the last token.
at::Tensor in_chunks(const at::Tensor& x, at::ScalarType type, int64_t tokens, int64_t heads) {
  if (!x.defined()) return x;
  const int64_t length = x.size(1), padding = (tokens - length % tokens) % tokens;
  std::vector<int64_t> pads(2 * (x.dim() - 1), 0);
  pads.back() = padding;  // that of dimension 1 comes last
  at::Tensor padded = at::constant_pad_nd(x.to(type), pads);
  std::vector<int64_t> sizes = padded.sizes().vec();
  sizes[2] = heads;
  return padded.expand(sizes).transpose(1, 2).unflatten(2, {-1, tokens});
}

/// exp of a difference that rounding alone can make positive.
at::Tensor faded(const at::Tensor& difference) { return difference.clamp_max(0).exp(); }

/// s q_i.k_j exp(b_i - b_j) for i >= j; `scale` s.
at::Tensor scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& sums, double scale) {
  if (sums.dim() == q.dim()) {  // a decay for each channel
    const at::Tensor decays = faded(sums.unsqueeze(4) - sums.unsqueeze(3));
    return ((scale * q).unsqueeze(4) * k.unsqueeze(3) * decays).sum(-1).tril();
  }
  const at::Tensor decays = faded(sums.unsqueeze(4) - sums.unsqueeze(3));
  return (scale * at::matmul(q, k.transpose(3, 4)) * decays).tril();
}

}  // namespace

LinearAttention linear_attention_chunked(const LinearAttentionInputs& inputs,
                                         const LinearAttentionOptions& options) {
  const at::Tensor& v = inputs.v;
  const int64_t batch = v.size(0), length = v.size(1), heads = v.size(2), values = v.size(3);
  const int64_t keys = inputs.k.size(3);
  if (v.numel() == 0 || keys == 0) return linear_attention_reference(inputs, options);
  const at::ScalarType type = v.scalar_type() == at::kBFloat16 ? at::kFloat : v.scalar_type();
  const bool channels = inputs.log_decay.dim() == 4;
  // The decays of channels differ for each pair of tokens: fewer of them at a time.
  const int64_t tokens = channels ? 16 : 64;
  const auto chunks = [&](const at::Tensor& x) { return in_chunks(x, type, tokens, heads); };
  const at::Tensor q = chunks(inputs.q), k = chunks(inputs.k), beta = chunks(inputs.beta);
  const at::Tensor sums = chunks(inputs.log_decay).cumsum(3);
  const at::Tensor last = sums.narrow(3, tokens - 1, 1);
  const auto rows = [&](const at::Tensor& x) { return channels ? x : x.unsqueeze(-1); };
  const at::Tensor q_begin = options.scale * q * rows(faded(sums));
  const at::Tensor k_end = (k * rows(faded(last - sums))).transpose(3, 4);
  const at::Tensor whole = rows(faded(last)).transpose(3, 4);  // [B, H, chunks, K or 1, 1]
  at::Tensor written = chunks(v), erased;
  if (beta.defined()) written = written * beta.unsqueeze(-1);
  if (options.delta_rule) {
    // U = (I + L)^-1 (beta V - beta e K S): both parts for all chunks at once.
    const at::Tensor lower = beta.unsqueeze(-1) * scores(k, k, sums, 1).tril(-1);
    const auto solved = [&](const at::Tensor& x) {
      return at::linalg_solve_triangular(
          lower, x, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
    };
    written = solved(written);
    erased = solved(k * (beta * faded(sums)).unsqueeze(-1));
  }
  at::Tensor state = inputs.state.defined()
                         ? inputs.state.to(type)
                         : at::zeros({batch, heads, keys, values}, v.options().dtype(type));
  std::vector<at::Tensor> states, writes;
  for (int64_t chunk = 0; chunk < q.size(2); ++chunk) {
    states.push_back(state);
    at::Tensor own = written.select(2, chunk);
    if (options.delta_rule) own = own - at::matmul(erased.select(2, chunk), state);
    writes.push_back(own);
    state = whole.select(2, chunk) * state + at::matmul(k_end.select(2, chunk), own);
  }
  const at::Tensor output = at::matmul(q_begin, at::stack(states, 2)) +
                            at::matmul(scores(q, k, sums, options.scale), at::stack(writes, 2));
  return {
      output.flatten(2, 3).narrow(2, 0, length).transpose(1, 2).contiguous().to(v.scalar_type()),
      state};
}

}  // namespace forge::ops
