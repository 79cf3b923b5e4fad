#include "core/data/tasks/depo.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace forge::data::tasks {
namespace {

std::vector<int> hops_to_evaluate(int max_hops) {
  std::vector<int> hops;
  for (int k = 1; k <= max_hops; k *= 2) hops.push_back(k);
  if (max_hops == 32) hops.insert(hops.end() - 1, 24);
  if (hops.back() != max_hops) hops.push_back(max_hops);
  return hops;
}

using Successors = std::unordered_map<int32_t, int32_t>;

/// Reads the steps up to the first token that is no letter. Throws Fault unless they are one cycle.
Successors read_cycle(const NameSpace& names,
                      const std::vector<int32_t>& tokens,
                      size_t& position) {
  Successors next;
  std::unordered_map<int32_t, size_t> reached;
  const size_t begin = position;
  while (position < tokens.size() && tokens[position] >= 0 &&
         tokens[position] < names.end_of_letters()) {
    const size_t step = position;
    const int32_t from = names.read(tokens, position);
    const size_t second = position;
    const int32_t to = names.read(tokens, position);
    if (!next.emplace(from, to).second) {
      throw Fault{static_cast<int32_t>(step), "a second step from this name"};
    }
    if (!reached.emplace(to, second).second) {
      throw Fault{static_cast<int32_t>(second), "a second step to this name"};
    }
  }
  for (const auto& [to, place] : reached) {
    if (next.count(to) == 0) throw Fault{static_cast<int32_t>(place), "no step leads on from here"};
  }
  if (next.empty()) throw Fault{static_cast<int32_t>(begin), "no steps"};
  const int32_t first = next.begin()->first;
  size_t length = 1;
  for (int32_t at = next.at(first); at != first; at = next.at(at)) ++length;
  if (length != next.size()) {
    throw Fault{static_cast<int32_t>(begin),
                "the steps are several cycles: one has " + std::to_string(length) + " of " +
                    std::to_string(next.size()) + " names"};
  }
  return next;
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

std::optional<Fault> Depo::find_fault(const Instance& instance) const {
  return fault_of([&] {
    const std::vector<int32_t>& tokens = instance.tokens;
    size_t at = 0;
    expect(tokens, at, bos(), "bos");
    const Successors next = read_cycle(names_, tokens, at);
    const size_t n = next.size();
    if (n < 3 || n > static_cast<size_t>(config_.max_nodes)) {
      throw Fault{static_cast<int32_t>(at), "a cycle of " + std::to_string(n) + " names"};
    }
    std::vector<uint8_t> scored(tokens.size());
    std::vector<Answer> answers;
    Successors asked;
    while (at < tokens.size()) {
      if (tokens[at] < hop(1) || tokens[at] > hop(config_.max_hops)) {
        throw Fault{static_cast<int32_t>(at), "not a hop marker"};
      }
      const int k = tokens[at] - hop(1) + 1;
      const auto place = static_cast<int32_t>(++at);
      const int32_t query = names_.read(tokens, at);
      if (next.count(query) == 0) throw Fault{place, "a question about a name not in the cycle"};
      if (!asked.emplace(query, place).second) throw Fault{place, "a second question about a name"};
      const auto marker = static_cast<int32_t>(at);
      expect(tokens, at, answer(), "the answer marker");
      const int32_t given = names_.read(tokens, at);
      int32_t right = query;
      for (int step = 0; step < k; ++step) right = next.at(right);
      if (given != right) {
        Instance expected;
        names_.add(right, false, expected);
        throw Fault{marker + 1,
                    "the answer is wrong: " + std::to_string(k) + " steps lead to " +
                        print(*this, expected.tokens)};
      }
      std::fill(scored.begin() + marker, scored.begin() + static_cast<int64_t>(at), uint8_t{1});
      answers.push_back({marker, marker + 1, static_cast<int32_t>(at), k});
    }
    if (answers.size() != std::min(n, static_cast<size_t>(config_.max_queries))) {
      throw Fault{static_cast<int32_t>(at), std::to_string(answers.size()) + " questions"};
    }
    check_scored(instance, scored);
    check_answers(instance, answers);
  });
}

void Depo::score(const Instance& instance,
                 const std::vector<int32_t>& predicted,
                 Scores& scores) const {
  score_answers(instance, predicted, {"token_accuracy", "answer_accuracy", "hop"}, scores);
}

}  // namespace forge::data::tasks
