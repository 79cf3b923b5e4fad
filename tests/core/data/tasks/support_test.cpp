#include "core/data/tasks/support.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

TEST_CASE("names are as many as there are and are read as they were written") {
  for (const auto& [letters, least, most, count] :
       {std::tuple{50, 1, 2, 2550}, std::tuple{3, 5, 7, 3159}, std::tuple{4, 2, 4, 336}}) {
    const NameSpace names(letters, least, most, 3);
    REQUIRE(names.count() == count);
    std::set<std::vector<int32_t>> all;
    for (int32_t rank = 0; rank < count; ++rank) {
      Instance instance;
      names.add(rank, true, instance);
      const std::vector<int32_t>& tokens = instance.tokens;
      REQUIRE(static_cast<int>(tokens.size()) >= least);
      REQUIRE(static_cast<int>(tokens.size()) <= most);
      for (size_t i = 0; i < tokens.size(); ++i) {
        REQUIRE((tokens[i] >= letters) == (i + 1 == tokens.size()));
        REQUIRE((tokens[i] >= 0 && tokens[i] < names.end_of_letters()));
      }
      size_t position = 0;
      REQUIRE(names.read(tokens, position) == rank);
      REQUIRE(position == tokens.size());
      all.insert(tokens);
    }
    REQUIRE(static_cast<int>(all.size()) == count);
  }
}

TEST_CASE("drawn names are distinct, and their lengths uniform while there are enough") {
  const NameSpace names(4, 5, 7, 100);
  std::map<size_t, int> lengths;
  RandomStream random(1, 2);
  std::vector<int32_t> ranks;
  for (int i = 0; i < 3000; ++i) {
    names.draw_distinct(3, random, ranks);
    REQUIRE(std::set<int32_t>(ranks.begin(), ranks.end()).size() == 3);
    Instance instance;
    names.add(ranks[0], false, instance);
    ++lengths[instance.tokens.size()];
  }
  REQUIRE(lengths.size() == 3);
  for (const auto& [length, count] : lengths) {
    REQUIRE(std::abs(count - 1000) < 4 * std::sqrt(3000.0 * 2 / 9));
  }
  const NameSpace few(2, 1, 2, 6);
  few.draw_distinct(6, random, ranks);
  REQUIRE(std::set<int32_t>(ranks.begin(), ranks.end()) == std::set<int32_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("sizes follow their law") {
  const int most = 20;
  const SizeLaw law(most);
  std::map<int, int> counts;
  RandomStream random(1, 3);
  constexpr int draws = 100000;
  for (int i = 0; i < draws; ++i) ++counts[law.draw(random)];
  double sum = 0;
  for (int n = 3; n <= most; ++n) sum += 1 / (n + std::sqrt(most));
  REQUIRE(counts.begin()->first == 3);
  REQUIRE(counts.rbegin()->first == most);
  for (const auto& [n, count] : counts) {
    const double p = 1 / (n + std::sqrt(most)) / sum;
    REQUIRE(std::abs(count - draws * p) < 4.5 * std::sqrt(draws * p * (1 - p)));
  }
}

TEST_CASE("shuffling gives every order as often") {
  std::map<std::vector<int>, int> orders;
  RandomStream random(1, 4);
  for (int i = 0; i < 24000; ++i) {
    std::vector<int> items = {0, 1, 2, 3};
    shuffle(items, random);
    ++orders[items];
  }
  REQUIRE(orders.size() == 24);
  for (const auto& [order, count] : orders) REQUIRE(std::abs(count - 1000) < 4 * 31);
}

}  // namespace
}  // namespace forge::data::tasks
