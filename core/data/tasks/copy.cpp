#include "core/data/tasks/tasks.h"

#include <algorithm>
#include <numeric>

namespace forge::data::tasks {

Copy::Copy(const CopyConfig& config)
    : length_(config.length), scored_tokens_(config.scored_tokens) {
  check_range("length", config.length, 1, 100000);
  check_range("scored_tokens", config.scored_tokens, 0, config.length, "0 scores all of them");
  if (scored_tokens_ == 0) scored_tokens_ = length_;
}

std::string Copy::token_name(int32_t id) const {
  check_id(*this, id);
  if (id < length_) return std::to_string(id + 1);
  return id == query() ? "<query>" : "<bos>";
}

Answer Copy::answer() const {
  const int32_t begin = length_ + 2;
  return {begin, begin, begin + scored_tokens_, 0};
}

void Copy::generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const {
  RandomStream random = instance_numbers("copy", seed, split, index);
  std::vector<int32_t>& tokens = instance.tokens;
  tokens.resize(length_);
  std::iota(tokens.begin(), tokens.end(), 0);
  shuffle(tokens, random);
  tokens.resize(static_cast<size_t>(min_length()));
  std::copy_n(tokens.begin(), length_, tokens.begin() + length_ + 2);
  std::copy_n(tokens.begin() + length_ + 2, length_, tokens.begin() + 1);
  tokens[0] = bos();
  tokens[length_ + 1] = query();
  instance.scored.assign(tokens.size(), 0);
  instance.answers = {answer()};
  std::fill_n(instance.scored.begin() + answer().begin, scored_tokens_, uint8_t{1});
}

void Copy::score(const Instance& instance,
                 const std::vector<int32_t>& predicted,
                 Scores& scores) const {
  score_answers(instance, predicted, {"token_accuracy", "sequence_accuracy", ""}, scores);
  for (const int32_t first : {1, 2, 4}) {
    if (instance.answers.empty() || first > scored_tokens_) continue;
    Instance beginning = instance;
    beginning.answers[0].end = beginning.answers[0].begin + first;
    const std::string name = "token_accuracy.first_" + std::to_string(first);
    score_answers(beginning, predicted, {name, "", ""}, scores);
  }
}

}  // namespace forge::data::tasks
