#include "core/data/tasks/copy.h"

#include <algorithm>
#include <numeric>

#include "core/data/tasks/task_support.h"

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

std::optional<Fault> Copy::find_fault(const Instance& instance) const {
  return fault_of([&] {
    const std::vector<int32_t>& tokens = instance.tokens;
    size_t at = 0;
    expect(tokens, at, bos(), "bos");
    std::vector<bool> seen(length_);
    for (; at <= static_cast<size_t>(length_); ++at) {
      const auto place = static_cast<int32_t>(at);
      if (at >= tokens.size()) throw Fault{place, "the text ends within the permutation"};
      const int32_t token = tokens[at];
      if (token < 0 || token >= length_) throw Fault{place, "not a number of the permutation"};
      if (seen[token]) throw Fault{place, token_name(token) + " comes a second time"};
      seen[token] = true;
    }
    expect(tokens, at, query(), "the query marker");
    for (size_t i = 1; i <= static_cast<size_t>(length_); ++i) {
      expect(tokens, at, tokens[i], "the token that is to be copied");
    }
    if (at != tokens.size()) {
      throw Fault{static_cast<int32_t>(at), "more text behind the copy"};
    }
    std::vector<uint8_t> scored(tokens.size());
    std::fill_n(scored.begin() + answer().begin, scored_tokens_, uint8_t{1});
    check_scored(instance, scored);
    check_answers(instance, {answer()});
  });
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
