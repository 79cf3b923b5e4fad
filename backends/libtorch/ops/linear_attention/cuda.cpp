#include "backends/libtorch/ops/linear_attention/cuda.h"

#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/linear_attention/linear_attention.h"

namespace forge::ops {
namespace {

using Arguments = cuda::LinearAttentionArguments;

/// x as the kernels read it: rows that begin at words of 16 bytes.
at::Tensor with_aligned_rows(const at::Tensor& x) {
  const bool aligned = x.stride(3) == 1 && x.stride(0) % 8 == 0 && x.stride(1) % 8 == 0 &&
                       x.stride(2) % 8 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
  return aligned ? x : x.contiguous();
}

cuda::TokenRows token_rows(const at::Tensor& x) {
  return {
      cuda::read<cuda::bfloat16>(x), x.stride(0), x.stride(1), x.size(2) == 1 ? 0 : x.stride(2)};
}

/// Inputs as the kernels read them, and the scratch memory that both passes use.
struct Call {
  at::Tensor q, k, v;
  std::vector<at::Tensor> scratch;
  Arguments arguments{};

  at::Tensor take(at::IntArrayRef shape, at::ScalarType type) {
    scratch.push_back(at::empty(shape, v.options().dtype(type)));
    return scratch.back();
  }

  Call(const LinearAttentionInputs& in, const LinearAttentionOptions& options)
      : q(with_aligned_rows(in.q)), k(with_aligned_rows(in.k)), v(with_aligned_rows(in.v)) {
    const int64_t batch = v.size(0), length = v.size(1), heads = v.size(2), keys = k.size(3);
    const int64_t chunks = (length + 63) / 64;
    const auto halves = [&](at::IntArrayRef shape) {
      return cuda::write<cuda::bfloat16>(take(shape, at::kBFloat16));
    };
    Arguments& a = arguments;
    a.kind = options.delta_rule        ? cuda::Recurrence::delta_rule
             : in.log_decay.dim() == 4 ? cuda::Recurrence::channel_decay
                                       : cuda::Recurrence::scalar_decay;
    a.batch = batch;
    a.length = length;
    a.heads = heads;
    a.keys = keys;
    a.values = v.size(3);
    a.heads_of_block = 1;
    a.scale = static_cast<float>(options.scale);
    a.q = token_rows(q);
    a.k = token_rows(k);
    a.v = token_rows(v);
    a.log_decay = cuda::read<float>(in.log_decay);
    a.beta = cuda::read<float>(in.beta);
    a.state = cuda::read<float>(in.state);
    if (a.kind == cuda::Recurrence::scalar_decay) {
      a.products = cuda::write<float>(take({batch, k.size(2), chunks, 64, 64}, at::kFloat));
    } else {
      a.scores = halves({batch, heads, chunks, 64, 64});
      a.whole = cuda::write<float>(take({batch, heads, chunks, keys}, at::kFloat));
      a.q_begin = halves({batch, heads, chunks, 64, keys});
      a.k_end = halves({batch, heads, chunks, 64, keys});
    }
    if (options.delta_rule) {
      a.inverse = halves({batch, heads, chunks, 64, 64});
      a.k_begin = halves({batch, heads, chunks, 64, keys});
    }
  }
};

}  // namespace

void linear_attention_forward_cuda(const LinearAttentionInputs& inputs,
                                   const LinearAttentionOptions& options,
                                   LinearAttention& results) {
  Call call(inputs, options);
  call.arguments.output = cuda::write<cuda::bfloat16>(results.output);
  call.arguments.final_state = cuda::write<float>(results.state);
  cuda::linear_attention_forward(call.arguments, cuda::current_stream());
}

void linear_attention_backward_cuda(const LinearAttentionInputs& inputs,
                                    const LinearAttentionOptions& options,
                                    const LinearAttention& upstream,
                                    LinearAttentionInputs& gradients) {
  Call call(inputs, options);
  Arguments& a = call.arguments;
  const int64_t chunks = (a.length + 63) / 64;
  const auto halves = [&](at::IntArrayRef shape) {
    return cuda::write<cuda::bfloat16>(call.take(shape, at::kBFloat16));
  };
  a.grad_output = cuda::read<cuda::bfloat16>(upstream.output);
  a.grad_final_state = cuda::read<float>(upstream.state);
  a.states = halves({a.batch, a.heads, chunks, a.keys, a.values});
  a.grad_states = halves({a.batch, a.heads, chunks, a.keys, a.values});
  if (options.delta_rule) {
    a.writes = halves({a.batch, a.length, a.heads, a.values});
    a.grad_writes = halves({a.batch, a.length, a.heads, a.values});
  }
  at::Tensor q_groups, k_groups;
  int64_t groups = a.heads;
  if (inputs.k.size(2) != a.heads) {
    // Few groups write little; enough of them keep a GPU busy. By shapes alone, so that the order
    // of the sums is that of all machines.
    constexpr int64_t enough_blocks = 1024, most_heads = cuda::most_heads_of_block;
    const int64_t of_group = a.batch * chunks;
    groups = std::min(a.heads, (enough_blocks + of_group - 1) / of_group);
    a.heads_of_block = static_cast<int>(std::min((a.heads + groups - 1) / groups, most_heads));
    groups = (a.heads + a.heads_of_block - 1) / a.heads_of_block;
  }
  if (inputs.k.size(2) != groups) {
    q_groups = call.take({a.batch, a.length, groups, a.keys}, at::kFloat);
    k_groups = call.take({a.batch, a.length, groups, a.keys}, at::kFloat);
    a.grad_q_groups = cuda::write<float>(q_groups);
    a.grad_k_groups = cuda::write<float>(k_groups);
  } else {
    a.grad_q = cuda::write<cuda::bfloat16>(gradients.q);
    a.grad_k = cuda::write<cuda::bfloat16>(gradients.k);
  }
  a.grad_v = cuda::write<cuda::bfloat16>(gradients.v);
  a.grad_log_decay = cuda::write<float>(gradients.log_decay);
  a.grad_beta = cuda::write<float>(gradients.beta);
  a.grad_state = cuda::write<float>(gradients.state);
  cuda::linear_attention_backward(a, cuda::current_stream());
  if (q_groups.defined()) {
    gradients.q = q_groups.sum(2, true).to(at::kBFloat16);
    gradients.k = k_groups.sum(2, true).to(at::kBFloat16);
  }
}

}  // namespace forge::ops
