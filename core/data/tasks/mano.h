#pragma once

#include "core/base/random.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// Mano (Part 4.1, section 2): arithmetic modulo 23 that has to be done in the head,
///
///     <bos> <len 3> * a + b - c d <ans> value
///
/// A tree of l operators, each + - or *, in prefix notation; the left side of l operators has
/// 0 … l-1 of them, uniformly. l is uniform in 1 … L for training and L for evaluation. All tokens
/// carry loss.
///
/// Ids of the paper's variant: + - *, lengths 1 … L, ans, operands 0 … 22, bos. In the code's
/// variant the answer marker repeats the length and, with `synonyms`, operators, markers and bos
/// have a second token each, one of the two drawn at random: + - * +' -' *', then for each length
/// <len l> <len l>' <ans l> <ans l>', operands, bos', bos.
class Mano : public Task {
 public:
  static constexpr int modulus = 23;

  explicit Mano(const ManoConfig& config);

  std::string name() const override { return "mano"; }
  int32_t vocab_size() const override { return first_bos_ + (code_ ? 2 : 1); }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override { return 7; }
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;
  /// value_accuracy, in all and by operators ("value_accuracy.operators_16"). A model that always
  /// says 0 is right in about 7 % of cases, for products are 0 more often.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  /// Whether some tokens have a second form, a name that ends in "'".
  bool has_synonyms() const { return synonyms_; }
  int32_t operand(int value) const { return first_operand_ + value; }

 private:
  /// A kind of token with its number: which operator, length or value it is.
  enum class Kind { operation, length, answer, operand, bos };
  struct Token {
    Kind kind;
    int number;
    int synonym;
  };
  Token read(int32_t id) const;
  int32_t id_of(Kind kind, int number, int synonym) const;
  /// Appends a tree of `size` operators and gives its value.
  int draw_expression(int size, RandomStream& random, Instance& instance) const;
  int32_t draw(Kind kind, int number, RandomStream& random) const;
  bool code_;
  bool synonyms_;
  int max_operators_;
  int32_t first_length_;
  int32_t first_operand_;
  int32_t first_bos_;
};

}  // namespace forge::data::tasks
