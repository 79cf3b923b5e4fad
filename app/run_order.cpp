#include "app/run_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

using Turn = std::vector<size_t>;  ///< configs in the order of a turn

uint64_t number_of(const std::string& key) {
  return std::strtoull(hash_hex(key).substr(0, 16).c_str(), nullptr, 16);
}

/// Any order of the keys, as often as any other one.
std::vector<size_t> any_order(const std::vector<std::string>& keys, const std::string& salt) {
  std::vector<uint64_t> numbers;
  for (const std::string& key : keys) numbers.push_back(number_of(salt + key));
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return numbers[left] < numbers[right];
  });
  return order;
}

/// How often each config has come before each other one.
class Leads {
 public:
  /// `most`: after all turns no config has come before another one in more than so many turns more
  /// than behind it, if that can be.
  Leads(size_t configs, int64_t turns, int64_t most)
      : configs_(configs), turns_left_(turns), most_(most), leads_(configs * configs) {}

  /// The configs in the order of `wanted`, but for those that have to come behind others.
  Turn next(const Turn& wanted) {
    --turns_left_;
    Turn left = wanted, turn;
    std::vector<size_t> waits_for(configs_);  // so many of those that are left
    for (const size_t config : left)
      for (const size_t other : left) waits_for[config] += must_follow(config, other);
    while (!left.empty()) {
      auto chosen = std::find_if(
          left.begin(), left.end(), [&](size_t config) { return waits_for[config] == 0; });
      if (chosen == left.end()) chosen = left.begin();  // each waits for another one
      const size_t config = *chosen;
      left.erase(chosen);
      turn.push_back(config);
      for (const size_t other : left) waits_for[other] -= must_follow(other, config);
    }
    for (size_t place = 0; place < configs_; ++place) {
      for (size_t later = place + 1; later < configs_; ++later) {
        ++lead(turn[place], turn[later]);
        --lead(turn[later], turn[place]);
      }
    }
    return turn;
  }

 private:
  int16_t& lead(size_t config, size_t other) { return leads_[config * configs_ + other]; }
  bool must_follow(size_t config, size_t other) {
    return config != other && lead(config, other) >= most_ + turns_left_;
  }

  size_t configs_;
  int64_t turns_left_;
  int64_t most_;
  std::vector<int16_t> leads_;
};

}  // namespace

std::vector<std::vector<size_t>> order_of_turns(const std::vector<std::vector<std::string>>& keys,
                                                const std::string& salt) {
  constexpr size_t most_balanced = 2000;  // there is a number for each two of them
  const auto turns = static_cast<int64_t>(keys.size());
  const size_t configs = keys.empty() ? 0 : keys.front().size();
  const bool is_balanced = turns > 1 && configs <= most_balanced;
  // A few more are let be: orders that were balanced exactly could be guessed better by a rhythm.
  const auto most = std::max(turns % 2, static_cast<int64_t>(std::sqrt(double(turns))));
  Leads leads(is_balanced ? configs : 0, turns, most);
  const std::vector<std::string> of_turns =
      texts_of(keys, [](const std::vector<std::string>& of_turn) { return join(of_turn, "\n"); });
  std::vector<Turn> order(keys.size());
  // Any turn may have to balance the others, not the last ones alone.
  for (const size_t turn : any_order(of_turns, salt)) {
    const Turn drawn = any_order(keys[turn], salt);
    order[turn] = is_balanced ? leads.next(drawn) : drawn;
  }
  return order;
}

}  // namespace forge::app
