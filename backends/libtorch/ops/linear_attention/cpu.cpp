#include <vector>

#include "backends/libtorch/ops/linear_attention/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace recurrence {
namespace {

/// Heads that share q and k, of one row, that are computed one after another.
struct Group {
  int64_t row, first, count;
};

/// Tasks that there are about, where heads share q and k: they compute products of q and k once a
/// group, and add up gradients in memory of the group's own.
constexpr int64_t shared_tasks = 16;

/// How the heads of a batch are divided: by its shape alone, because sums over heads follow it.
struct Division {
  int64_t rows, heads, groups;  ///< groups of a row

  explicit Division(const LinearAttentionInputs& in)
      : rows(in.v.size(0)), heads(in.v.size(2)), groups(heads) {
    if (in.q.size(2) == heads || rows == 0) return;
    groups = std::min(heads, (shared_tasks + rows - 1) / rows);
    groups = (heads + per_group() - 1) / per_group();
  }
  int64_t per_group() const { return (heads + groups - 1) / groups; }
  int64_t tasks() const { return rows * groups; }
  Group group(int64_t task) const {
    const int64_t first = task % groups * per_group();
    return {task / groups, first, std::min(per_group(), heads - first)};
  }
};

/// The vectors or numbers of one head of x [B, T, H, …], or of [B, T, 1, …].
template <class T>
Rows<T> rows_of(const at::Tensor& x, int64_t row, int64_t head) {
  if (!x.defined()) return {};
  const int64_t of_head = x.size(2) == 1 ? 0 : head;
  return {x.data_ptr<std::remove_const_t<T>>() + row * x.stride(0) + of_head * x.stride(2),
          x.stride(1)};
}

template <class T>
T* state_of(const at::Tensor& states, int64_t row, int64_t head) {
  if (!states.defined()) return nullptr;
  return states.data_ptr<std::remove_const_t<T>>() +
         (row * states.size(1) + head) * states.size(2) * states.size(3);
}

template <class T>
Head<T> head_of(const LinearAttentionInputs& in,
                const LinearAttentionOptions& options,
                int64_t row,
                int64_t head) {
  return {in.v.size(1),
          in.k.size(3),
          in.v.size(3),
          static_cast<T>(options.scale),
          rows_of<const T>(in.q, row, head),
          rows_of<const T>(in.k, row, head),
          rows_of<const T>(in.v, row, head),
          rows_of<const T>(in.log_decay, row, head),
          rows_of<const T>(in.beta, row, head),
          state_of<const T>(in.state, row, head)};
}

/// One token: the recurrence itself. S is read and written once.
template <class T>
FORGE_INLINE void token_forward(const Head<T>& head,
                                bool channel_decay,
                                bool delta_rule,
                                const HeadResults<T>& results,
                                T* state,
                                T* written) {
  const T *q = head.q.at(0), *k = head.k.at(0), *v = head.v.at(0), *decay = head.log_decay.at(0);
  T* out = results.output.at(0);
  const int64_t keys = head.keys, values = head.values;
  load_state(head, state);
  std::fill(written, written + values, T(0));
  std::fill(out, out + values, T(0));
  for (int64_t d = 0; d < keys; ++d) {
    T* row = state + d * values;
    scaled(values, fast_exp(decay[channel_decay ? d : 0]), row, row);
    if (!delta_rule) continue;
#pragma omp simd
    for (int64_t c = 0; c < values; ++c) written[c] += k[d] * row[c];
  }
  const T beta = head.beta_of(0);
#pragma omp simd
  for (int64_t c = 0; c < values; ++c) written[c] = beta * (v[c] - written[c]);
  for (int64_t d = 0; d < keys; ++d) {
    T* row = state + d * values;
    const T scaled_q = head.scale * q[d];
#pragma omp simd
    for (int64_t c = 0; c < values; ++c) {
      row[c] += k[d] * written[c];
      out[c] += scaled_q * row[c];
    }
  }
  if (results.state) std::copy(state, state + head.state_size(), results.state);
}

template <class T>
void forward_of_group(const std::vector<Head<T>>& heads,
                      bool channel_decay,
                      bool delta_rule,
                      const std::vector<HeadResults<T>>& results) {
  const auto count = static_cast<int64_t>(heads.size());
  if (heads[0].length == 1) {
    Memory<T> memory(heads[0].state_size() + heads[0].values, 2);
    T *state = memory.take(heads[0].state_size()), *written = memory.take(heads[0].values);
    with_simd([&]() FORGE_SIMD_BODY {
      for (size_t h = 0; h < heads.size(); ++h)
        token_forward(heads[h], channel_decay, delta_rule, results[h], state, written);
    });
  } else if (channel_decay) {
    for (size_t h = 0; h < heads.size(); ++h) channel_decay_forward(heads[h], results[h]);
  } else if (delta_rule) {
    for (size_t h = 0; h < heads.size(); ++h) delta_rule_forward(heads[h], results[h]);
  } else {
    scalar_decay_forward(heads.data(), results.data(), count);
  }
}

template <class T>
void backward_of_group(const std::vector<Head<T>>& heads,
                       bool channel_decay,
                       bool delta_rule,
                       const std::vector<HeadGradients<T>>& grads) {
  if (channel_decay) {
    for (size_t h = 0; h < heads.size(); ++h) channel_decay_backward(heads[h], grads[h]);
  } else if (delta_rule) {
    for (size_t h = 0; h < heads.size(); ++h) delta_rule_backward(heads[h], grads[h]);
  } else {
    scalar_decay_backward(heads.data(), grads.data(), static_cast<int64_t>(heads.size()));
  }
}

/// Calls task(task number, group) for every group of heads, on all threads.
template <class Task>
void for_each_group(const Division& division, const Task& task) {
  at::parallel_for(0, division.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) task(index, division.group(index));
  });
}

}  // namespace
}  // namespace recurrence

void linear_attention_forward_cpu(const LinearAttentionInputs& inputs,
                                  const LinearAttentionOptions& options,
                                  LinearAttention& results) {
  using namespace recurrence;
  const bool channel_decay = inputs.log_decay.dim() == 4;
  with_element_type(inputs.v.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_group(Division(inputs), [&](int64_t, const Group& group) {
      std::vector<Head<T>> heads;
      std::vector<HeadResults<T>> of_heads;
      for (int64_t head = group.first; head < group.first + group.count; ++head) {
        heads.push_back(head_of<T>(inputs, options, group.row, head));
        of_heads.push_back({rows_of<T>(results.output, group.row, head),
                            state_of<T>(results.state, group.row, head)});
      }
      forward_of_group(heads, channel_decay, options.delta_rule, of_heads);
    });
  });
}

void linear_attention_backward_cpu(const LinearAttentionInputs& inputs,
                                   const LinearAttentionOptions& options,
                                   const LinearAttention& upstream,
                                   LinearAttentionInputs& gradients) {
  using namespace recurrence;
  const bool channel_decay = inputs.log_decay.dim() == 4;
  const Division division(inputs);
  const bool shared = inputs.q.size(2) != division.heads;
  // Of q and k, a part of each group of a row: [groups, B, T, 1, K].
  const auto parts_of = [&](const at::Tensor& grad) {
    std::vector<int64_t> shape = grad.sizes().vec();
    shape.insert(shape.begin(), division.groups);
    return shared && division.groups > 1 ? at::empty(shape, grad.options()) : grad.unsqueeze(0);
  };
  const at::Tensor q_parts = parts_of(gradients.q), k_parts = parts_of(gradients.k);
  with_element_type(inputs.v.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_group(division, [&](int64_t task, const Group& group) {
      const int64_t part = shared ? task % division.groups : 0;
      const auto of_part = [&](const at::Tensor& parts, int64_t head) {
        Rows<T> rows = rows_of<T>(gradients.q, group.row, head);
        rows.data =
            rows.data - gradients.q.data_ptr<T>() + parts.data_ptr<T>() + part * parts.stride(0);
        return rows;
      };
      std::vector<Head<T>> heads;
      std::vector<HeadGradients<T>> grads;
      for (int64_t head = group.first; head < group.first + group.count; ++head) {
        heads.push_back(head_of<T>(inputs, options, group.row, head));
        grads.push_back({rows_of<const T>(upstream.output, group.row, head),
                         state_of<const T>(upstream.state, group.row, head),
                         of_part(q_parts, head),
                         of_part(k_parts, head),
                         rows_of<T>(gradients.v, group.row, head),
                         rows_of<T>(gradients.log_decay, group.row, head),
                         rows_of<T>(gradients.beta, group.row, head),
                         state_of<T>(gradients.state, group.row, head)});
      }
      backward_of_group(heads, channel_decay, options.delta_rule, grads);
    });
  });
  if (q_parts.size(0) == 1) return;
  at::sum_out(gradients.q, q_parts, {0});
  at::sum_out(gradients.k, k_parts, {0});
}

}  // namespace forge::ops
