#pragma once

#include <array>
#include <vector>

#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// What the rows of a batch have seen so far, so that one more token costs no second look at them:
/// of every layer the keys (as they are after Canon-B, norm and rotation) and values of all tokens,
/// and the last kernel - 1 inputs of each Canon layer. Rows may differ in length: each has its own
/// positions from 0 on, and no padding lies between its tokens.
///
/// LlamaCanon::next_logits leads it through a step: begin_step, then for every layer
/// with_last_inputs and attend, then end_step.
class InferenceState {
 public:
  /// Rows without tokens. `most_tokens` is how many a row will have at most, as far as one knows;
  /// memory grows towards it.
  InferenceState(const config::ModelConfig& config,
                 int64_t rows,
                 int64_t most_tokens,
                 const at::TensorOptions& options);

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  /// Tokens of each row.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  /// Tokens of a row that there is memory for.
  int64_t capacity() const { return capacity_; }

  /// Row i becomes what row `rows[i]` is: rows are dropped, put in order, or repeated.
  void select(const std::vector<int64_t>& rows);

  /// Each row goes on with counts[b] tokens (1 … width) of `width` that are handed over.
  void begin_step(const std::vector<int64_t>& counts, int64_t width);
  /// Angles of the positions of the step's tokens, row after row: [B * width, r/2].
  ops::RotaryTable at_positions(const ops::RotaryTable& table) const;
  /// The inputs x [B, width, C] of a Canon layer behind the last ones before them:
  /// [B, kernel - 1 + width, C]. They are zero where a row begins. Remembers the last of x.
  at::Tensor with_last_inputs(size_t layer, char position, const at::Tensor& x);
  /// Attention of q [B, width, H, D] to every earlier token and to k and v [B, width, G, D], which
  /// are remembered. Returns [B, width, H, D], contiguous.
  at::Tensor attend(size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
  void end_step();

 private:
  struct Layer {
    at::Tensor keys, values;           ///< [B, G, capacity, D]
    std::array<at::Tensor, 4> inputs;  ///< of Canon A to D [B, kernel - 1, C], or undefined
  };
  /// What all layers need to know of the step's tokens.
  struct Step {
    std::vector<int64_t> counts;
    int64_t width = 0;
    bool first = false;    ///< no row has tokens yet
    int64_t end = 0;       ///< keys to look at: those of the longest row
    at::Tensor positions;  ///< int64 [B, width]
    at::Tensor slots;      ///< int64 [B * G * width]: where keys and values go
    at::Tensor hidden;  ///< bool [B, 1, 1, width, end]: keys a token may not see; undefined: none
    at::Tensor last_inputs;  ///< int64 [B * (kernel - 1)], undefined where all rows have `width`
  };

  void reserve(int64_t tokens);

  config::ModelConfig config_;
  at::TensorOptions options_;
  int64_t most_tokens_;
  int64_t capacity_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<Layer> layers_;
  Step step_;
};

}  // namespace forge::worker
