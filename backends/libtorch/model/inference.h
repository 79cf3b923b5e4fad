#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backends/libtorch/model/block.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

class Model;

/// The next tokens of the rows of a batch: row b, which has lengths[b] tokens, gets counts[b]
/// (1 … width) more. Blocks store what they remember of the tokens through it, so that positions
/// and indices are computed once a step and not once a block.
class GenerationStep {
 public:
  /// `capacity`: tokens of a row that the blocks' states have room for.
  GenerationStep(const std::vector<int64_t>& lengths,
                 const std::vector<int64_t>& counts,
                 int64_t width,
                 int64_t capacity,
                 const at::Device& device);

  int64_t rows() const { return positions_.size(0); }
  int64_t width() const { return width_; }
  int64_t capacity() const { return capacity_; }
  /// No row had tokens before.
  bool is_first() const { return end_ == width_; }
  /// Tokens of the longest row, with `width` new ones.
  int64_t end() const { return end_; }
  /// int64 [B, width]
  const at::Tensor& positions() const { return positions_; }
  /// bool [B, 1, 1, width, end()]: the later tokens, which a token may not see. Undefined where
  /// there are none.
  const at::Tensor& later_tokens() const { return later_tokens_; }
  /// bool [B, width]: tokens behind a row's count, which are none of its own. Undefined where there
  /// are none.
  const at::Tensor& missing() const { return missing_; }

  /// Writes x [B, width, H, D] into `cache` [B, H, capacity(), D] at the tokens' positions.
  void write(at::Tensor& cache, const at::Tensor& x) const;
  /// The last `count` tokens of each row, [B, count, C]. `x` [B, count + width, C] holds the
  /// `count` tokens before the step and then the step's.
  at::Tensor last_tokens(const at::Tensor& x, int64_t count) const;

 private:
  std::vector<int64_t> counts_;
  int64_t width_, capacity_, end_;
  at::Tensor positions_, later_tokens_, missing_;
  mutable std::map<int64_t, at::Tensor> cache_rows_;   ///< by heads
  mutable std::map<int64_t, at::Tensor> last_tokens_;  ///< by count
};

/// What a model remembers of the rows of a batch, so that one more token costs no second look at
/// them. Rows may differ in length: each has its own positions from 0 on, and no padding lies
/// between its tokens.
class InferenceState {
 public:
  /// Rows without tokens. A row will have about `most_tokens`; memory grows towards that.
  InferenceState(const Model& model, int64_t rows, int64_t most_tokens);

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  /// Tokens of each row.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  /// Tokens of a row that there is memory for.
  int64_t capacity() const { return capacity_; }
  /// The state of the model's block of that number.
  BlockState& block(size_t index) { return *blocks_.at(index); }

  /// Row i becomes what row `rows[i]` is: rows are dropped, reordered or repeated.
  void select(const std::vector<int64_t>& rows);

  /// Makes room for counts[b] (1 … width) more tokens of each row and describes them.
  GenerationStep begin_step(const std::vector<int64_t>& counts, int64_t width);
  /// All blocks have seen the step's tokens.
  void end_step(const std::vector<int64_t>& counts);

 private:
  void reserve(int64_t tokens);

  at::Device device_;
  int64_t most_tokens_;
  int64_t capacity_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<std::unique_ptr<BlockState>> blocks_;
};

using TokenIds = std::vector<int32_t>;

/// Extends a batch of rows token by token. Without caches every token is computed from its whole
/// row again: slow, and what the cached path is tested against.
class Decoder {
 public:
  /// A row will have about `most_tokens`.
  Decoder(const Model& model, bool cache, int64_t most_tokens);

  /// Starts with rows of any lengths, none of them empty. Returns the logits [B, V] of the tokens
  /// that follow, as next does.
  at::Tensor begin(std::vector<TokenIds> rows);
  /// Appends one token to every row.
  at::Tensor next(const TokenIds& tokens);
  /// Row i becomes what row `rows[i]` is: rows are dropped or repeated.
  void select(const std::vector<int64_t>& rows);

 private:
  at::Tensor read(const std::vector<TokenIds>& rows);

  const Model& model_;
  bool cache_;
  int64_t most_tokens_;
  std::optional<InferenceState> state_;  ///< with caches
  std::vector<TokenIds> rows_;           ///< without
};

}  // namespace forge::libtorch
