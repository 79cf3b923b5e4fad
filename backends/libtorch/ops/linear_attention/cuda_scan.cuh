#pragma once

#include "backends/libtorch/ops/linear_attention/cuda_prepare.cuh"

/// The two loops over chunks, in which a block owns 64 columns of one head's state: those never
/// mix. The state stays in registers in float32; products read a bfloat16 copy in shared memory.
namespace forge::ops::cuda {

constexpr int slice_columns = 64;
constexpr int slice_stride = padded(slice_columns);

/// Columns of v that a block owns.
struct Slice {
  int begin, columns;
  __device__ Slice(const LinearAttentionArguments& in, int index) : begin(index * slice_columns) {
    const int64_t left = in.values - begin;
    columns = left < slice_columns ? static_cast<int>(left) : slice_columns;
  }
};

template <int keys>
struct ScanMemory {
  /// Qb and Ke in the order in which a chunk's products read them; of scalar decay Q and K, which
  /// heads may share: factors of a token are then those of rows of the products and of V or dO.
  bfloat16 first[chunk_tokens * padded(keys)], last[chunk_tokens * padded(keys)];
  bfloat16 state[keys * slice_stride];
  bfloat16 values[chunk_tokens * slice_stride], scores[chunk_tokens * slice_stride];
  __device__ bfloat16* last_of(int) { return last; }
  __device__ bfloat16* values_of(int) { return values; }
};
template <int keys>
struct DeltaScanMemory : ScanMemory<keys> {
  bfloat16 k_begin[chunk_tokens * padded(keys)], inverse[chunk_tokens * slice_stride];
  float betas[chunk_tokens];
};
/// Numbers of a chunk's tokens.
struct TokenFactors {
  float from_begin[chunk_tokens], to_end[chunk_tokens];  ///< s e, f beta
  float sums[chunk_tokens], betas[chunk_tokens], whole;  ///< b, beta, exp b_n
};
/// Two of what a chunk's last product reads: that of the next chunk is copied meanwhile.
template <int keys>
struct ScalarScanMemory : ScanMemory<keys> {
  bfloat16 other_last[chunk_tokens * padded(keys)], other_values[chunk_tokens * slice_stride];
  TokenFactors factors[2];
  __device__ bfloat16* last_of(int chunk) { return chunk % 2 ? other_last : this->last; }
  __device__ bfloat16* values_of(int chunk) { return chunk % 2 ? other_values : this->values; }
};
template <Recurrence kind, int keys>
using ScanMemoryOf = std::conditional_t<
    kind == Recurrence::delta_rule,
    DeltaScanMemory<keys>,
    std::conditional_t<kind == Recurrence::scalar_decay, ScalarScanMemory<keys>, ScanMemory<keys>>>;

/// By the first warp; the caller sets the barrier behind it.
__device__ __forceinline__ void find_factors(const LinearAttentionArguments& in,
                                             const TwoFloats& decays,
                                             const TwoFloats& betas,
                                             TokenFactors& factors) {
  const int lane = static_cast<int>(threadIdx.x), t = 2 * lane;
  if (lane >= 32) return;
  const TwoFloats own = sum_decays_in_warp(decays, lane);
  const float last = __shfl_sync(0xffffffffu, own.second, 31);
  factors.sums[t] = own.first;
  factors.sums[t + 1] = own.second;
  factors.betas[t] = betas.first;
  factors.betas[t + 1] = betas.second;
  if (lane == 0) factors.whole = faded(last);
  factors.from_begin[t] = in.scale * faded(own.first);
  factors.from_begin[t + 1] = in.scale * faded(own.second);
  factors.to_end[t] = faded(last - own.first) * betas.first;
  factors.to_end[t + 1] = faded(last - own.second) * betas.second;
}

/// P from s Q K^T.
__device__ __forceinline__ void write_scores(ScoreTile& products,
                                             const TokenFactors& factors,
                                             bfloat16* scores) {
  const float *b = factors.sums, *betas = factors.betas;
  products.for_each_pair([&](int i, int j, float x, float y) {
    word_at(scores + i * slice_stride + j) =
        pack(i >= j ? x * faded(b[i] - b[j]) * betas[j] : 0,
             i > j ? y * faded(b[i] - b[j + 1]) * betas[j + 1] : 0);
  });
}

/// Multiplies the state by w.
template <Recurrence kind, int keys>
__device__ __forceinline__ void fade_state(const LinearAttentionArguments& in,
                                           const ChunkPlace& place,
                                           const ScanMemoryOf<kind, keys>& memory,
                                           Tile<keys, slice_columns>& state) {
  state.for_each_pair([&](int c, int, float& a, float& b) {
    float factor;
    if constexpr (kind == Recurrence::scalar_decay)
      factor = memory.factors[place.index % 2].whole;
    else
      factor = in.whole[place.chunk_index * keys + c];
    a *= factor;
    b *= factor;
  });
}

/// Multiplies the rows of a tile, or of [64, 64] in shared memory, by a factor each.
template <class AnyTile>
__device__ __forceinline__ void scale_rows(AnyTile& tile, const float* factors) {
  tile.for_each_pair([&](int t, int, float& a, float& b) {
    a *= factors[t];
    b *= factors[t];
  });
}
__device__ __forceinline__ void scale_rows(bfloat16* matrix, const float* factors) {
  for_each_piece<chunk_tokens, slice_columns>([&](int t, int column) {
    bfloat16* at = matrix + t * slice_stride + column;
    const float x = factors[t];
    Eight::from(at).times([&](int) { return x; }).write(at);
  });
}

/// A state of float32 from memory, zeros without; and back.
template <int keys>
__device__ __forceinline__ void read_state(const float* from,
                                           int64_t stride,
                                           const Slice& slice,
                                           Tile<keys, slice_columns>& state) {
  state.for_each_pair([&](int row, int column, float& a, float& b) {
    const bool wanted = from != nullptr && column < slice.columns;
    const float* x = from + row * stride + slice.begin + column;
    a = wanted ? x[0] : 0;
    b = wanted ? x[1] : 0;
  });
}
template <int keys>
__device__ __forceinline__ void write_state(Tile<keys, slice_columns>& state,
                                            int64_t stride,
                                            const Slice& slice,
                                            float* to) {
  state.for_each_pair([&](int row, int column, float a, float b) {
    float* x = to + row * stride + slice.begin + column;
    if (column < slice.columns) {
      x[0] = a;
      x[1] = b;
    }
  });
}

__device__ __forceinline__ void copy_betas(const LinearAttentionArguments& in,
                                           const ChunkPlace& place,
                                           float* betas) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < chunk_tokens) betas[t] = t < place.tokens ? in.beta[place.number(in, t)] : 0;
}

/// Asks for the operands of a chunk, those that read S only where they are wanted.
template <Recurrence kind, int keys>
__device__ __forceinline__ void prefetch_operands(const LinearAttentionArguments& in,
                                                  const ChunkPlace& place,
                                                  bool reads) {
  const int64_t rows = place.chunk_index * chunk_tokens;
  const auto ask = [&](const bfloat16* x) { prefetch_rows<chunk_tokens, keys>(x, keys); };
  const auto ask_square = [&](const bfloat16* x) {
    prefetch_rows<chunk_tokens, chunk_tokens>(x, chunk_tokens);
  };
  ask(in.k_end + rows * keys);
  if (reads) {
    ask(in.q_begin + rows * keys);
    ask_square(in.scores + rows * chunk_tokens);
  }
  if constexpr (kind == Recurrence::delta_rule) {
    ask(in.k_begin + rows * keys);
    ask_square(in.inverse + rows * chunk_tokens);
  }
}

/// Starts copying a chunk's keys, or queries.
template <Recurrence kind, int keys>
__device__ __forceinline__ void copy_keys(const LinearAttentionArguments& in,
                                          const ChunkPlace& place,
                                          bfloat16* to) {
  if constexpr (kind == Recurrence::scalar_decay)
    copy_rows<chunk_tokens, keys>(to, place.rows(in.k), in.k.token, place.tokens);
  else
    copy_rows<chunk_tokens, keys>(to, in.k_end + place.chunk_index * chunk_tokens * keys, keys);
}
template <Recurrence kind, int keys>
__device__ __forceinline__ void copy_queries(const LinearAttentionArguments& in,
                                             const ChunkPlace& place,
                                             bfloat16* to) {
  if constexpr (kind == Recurrence::scalar_decay)
    copy_rows<chunk_tokens, keys>(to, place.rows(in.q), in.q.token, place.tokens);
  else
    copy_rows<chunk_tokens, keys>(to, in.q_begin + place.chunk_index * chunk_tokens * keys, keys);
}

/// Starts copying P; of scalar decay reads what it is made of.
template <Recurrence kind>
__device__ __forceinline__ void copy_scores(const LinearAttentionArguments& in,
                                            const ChunkPlace& place,
                                            bfloat16* scores,
                                            ScoreTile& products) {
  if constexpr (kind == Recurrence::scalar_decay)
    read_products(in, place, products);
  else
    copy_rows<chunk_tokens, chunk_tokens>(
        scores, in.scores + place.chunk_index * chunk_tokens * chunk_tokens, chunk_tokens);
}

/// Chunks from first to last. Without the delta rule U = V; with it
///     R = beta V + Kb S,  U = Tm R;   then   O = Qb S + P U,  S' = w S + Ke^T U.
/// With `keep`, for the backward pass, writes S before each chunk (and U) and no O.
/// Where one number a token decays the state, the next chunk's operands are copied meanwhile.
/// Grid: slices, heads, rows. Block: 256 threads, two a multiprocessor. Shared memory: a
/// ScanMemoryOf, at most 99 KiB.
/// A token, head and slice reads 4 K (6 K) bytes of operands, 128 (256) of P (Tm) or of the half of
/// s Q K^T, 128 of V, mostly from the L2 cache for all slices but the first (and for all heads but
/// one that share q and k), and writes 128 of O, or 2 K of S. Multiply-adds of a token and slice:
/// 128 K + 4096 (192 K + 8192); these and not bytes are the limit on a GPU.
template <Recurrence kind, int keys, bool keep>
__global__ void __launch_bounds__(tile_threads, 2) state_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<ScanMemoryOf<kind, keys>*>(shared_memory());
  constexpr bool delta = kind == Recurrence::delta_rule;
  constexpr bool scalar = kind == Recurrence::scalar_decay;
  constexpr int stride = padded(keys);
  const int row = blockIdx.z, head = blockIdx.y;
  const Slice slice(in, blockIdx.x);
  const int chunks = static_cast<int>((in.length + chunk_tokens - 1) / chunk_tokens);
  const int64_t head_index = row * in.heads + head, state_size = keys * in.values;
  Tile<keys, slice_columns> state;
  read_state(in.state ? in.state + head_index * state_size : nullptr, in.values, slice, state);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto copy_last = [&](const ChunkPlace& place) {
    copy_keys<kind, keys>(in, place, memory.last_of(place.index));
    copy_rows<chunk_tokens, slice_columns>(memory.values_of(place.index),
                                           place.rows(in.v) + slice.begin,
                                           in.v.token,
                                           place.tokens,
                                           slice.columns);
  };
  const auto copy_first = [&](const ChunkPlace& place) {
    if constexpr (!keep) copy_queries<kind, keys>(in, place, memory.first);
  };
  if constexpr (scalar) {
    const ChunkPlace place(in, row, head, 0);
    copy_last(place);
    copy_first(place);
    find_factors(
        in, read_decays(in, place, lane), read_betas(in, place, lane), memory.factors[0]);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const ChunkPlace place(in, row, head, chunk);
    const int64_t rows = place.chunk_index * chunk_tokens;
    const bool has_next = chunk + 1 < chunks;
    const ChunkPlace next(in, row, head, has_next ? chunk + 1 : chunk);
    bfloat16 *last = memory.last_of(chunk), *values = memory.values_of(chunk);
    if constexpr (!scalar) {
      copy_last(place);
      copy_first(place);
    }
    if constexpr (delta) {
      copy_rows<chunk_tokens, keys>(memory.k_begin, in.k_begin + rows * keys, keys, chunk_tokens);
      copy_rows<chunk_tokens, chunk_tokens>(
          memory.inverse, in.inverse + rows * chunk_tokens, chunk_tokens, chunk_tokens);
      copy_betas(in, place, memory.betas);
    }
    state.round_to(memory.state, slice_stride);
    if (!scalar && has_next) {
      prefetch_operands<kind, keys>(in, next, !keep);
      prefetch_rows<chunk_tokens, slice_columns>(
          next.rows(in.v) + slice.begin, in.v.token, next.tokens, slice.columns);
    }
    ScoreTile products;
    if constexpr (!keep) copy_scores<kind>(in, place, memory.scores, products);
    wait_for_copies();
    __syncthreads();
    TwoFloats next_decays, next_betas;
    if constexpr (scalar) {
      if (has_next) copy_last(next);
      next_decays = read_decays(in, next, lane);
      next_betas = read_betas(in, next, lane);
    }
    if constexpr (keep)
      write_rows<keys, slice_columns>(in.states + place.chunk_index * state_size + slice.begin,
                                      in.values,
                                      memory.state,
                                      keys,
                                      slice.columns);
    if constexpr (delta) {
      Tile<chunk_tokens, slice_columns> writes;
      writes.for_each_pair([&](int t, int column, float& a, float& b) {
        const unsigned word = word_at(memory.values + t * slice_stride + column);
        a = memory.betas[t] * low_half(word);
        b = memory.betas[t] * high_half(word);
      });
      writes.template add_product<keys, false, false>(
          memory.k_begin, stride, memory.state, slice_stride);
      writes.round_to(memory.values, slice_stride);  // each thread where it has read
      __syncthreads();
      writes.clear();
      writes.template add_product<chunk_tokens, false, false>(
          memory.inverse, slice_stride, memory.values, slice_stride);
      __syncthreads();
      writes.round_to(memory.values, slice_stride);
      __syncthreads();
      if constexpr (keep)
        write_rows<chunk_tokens, slice_columns>(
            in.writes + place.number(in, 0) * in.values + slice.begin,
            in.heads * in.values,
            memory.values,
            place.tokens,
            slice.columns);
    }
    if constexpr (!keep) {
      Tile<chunk_tokens, slice_columns> output;
      output.clear();
      output.template add_product<keys, false, false>(
          memory.first, stride, memory.state, slice_stride);
      if constexpr (scalar) {
        write_scores(products, memory.factors[chunk % 2], memory.scores);
        scale_rows(output, memory.factors[chunk % 2].from_begin);
        __syncthreads();
        if (has_next) copy_first(next);
      }
      output.template add_product<chunk_tokens, false, false>(
          memory.scores, slice_stride, values, slice_stride);
      __syncthreads();  // scores have been read
      output.round_to(memory.scores, slice_stride);
    }
    if constexpr (scalar) {
      scale_rows(values, memory.factors[chunk % 2].to_end);
      find_factors(in, next_decays, next_betas, memory.factors[(chunk + 1) % 2]);
      __syncthreads();
    }
    fade_state<kind, keys>(in, place, memory, state);
    state.template add_product<chunk_tokens, true, false>(
        last, stride, values, slice_stride);
    __syncthreads();
    if constexpr (!keep) {
      write_rows<chunk_tokens, slice_columns>(
          in.output + place.number(in, 0) * in.values + slice.begin,
          in.heads * in.values,
          memory.scores,
          place.tokens,
          slice.columns);
      __syncthreads();
    }
  }
  if (!keep && in.final_state)
    write_state(state, in.values, slice, in.final_state + head_index * state_size);
}

/// Chunks from last to first, dS' that of the state behind a chunk:
///     dU = P^T dO + Ke dS'
/// without the delta rule dV = dU,                     dS = w dS' + Qb^T dO
/// with it                dR = Tm^T dU, dV = beta dR,  dS = w dS' + Qb^T dO + Kb^T dR.
/// Writes dS' behind each chunk, dV (and dR), and dS before the first chunk where it is asked for.
/// Grid, block, shared memory, work: as state_kernel, with O.
template <Recurrence kind, int keys>
__global__ void __launch_bounds__(tile_threads, 2)
    state_gradient_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<ScanMemoryOf<kind, keys>*>(shared_memory());
  constexpr bool delta = kind == Recurrence::delta_rule;
  constexpr bool scalar = kind == Recurrence::scalar_decay;
  constexpr int stride = padded(keys);
  const int row = blockIdx.z, head = blockIdx.y;
  const Slice slice(in, blockIdx.x);
  const int chunks = static_cast<int>((in.length + chunk_tokens - 1) / chunk_tokens);
  const int64_t head_index = row * in.heads + head, state_size = keys * in.values;
  Tile<keys, slice_columns> state;
  read_state(in.grad_final_state ? in.grad_final_state + head_index * state_size : nullptr,
             in.values,
             slice,
             state);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto copy_last = [&](const ChunkPlace& place) {
    copy_queries<kind, keys>(in, place, memory.last_of(place.index));
    copy_rows<chunk_tokens, slice_columns>(
        memory.values_of(place.index),
        in.grad_output + place.number(in, 0) * in.values + slice.begin,
        in.heads * in.values,
        place.tokens,
        slice.columns);
  };
  const auto copy_first = [&](const ChunkPlace& place) {
    copy_keys<kind, keys>(in, place, memory.first);
  };
  if constexpr (scalar) {
    const ChunkPlace place(in, row, head, chunks - 1);
    copy_last(place);
    copy_first(place);
    find_factors(in,
                 read_decays(in, place, lane),
                 read_betas(in, place, lane),
                 memory.factors[place.index % 2]);
  }
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    const ChunkPlace place(in, row, head, chunk);
    const int64_t rows = place.chunk_index * chunk_tokens;
    const int64_t values = place.number(in, 0) * in.values + slice.begin;
    const int64_t value_stride = in.heads * in.values;
    const bool has_next = chunk > 0;
    const ChunkPlace next(in, row, head, has_next ? chunk - 1 : chunk);
    bfloat16 *last = memory.last_of(chunk), *grad_output = memory.values_of(chunk);
    if constexpr (!scalar) {
      copy_last(place);
      copy_first(place);
    }
    if constexpr (delta) {
      copy_rows<chunk_tokens, keys>(memory.k_begin, in.k_begin + rows * keys, keys, chunk_tokens);
      copy_rows<chunk_tokens, chunk_tokens>(
          memory.inverse, in.inverse + rows * chunk_tokens, chunk_tokens, chunk_tokens);
      copy_betas(in, place, memory.betas);
    }
    state.round_to(memory.state, slice_stride);
    if (!scalar && has_next) {
      prefetch_operands<kind, keys>(in, next, true);
      prefetch_rows<chunk_tokens, slice_columns>(
          in.grad_output + next.number(in, 0) * in.values + slice.begin,
          value_stride,
          next.tokens,
          slice.columns);
    }
    ScoreTile products;
    copy_scores<kind>(in, place, memory.scores, products);
    wait_for_copies();
    __syncthreads();
    TwoFloats next_decays, next_betas;
    if constexpr (scalar) {
      if (has_next) copy_last(next);
      next_decays = read_decays(in, next, lane);
      next_betas = read_betas(in, next, lane);
    }
    write_rows<keys, slice_columns>(in.grad_states + place.chunk_index * state_size + slice.begin,
                                    in.values,
                                    memory.state,
                                    keys,
                                    slice.columns);
    Tile<chunk_tokens, slice_columns> writes;
    writes.clear();
    writes.template add_product<keys, false, false>(
        memory.first, stride, memory.state, slice_stride);
    if constexpr (scalar) {
      write_scores(products, memory.factors[chunk % 2], memory.scores);
      scale_rows(writes, memory.factors[chunk % 2].to_end);
      __syncthreads();
      if (has_next) copy_first(next);
    }
    writes.template add_product<chunk_tokens, true, false>(
        memory.scores, slice_stride, grad_output, slice_stride);
    __syncthreads();  // scores have been read
    writes.round_to(memory.scores, slice_stride);
    if constexpr (scalar) {
      scale_rows(grad_output, memory.factors[chunk % 2].from_begin);
      find_factors(in, next_decays, next_betas, memory.factors[(chunk + 1) % 2]);
    }
    __syncthreads();
    fade_state<kind, keys>(in, place, memory, state);
    state.template add_product<chunk_tokens, true, false>(
        last, stride, grad_output, slice_stride);
    if constexpr (delta) {
      writes.clear();
      writes.template add_product<chunk_tokens, true, false>(
          memory.inverse, slice_stride, memory.scores, slice_stride);
      __syncthreads();
      writes.round_to(memory.scores, slice_stride);
      writes.for_each_pair([&](int t, int column, float a, float b) {
        const float beta = memory.betas[t];
        word_at(memory.values + t * slice_stride + column) = pack(beta * a, beta * b);
      });
      __syncthreads();
      write_rows<chunk_tokens, slice_columns>(
          in.grad_writes + values, value_stride, memory.scores, place.tokens, slice.columns);
      state.template add_product<chunk_tokens, true, false>(
          memory.k_begin, stride, memory.scores, slice_stride);
    }
    write_rows<chunk_tokens, slice_columns>(in.grad_v + values,
                                            value_stride,
                                            delta ? memory.values : memory.scores,
                                            place.tokens,
                                            slice.columns);
    __syncthreads();
  }
  if (in.grad_state) write_state(state, in.values, slice, in.grad_state + head_index * state_size);
}

}  // namespace forge::ops::cuda
