// Compiled optimised, unlike other tests, and without Torch.
#include "tests/support/emulated_linear_attention.h"

#include "tests/support/cuda_emulation.h"

#include "backends/libtorch/ops/linear_attention/cuda_launch.cuh"

namespace forge::tests {
namespace {

using ops::cuda::bfloat16;
static_assert(int(EmulatedLinearAttention::channel_decay) ==
              int(ops::cuda::Recurrence::channel_decay));

/// Scratch memory that begins as what is no number.
class Scratch {
 public:
  explicit Scratch(const EmulatedLinearAttention& call) {
    const int64_t chunks = (call.length + 63) / 64, all = call.batch * call.heads * chunks;
    for (auto& memory : squares_) memory = numbers(all * 64 * 64);
    for (auto& memory : operands_) memory = numbers(all * 64 * call.keys);
    for (auto& memory : states_) memory = numbers(all * call.keys * call.values);
    for (auto& memory : values_)
      memory = numbers(call.batch * call.length * call.heads * call.values);
    whole_.assign(all * call.keys, NAN);
    products_.assign(call.batch * call.key_heads * chunks * 64 * 64, NAN);
  }
  void give(ops::cuda::LinearAttentionArguments& in) {
    in.scores = start(squares_[0]);
    in.inverse = start(squares_[1]);
    in.q_begin = start(operands_[0]);
    in.k_end = start(operands_[1]);
    in.k_begin = start(operands_[2]);
    in.whole = whole_.data();
    if (in.kind == ops::cuda::Recurrence::scalar_decay) {
      in.scores = in.inverse = in.q_begin = in.k_end = in.k_begin = nullptr;
      in.whole = nullptr;
      in.products = products_.data();
    }
    in.states = start(states_[0]);
    in.grad_states = start(states_[1]);
    in.writes = start(values_[0]);
    in.grad_writes = start(values_[1]);
  }

 private:
  using Memory = std::vector<uint16_t>;
  static Memory numbers(int64_t count) { return Memory(count + 8, 0xffff); }
  static bfloat16* start(Memory& memory) { return reinterpret_cast<bfloat16*>(memory.data()); }
  Memory squares_[2], operands_[3], states_[2], values_[2];
  std::vector<float> whole_, products_;
};

ops::cuda::LinearAttentionArguments arguments_of(const EmulatedLinearAttention& call) {
  const auto halves = [](const uint16_t* p) { return reinterpret_cast<const bfloat16*>(p); };
  const auto out = [](uint16_t* p) { return reinterpret_cast<bfloat16*>(p); };
  const auto rows = [&](const uint16_t* p, int64_t heads, int64_t columns) {
    return ops::cuda::TokenRows{
        halves(p), call.length * heads * columns, heads * columns, heads == 1 ? 0 : columns};
  };
  ops::cuda::LinearAttentionArguments in{};
  in.kind = static_cast<ops::cuda::Recurrence>(call.kind);
  in.batch = call.batch;
  in.length = call.length;
  in.heads = call.heads;
  in.keys = call.keys;
  in.values = call.values;
  in.scale = call.scale;
  in.q = rows(call.q, call.key_heads, call.keys);
  in.k = rows(call.k, call.key_heads, call.keys);
  in.v = rows(call.v, call.heads, call.values);
  in.log_decay = call.log_decay;
  in.beta = call.beta;
  in.state = call.state;
  in.output = out(call.output);
  in.final_state = call.final_state;
  in.grad_output = halves(call.grad_output);
  in.grad_final_state = call.grad_final_state;
  in.heads_of_block = call.heads_of_block;
  in.grad_q = out(call.rounded_grad_q);
  in.grad_k = out(call.rounded_grad_k);
  in.grad_q_groups = call.grad_q;
  in.grad_k_groups = call.grad_k;
  in.grad_v = out(call.grad_v);
  in.grad_log_decay = call.grad_log_decay;
  in.grad_beta = call.grad_beta;
  in.grad_state = call.grad_state;
  return in;
}

void launch(void (*kernel)(ops::cuda::LinearAttentionArguments),
            unsigned x,
            unsigned y,
            unsigned z,
            size_t shared_bytes,
            const ops::cuda::LinearAttentionArguments& in) {
  cuda_emulation::launch(
      kernel, {x, y, z}, ops::cuda::tile_threads, static_cast<int>(shared_bytes), in);
}

}  // namespace

void run_emulated_forward(const EmulatedLinearAttention& call) {
  cuda_emulation::run_backwards = call.backwards;
  Scratch scratch(call);
  ops::cuda::LinearAttentionArguments in = arguments_of(call);
  scratch.give(in);
  ops::cuda::run_forward(in, launch);
}

void run_emulated_backward(const EmulatedLinearAttention& call) {
  cuda_emulation::run_backwards = call.backwards;
  Scratch scratch(call);
  ops::cuda::LinearAttentionArguments in = arguments_of(call);
  scratch.give(in);
  ops::cuda::run_backward(in, launch);
}

}  // namespace forge::tests
