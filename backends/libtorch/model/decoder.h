#pragma once

#include <optional>
#include <vector>

#include "backends/libtorch/model/inference_state.h"
#include "backends/libtorch/model/llama_canon.h"

namespace forge::worker {

using TokenIds = std::vector<int32_t>;

/// Carries a batch of rows on, token by token. Without caches every token is computed from its
/// whole row again: slow, and the measure of what is right.
class Decoder {
 public:
  /// `most_tokens`: of a row, as far as one knows.
  Decoder(const LlamaCanon& model, bool cache, int64_t most_tokens);

  /// Begins with rows of any lengths, none of them empty. Returns the logits [B, V] of the tokens
  /// that follow, as next does.
  at::Tensor begin(std::vector<TokenIds> rows);
  /// Every row goes on with one token.
  at::Tensor next(const TokenIds& tokens);
  /// Row i becomes what row `rows[i]` is: rows are dropped or repeated.
  void select(const std::vector<int64_t>& rows);

 private:
  at::Tensor read(const std::vector<TokenIds>& rows);

  const LlamaCanon& model_;
  bool cache_;
  int64_t most_tokens_;
  std::optional<InferenceState> state_;  ///< with caches
  std::vector<TokenIds> rows_;           ///< without
};

}  // namespace forge::worker
