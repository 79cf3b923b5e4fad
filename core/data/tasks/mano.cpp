#include "core/data/tasks/tasks.h"

namespace forge::data::tasks {
namespace {

constexpr int operators = 3;

int apply(int operation, int left, int right) {
  const int value = operation == 0   ? left + right
                    : operation == 1 ? left - right + Mano::modulus
                                     : left * right;
  return value % Mano::modulus;
}

}  // namespace

Mano::Mano(const ManoConfig& config)
    : code_(config.variant == Variant::code),
      synonyms_(code_ && config.synonyms),
      max_operators_(config.max_operators) {
  check_range("max_operators", config.max_operators, 1, 1000);
  first_length_ = code_ ? 2 * operators : operators;
  first_operand_ = first_length_ + (code_ ? 4 * max_operators_ : max_operators_ + 1);
  first_bos_ = first_operand_ + modulus;

  names_.resize(static_cast<size_t>(Mano::vocab_size()));
  const auto name = [&](Kind kind, int number, const std::string& text) {
    if (code_) names_[id_of(kind, number, 1)] = text + "'";
    names_[id_of(kind, number, 0)] = text;
  };
  for (int i = 0; i < operators; ++i) name(Kind::operation, i, std::string(1, "+-*"[i]));
  for (int size = 1; size <= max_operators_; ++size) {
    const std::string number = std::to_string(size);
    name(Kind::length, size, "<len " + number + ">");
    name(Kind::answer, size, code_ ? "<ans " + number + ">" : "<ans>");
  }
  for (int value = 0; value < modulus; ++value) name(Kind::operand, value, std::to_string(value));
  name(Kind::bos, 0, "<bos>");
}

int32_t Mano::id_of(Kind kind, int number, int synonym) const {
  switch (kind) {
    case Kind::operation: return number + synonym * operators;
    case Kind::length: return first_length_ + (code_ ? 4 * (number - 1) + synonym : number - 1);
    case Kind::answer: return code_ ? id_of(Kind::length, number, synonym) + 2 : first_operand_ - 1;
    case Kind::operand: return first_operand_ + number;
    case Kind::bos: break;
  }
  return code_ ? first_bos_ + 1 - synonym : first_bos_;
}

std::string Mano::token_name(int32_t id) const {
  check_id(*this, id);
  return names_[id];
}

int32_t Mano::draw(Kind kind, int number, RandomStream& random) const {
  return id_of(kind, number, synonyms_ ? static_cast<int>(random.below(2)) : 0);
}

int Mano::draw_expression(int size, RandomStream& random, Instance& instance) const {
  if (size == 0) {
    const int value = static_cast<int>(random.below(modulus));
    instance.add(operand(value), true);
    return value;
  }
  const int operation = static_cast<int>(random.below(operators));
  instance.add(draw(Kind::operation, operation, random), true);
  const int left_size = static_cast<int>(random.below(size));
  const int left = draw_expression(left_size, random, instance);
  const int right = draw_expression(size - 1 - left_size, random, instance);
  return apply(operation, left, right);
}

void Mano::generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const {
  RandomStream random = instance_numbers("mano", seed, split, index);
  const int size = split == Split::training ? 1 + static_cast<int>(random.below(max_operators_))
                                            : max_operators_;
  instance.clear();
  instance.add(draw(Kind::bos, 0, random), true);
  instance.add(draw(Kind::length, size, random), true);
  const int value = draw_expression(size, random, instance);
  instance.add(draw(Kind::answer, size, random), true);
  const auto place = static_cast<int32_t>(instance.tokens.size());
  instance.add(operand(value), true);
  instance.answers.push_back({place, place, place + 1, size});
}

void Mano::score(const Instance& instance,
                 const std::vector<int32_t>& predicted,
                 Scores& scores) const {
  score_answers(instance, predicted, {"", "value_accuracy", "operators"}, scores);
}

}  // namespace forge::data::tasks
