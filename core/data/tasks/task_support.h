#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/data/tasks/task.h"

/// What the tasks have in common.
namespace forge::data::tasks {

/// The random numbers of one instance: 2^20 of a stream's numbers.
RandomStream instance_numbers(const char* task, uint64_t seed, Split split, uint64_t index);

/// Throws Error "KEY must be LEAST … MOST, not VALUE" with `hint`.
void check_range(
    const char* key, int64_t value, int64_t least, int64_t most, const std::string& hint = "");

/// Fisher and Yates: the first `count` elements become a uniform ordered choice from all.
template <class T>
void shuffle_front(std::vector<T>& items, size_t count, RandomStream& random) {
  for (size_t i = 0; i < count && i + 1 < items.size(); ++i) {
    std::swap(items[i], items[i + random.below(items.size() - i)]);
  }
}

template <class T>
void shuffle(std::vector<T>& items, RandomStream& random) {
  shuffle_front(items, items.size(), random);
}

/// The size of a Depo or Brevo instance for training: P(n) ~ 1 / (n + sqrt(N)) for n in 3 … N, as
/// the authors' code has it; the paper's text has the same for Brevo.
class SizeDistribution {
 public:
  explicit SizeDistribution(int max_nodes);
  int draw(RandomStream& random) const;

 private:
  std::vector<double> cumulative_;  ///< of 3 … N, the last one is 1
};

/// Names of several tokens: the length is uniform in min_length … max_length, all tokens but the
/// last are uniform in the letters 1 … V, the last one in V+1 … 2V, which ends the name. A name is
/// known by its rank: shorter names first, then by value. Letter a has the id a - 1.
class NameSet {
 public:
  /// Throws Error when there are fewer than `needed` names or too many to count.
  NameSet(int letters, int min_length, int max_length, int needed);

  int32_t count() const { return offsets_.back(); }
  int32_t end_of_letters() const { return 2 * letters_; }  ///< ids below are letters
  /// `count` distinct names; one that is there already is drawn again, length and all.
  void draw_distinct(int count, RandomStream& random, std::vector<int32_t>& ranks) const;
  /// Appends the letters' ids to a text.
  void add(int32_t rank, bool carries_loss, Instance& instance) const;
  /// Reads the name that begins at `position` and moves behind it. Throws Fault.
  int32_t read(const std::vector<int32_t>& tokens, size_t& position) const;

 private:
  int letters_;
  int min_length_;
  int max_length_;
  std::vector<int32_t> powers_;   ///< per length - min_length: V^length
  std::vector<int32_t> offsets_;  ///< rank of the first name of each length; their number
};

/// Runs a check that throws Fault.
template <class Check>
std::optional<Fault> fault_of(const Check& check) {
  try {
    check();
  } catch (const Fault& fault) {
    return fault;
  }
  return std::nullopt;
}

/// Moves behind the token at `position`. Throws Fault unless it is `token`, which `what` names.
void expect(const std::vector<int32_t>& tokens, size_t& position, int32_t token, const char* what);

/// Adds "<token_metric>" over the tokens of the answers and "<answer_metric>" over whole answers,
/// each in all and by group as "….<group>_8". An empty name leaves that metric or grouping out.
struct AnswerMetrics {
  std::string token_metric;
  std::string answer_metric;
  std::string group;
};
void score_answers(const Instance& instance,
                   const std::vector<int32_t>& predicted,
                   const AnswerMetrics& metrics,
                   Scores& scores);

/// Throws Error for an id that is not one of 0 … vocab_size - 1.
void check_id(const Task& task, int32_t id);

}  // namespace forge::data::tasks
