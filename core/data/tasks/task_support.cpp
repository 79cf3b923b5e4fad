#include "core/data/tasks/task_support.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace forge::data::tasks {
namespace {

constexpr int numbers_bits = 20;  // of random numbers that an instance has to itself
constexpr int32_t most_names = 1 << 24;

}  // namespace

RandomStream instance_numbers(const char* task, uint64_t seed, Split split, uint64_t index) {
  const std::string name =
      std::string(task) + (split == Split::training ? " training" : " evaluation");
  return RandomStream(seed, stream_number(name), index << numbers_bits);
}

void check_range(
    const char* key, int64_t value, int64_t least, int64_t most, const std::string& hint) {
  if (value >= least && value <= most) return;
  throw Error(std::string(key) + " must be " + std::to_string(least) + " … " +
                  std::to_string(most) + ", not " + std::to_string(value),
              hint);
}

SizeDistribution::SizeDistribution(int max_nodes) {
  check_range("max_nodes", max_nodes, 3, 10000);
  double sum = 0;
  for (int n = 3; n <= max_nodes; ++n) {
    sum += 1 / (n + std::sqrt(static_cast<double>(max_nodes)) + 1e-12);
    cumulative_.push_back(sum);
  }
  for (double& value : cumulative_) value /= sum;
  cumulative_.back() = 1;
}

int SizeDistribution::draw(RandomStream& random) const {
  const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), random.uniform());
  return 3 + static_cast<int>(above - cumulative_.begin());
}

NameSet::NameSet(int letters, int min_length, int max_length, int needed)
    : letters_(letters), min_length_(min_length), max_length_(max_length) {
  check_range("letters", letters, 2, 1000);
  check_range("min_name_length", min_length, 1, 24);
  check_range("max_name_length", max_length, min_length, 24, "at least min_name_length");
  int64_t power = 1;
  int64_t count = 0;
  offsets_.push_back(0);
  for (int length = 1; length <= max_length; ++length) {
    power *= letters;
    if (count + power > most_names) {
      throw Error("names of up to " + std::to_string(max_length) + " of " +
                      std::to_string(letters) + " letters are more than 16,777,216",
                  "lower letters or max_name_length");
    }
    if (length < min_length) continue;
    count += power;
    powers_.push_back(static_cast<int32_t>(power));
    offsets_.push_back(static_cast<int32_t>(count));
  }
  if (count < needed) {
    throw Error(
        "max_nodes must be at most " + std::to_string(count) + ", not " + std::to_string(needed),
        "so many distinct names have " + std::to_string(letters) + " letters and " +
            std::to_string(min_length) + " to " + std::to_string(max_length) + " tokens");
  }
}

void NameSet::draw_distinct(int count, RandomStream& random, std::vector<int32_t>& ranks) const {
  std::vector<uint64_t> taken((static_cast<size_t>(this->count()) + 63) / 64);
  ranks.clear();
  ranks.reserve(count);
  while (ranks.size() < static_cast<size_t>(count)) {
    const size_t length = random.below(powers_.size());
    const int32_t rank = offsets_[length] + static_cast<int32_t>(random.below(powers_[length]));
    uint64_t& word = taken[rank / 64];
    const uint64_t bit = uint64_t{1} << (rank % 64);
    if ((word & bit) != 0) continue;
    word |= bit;
    ranks.push_back(rank);
  }
}

void NameSet::add(int32_t rank, bool carries_loss, Instance& instance) const {
  size_t index = 0;
  while (rank >= offsets_[index + 1]) ++index;
  int32_t value = rank - offsets_[index];
  for (int32_t power = powers_[index] / letters_; power > 0; power /= letters_) {
    const bool last = power == 1;
    instance.add(value / power + (last ? letters_ : 0), carries_loss);
    value %= power;
    if (last) break;
  }
}

int32_t NameSet::read(const std::vector<int32_t>& tokens, size_t& position) const {
  const size_t begin = position;
  int32_t value = 0;
  for (int length = 1; length <= max_length_; ++length, ++position) {
    const auto at = static_cast<int32_t>(position);
    if (position >= tokens.size()) throw Fault{at, "the text ends within a name"};
    const int32_t token = tokens[position];
    if (token < 0 || token >= 2 * letters_) throw Fault{at, "not a letter of a name"};
    value = value * letters_ + token % letters_;
    if (token < letters_) continue;
    ++position;
    if (length < min_length_) throw Fault{at, "a name ends too early"};
    return offsets_[length - min_length_] + value;
  }
  throw Fault{static_cast<int32_t>(begin),
              "a name of more than " + std::to_string(max_length_) + " tokens"};
}

void expect(const std::vector<int32_t>& tokens, size_t& position, int32_t token, const char* what) {
  if (position >= tokens.size()) {
    throw Fault{static_cast<int32_t>(tokens.size()), std::string("the text ends before ") + what};
  }
  if (tokens[position] != token) {
    throw Fault{static_cast<int32_t>(position), std::string("not ") + what};
  }
  ++position;
}

void score_answers(const Instance& instance,
                   const std::vector<int32_t>& predicted,
                   const AnswerMetrics& metrics,
                   Scores& scores) {
  const auto add = [&](const std::string& metric, int32_t group, double total, int64_t count) {
    if (metric.empty()) return;
    scores.add(metric, total, count);
    if (!metrics.group.empty()) {
      scores.add(metric + "." + metrics.group + "_" + std::to_string(group), total, count);
    }
  };
  for (const Answer& answer : instance.answers) {
    int64_t right = 0;
    for (auto i = static_cast<size_t>(answer.begin); i < static_cast<size_t>(answer.end); ++i) {
      right += i < predicted.size() && predicted[i] == instance.tokens[i];
    }
    const int64_t length = answer.end - answer.begin;
    add(metrics.token_metric, answer.group, static_cast<double>(right), length);
    add(metrics.answer_metric, answer.group, right == length ? 1 : 0, 1);
  }
}

void check_id(const Task& task, int32_t id) {
  if (id >= 0 && id < task.vocab_size()) return;
  throw Error("id " + std::to_string(id) + " is none of the " + std::to_string(task.vocab_size()) +
              " ids of the task " + task.name());
}

}  // namespace forge::data::tasks
