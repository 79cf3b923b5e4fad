#include "app/run_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "core/base/hash.h"

namespace forge::app {
namespace {

using Turn = std::vector<size_t>;  ///< configs in the order of a turn
using Turns = std::vector<Turn>;

uint64_t number_of(const std::string& key) {
  return std::strtoull(hash_hex(key).substr(0, 16).c_str(), nullptr, 16);
}

/// A good mixture of the bits of two numbers: the finaliser of SplitMix64.
uint64_t mixed(uint64_t number, uint64_t draw) {
  uint64_t bits = number + (draw + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return bits ^ bits >> 31;
}

Turns drawn(const std::vector<std::vector<uint64_t>>& numbers, uint64_t draw) {
  Turns turns;
  for (const std::vector<uint64_t>& of_turn : numbers) {
    Turn& turn = turns.emplace_back(of_turn.size());
    std::iota(turn.begin(), turn.end(), size_t{0});
    std::stable_sort(turn.begin(), turn.end(), [&](size_t left, size_t right) {
      return mixed(of_turn[left], draw) < mixed(of_turn[right], draw);
    });
  }
  return turns;
}

/// Whether no config comes before another one in many turns more than behind it. A few more are let
/// be: orders that were balanced exactly could be guessed better by a rhythm.
bool is_balanced(const Turns& turns) {
  const size_t configs = turns.front().size();
  const auto count = static_cast<int64_t>(turns.size());
  const auto most = std::max(count % 2, static_cast<int64_t>(std::sqrt(double(count))));
  std::vector<int64_t> before(configs * configs);  // in so many turns more than behind
  for (const Turn& turn : turns) {
    for (size_t place = 0; place < configs; ++place) {
      for (size_t later = place + 1; later < configs; ++later) {
        ++before[turn[place] * configs + turn[later]];
        --before[turn[later] * configs + turn[place]];
      }
    }
  }
  return std::all_of(before.begin(), before.end(), [&](int64_t more) { return more <= most; });
}

/// Every second turn is the one before it, backwards.
Turns there_and_back(Turns turns) {
  for (size_t turn = 1; turn < turns.size(); turn += 2)
    turns[turn].assign(turns[turn - 1].rbegin(), turns[turn - 1].rend());
  return turns;
}

}  // namespace

std::vector<std::vector<size_t>> order_of_turns(const std::vector<std::vector<std::string>>& keys,
                                                const std::string& salt) {
  constexpr size_t few = 16;
  constexpr uint64_t most_draws = 1000;
  if (keys.empty()) return {};
  const size_t configs = keys.front().size();
  if (configs > few) {
    Turn turn(configs);
    std::iota(turn.begin(), turn.end(), size_t{0});
    return there_and_back(Turns(keys.size(), turn));
  }
  std::vector<std::vector<uint64_t>> numbers;
  for (const std::vector<std::string>& of_turn : keys) {
    std::vector<uint64_t>& of = numbers.emplace_back();
    for (const std::string& key : of_turn) of.push_back(number_of(salt + key));
  }
  if (keys.size() == 1) return drawn(numbers, 0);
  for (uint64_t draw = 0; draw < most_draws; ++draw) {
    Turns turns = drawn(numbers, draw);
    if (is_balanced(turns)) return turns;
  }
  return there_and_back(drawn(numbers, 0));  // so many configs are seldom in balance by chance
}

}  // namespace forge::app
