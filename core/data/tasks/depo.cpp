#include "core/data/tasks/tasks.h"

#include <algorithm>
#include <numeric>

namespace forge::data::tasks {
namespace {

std::vector<int> hops_to_evaluate(int max_hops) {
  std::vector<int> hops;
  for (int k = 1; k <= max_hops; k *= 2) hops.push_back(k);
  if (max_hops == 32) hops.insert(hops.end() - 1, 24);
  if (hops.back() != max_hops) hops.push_back(max_hops);
  return hops;
}

}  // namespace

Depo::Depo(const DepoConfig& config)
    : config_(config),
      names_(config.letters, config.min_name_length, config.max_name_length, config.max_nodes),
      sizes_(config.max_nodes) {
  check_range("max_hops", config.max_hops, 1, 1000);
  check_range("max_queries", config.max_queries, 1, 10000);
  evaluated_hops_ = hops_to_evaluate(config.max_hops);
}

std::string Depo::token_name(int32_t id) const {
  check_id(*this, id);
  if (id < names_.end_of_letters()) return std::to_string(id + 1);
  if (id < answer()) return "<hop " + std::to_string(id - hop(1) + 1) + ">";
  return id == answer() ? "<answer>" : "<bos>";
}

int32_t Depo::min_length() const {
  const int name = config_.min_name_length;
  return 1 + 3 * 2 * name + std::min(3, config_.max_queries) * (2 + 2 * name);
}

void Depo::generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const {
  RandomStream random = instance_numbers("depo", seed, split, index);
  const bool training = split == Split::training;
  const int n = training ? sizes_.draw(random) : config_.max_nodes;
  std::vector<int32_t> cycle;
  names_.draw_distinct(n, random, cycle);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);

  instance.clear();
  instance.add(bos());
  shuffle(order, random);
  for (const int i : order) {
    names_.add(cycle[i], false, instance);
    names_.add(cycle[(i + 1) % n], false, instance);
  }
  const int queries = std::min(n, config_.max_queries);
  shuffle_front(order, queries, random);
  for (int q = 0; q < queries; ++q) {
    const int k = training ? 1 + static_cast<int>(random.below(config_.max_hops))
                           : evaluated_hops_[random.below(evaluated_hops_.size())];
    instance.add(hop(k));
    names_.add(cycle[order[q]], false, instance);
    const auto marker = static_cast<int32_t>(instance.tokens.size());
    instance.add(answer(), true);
    names_.add(cycle[(order[q] + k) % n], true, instance);
    instance.answers.push_back(
        {marker, marker + 1, static_cast<int32_t>(instance.tokens.size()), k});
  }
}

void Depo::score(const Instance& instance,
                 const std::vector<int32_t>& predicted,
                 Scores& scores) const {
  score_answers(instance, predicted, {"token_accuracy", "answer_accuracy", "hop"}, scores);
}

}  // namespace forge::data::tasks
