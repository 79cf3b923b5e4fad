#include "core/data/tasks/task_rows.h"

#include <algorithm>

#include "core/data/common.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {
namespace {

/// Cuts an instance to its first `length` tokens. Answers that are cut lose their loss.
void cut(Instance& instance, size_t length) {
  if (instance.tokens.size() <= length) return;
  instance.tokens.resize(length);
  instance.scored.resize(length);
  while (!instance.answers.empty() && instance.answers.back().end > static_cast<int64_t>(length)) {
    const auto begin = std::min(length, static_cast<size_t>(instance.answers.back().loss_begin));
    const auto end = instance.scored.end();
    std::fill(instance.scored.begin() + static_cast<int64_t>(begin), end, uint8_t{0});
    instance.answers.pop_back();
  }
}

}  // namespace

TaskRows::TaskRows(const Task& task, uint64_t seed, Split split, int seq_len)
    : task_(task), seed_(seed), split_(split), seq_len_(seq_len) {
  check_range("seq_len", seq_len, 1, 1 << 24);
  const int64_t shortest = task.min_length();
  instances_per_row_ = static_cast<uint64_t>((seq_len + 1 + shortest - 1) / shortest);
}

/// Calls `visit` with each instance of a row, as much of it as is there, and its place in the row.
template <class Visit>
void TaskRows::for_each_instance(int64_t row, const Visit& visit) const {
  const size_t ids = static_cast<size_t>(seq_len_) + 1;
  Instance instance;
  uint64_t index = static_cast<uint64_t>(row) * instances_per_row_;
  for (size_t at = 0; at < ids; at += instance.tokens.size()) {
    task_.generate(seed_, split_, index++, instance);
    cut(instance, ids - at);
    visit(instance, at);
  }
}

std::vector<PlacedInstance> TaskRows::instances(int64_t row) const {
  std::vector<PlacedInstance> placed;
  for_each_instance(row, [&](const Instance& instance, size_t at) {
    placed.push_back({instance, static_cast<int32_t>(at)});
  });
  return placed;
}

void TaskRows::fill(int64_t row, int32_t* inputs, int32_t* targets) const {
  const auto seq_len = static_cast<size_t>(seq_len_);
  for_each_instance(row, [&](const Instance& instance, size_t at) {
    for (size_t i = 0; i < instance.tokens.size(); ++i, ++at) {
      const int32_t token = instance.tokens[i];
      if (at < seq_len) inputs[at] = token;
      if (at > 0) targets[at - 1] = instance.scored[i] != 0 ? token : unscored_target;
    }
  });
}

Instance TaskRows::first_instance(int64_t row) const {
  Instance instance;
  task_.generate(seed_, split_, static_cast<uint64_t>(row) * instances_per_row_, instance);
  return instance;
}

std::optional<Prompt> TaskRows::prompt(int64_t row) const {
  const Instance instance = first_instance(row);
  Prompt prompt = task_.prompt(instance);
  const auto length = static_cast<int32_t>(prompt.tokens.size());
  const bool fits = instance.tokens.size() <= static_cast<size_t>(seq_len_);
  if (task_.eval_mode() == EvalMode::greedy && !fits) return std::nullopt;
  if (length == 0 || length >= seq_len_) return std::nullopt;
  prompt.max_new_tokens = std::min(prompt.max_new_tokens, seq_len_ - length);
  return prompt;
}

void TaskRows::score(int64_t row, const int32_t* predicted, Scores& scores) const {
  std::vector<int32_t> of_instance;
  for (const PlacedInstance& placed : instances(row)) {
    const auto length = static_cast<int32_t>(placed.instance.tokens.size());
    of_instance.assign(static_cast<size_t>(length), -1);
    for (int32_t i = placed.offset == 0 ? 1 : 0; i < length; ++i) {
      of_instance[static_cast<size_t>(i)] = predicted[placed.offset + i - 1];
    }
    task_.score(placed.instance, of_instance, scores);
  }
}

}  // namespace forge::data::tasks
