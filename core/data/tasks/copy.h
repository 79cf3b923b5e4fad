#pragma once

#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// Token copy (Part 4.1, figures 5 and 18): a uniform permutation of 1 … N, then once more,
///
///     <bos> 4 2 3 1 <query> 4 2 3 1
///
/// The copied tokens alone carry loss; with `scored_tokens` only the first so many.
///
/// Ids: 1 … N, query, bos.
class Copy : public Task {
 public:
  explicit Copy(const CopyConfig& config);

  std::string name() const override { return "copy"; }
  int32_t vocab_size() const override { return length_ + 2; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override { return 2 * length_ + 2; }
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// token_accuracy, sequence_accuracy, and token_accuracy.first_1, _2 and _4 over the first
  /// copied tokens alone.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  int32_t query() const { return length_; }
  int32_t bos() const { return length_ + 1; }
  /// The copied tokens that are scored.
  Answer answer() const;

 private:
  int32_t length_;
  int32_t scored_tokens_;
};

}  // namespace forge::data::tasks
