#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/tasks/capo.h"

// How much a model knows of Capo's people.
namespace forge::data::tasks {
namespace {

constexpr double bits_a_nat = 1.4426950408889634;  // 1 / ln 2

double bits_of_name() { return std::log2(400.0 * 400 * 1000); }
double bits_of_values() { return std::log2(2.0 * (12 * 28 * 200) * 200 * 300 * 100 * 263); }

}  // namespace

std::vector<int32_t> token_ends(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<int32_t> ends;
  ends.reserve(ids.size());
  // The space in front is not part of the text.
  int32_t end = vocabulary.prefix_space == PrefixSpace::none ? 0 : -1;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary.size() || vocabulary.special[id] != 0) {
      throw Error("id " + std::to_string(id) + " stands for no bytes of a text");
    }
    end += static_cast<int32_t>(vocabulary.tokens[id].size());
    ends.push_back(end);
  }
  return ends;
}

KnowledgeLoss knowledge_loss(const Biography& biography,
                             const std::vector<int32_t>& token_ends,
                             const std::vector<float>& token_loss) {
  if (token_ends.size() != token_loss.size()) {
    throw Error("losses of " + std::to_string(token_loss.size()) + " tokens for a text of " +
                std::to_string(token_ends.size()));
  }
  KnowledgeLoss loss;
  size_t token = 0;
  for (const FactSpan& span : biography.facts) {
    while (token < token_ends.size() && token_ends[token] <= span.begin) ++token;
    for (; token < token_ends.size(); ++token) {
      const int32_t begin = token == 0 ? 0 : token_ends[token - 1];
      if (begin >= span.end) break;
      if (span.fact == Fact::name) loss.name += token_loss[token];
      if (span.fact != Fact::name && span.fact != Fact::work_city) {
        loss.values += token_loss[token];
      }
    }
  }
  return loss;
}

double max_bits_per_parameter(int64_t people, double parameters) {
  const auto n = static_cast<double>(people);
  return n * (bits_of_name() - std::log2(n) + bits_of_values()) / parameters;
}

double bits_per_parameter(int64_t people, const KnowledgeLoss& mean_loss, double parameters) {
  const auto n = static_cast<double>(people);
  const double name = bits_of_name() - mean_loss.name * bits_a_nat;
  const double values = bits_of_values() - mean_loss.values * bits_a_nat;
  return std::min(n * (name + values) / parameters, max_bits_per_parameter(people, parameters));
}

}  // namespace forge::data::tasks
