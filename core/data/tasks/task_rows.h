#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// An instance within a row, as much of it as is there: `instance.tokens` may be cut, `answers` are
/// those that are there whole, and what is `scored` carries loss in the row.
struct PlacedInstance {
  Instance instance;
  int32_t offset = 0;  ///< of its first token in the row's seq_len + 1 ids
};

/// A task's stream as rows of seq_len + 1 ids. Every row begins with an instance of its own (the
/// paper's left-aligned windows), others follow without a gap, and the last one is cut at the
/// window's end; positions and attention continue from one to the next. An answer that is cut
/// carries no loss and is not measured. Row r is made of the instances r * B, r * B + 1, …, where
/// B = ceil((seq_len + 1) / min_length) is as many as can begin in a row. So any row can be
/// made without those before it, and no instance is in two rows.
class TaskRows {
 public:
  /// `task` must outlive the rows. Throws Error where seq_len is not positive.
  TaskRows(const Task& task, uint64_t seed, Split split, int seq_len);

  int seq_len() const { return seq_len_; }

  /// Fills int32 [seq_len] inputs and targets; a target that carries no loss is unscored_target.
  void fill(int64_t row, int32_t* inputs, int32_t* targets) const;

  /// What is in a row, in order.
  std::vector<PlacedInstance> instances(int64_t row) const;

  /// The text that a row begins with, whole.
  Instance first_instance(int64_t row) const;

  /// The beginning of that text for a model to continue, where the task asks for it, and room for
  /// at most max_new_tokens behind it in a row. Nothing where the text is longer than the row and
  /// its right answer can only be cut.
  std::optional<Prompt> prompt(int64_t row) const;

  /// Scores a row of a task that is asked teacher forced: predicted[i] is the likeliest id to
  /// follow input i, of seq_len.
  void score(int64_t row, const int32_t* predicted, Scores& scores) const;

 private:
  template <class Visit>
  void for_each_instance(int64_t row, const Visit& visit) const;

  const Task& task_;
  uint64_t seed_;
  Split split_;
  int seq_len_;
  uint64_t instances_per_row_;
};

}  // namespace forge::data::tasks
