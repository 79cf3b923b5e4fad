#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/base/hash.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

TEST_CASE("after any number of rows each source has given its share to within one") {
  std::random_device device;
  const unsigned seed = device();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<double> weights(2 + random() % 9);
    for (double& weight : weights) weight = 1 + static_cast<double>(random() % 1000);
    const Mixture mixture(weights);
    std::vector<int64_t> given(weights.size());
    double furthest = 0;
    bool in_turn = true;
    for (int64_t position = 0; position < Mixture::period; ++position) {
      const Mixture::Place place = mixture.place_of(position);
      in_turn = in_turn && place.row == given[place.source]++;
      for (size_t i = 0; i < given.size(); ++i) {
        const double share = double(mixture.share(i)) / double(Mixture::period);
        furthest = std::max(furthest, std::abs(double(given[i]) - share * double(position + 1)));
      }
    }
    REQUIRE(in_turn);
    REQUIRE(furthest < 1);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < given.size(); ++i) {
      REQUIRE(given[i] == mixture.share(i));
      REQUIRE(std::abs(weights[i] / sum * double(Mixture::period) - double(given[i])) <= 1);
    }
  }
}

TEST_CASE("rows of a mixture go on in the next period and are counted anywhere") {
  const Mixture mixture({1, 2, 0.25});
  std::vector<int64_t> given(3);
  bool in_turn = true, counted = true;
  for (int64_t position = 0; position < 2 * Mixture::period + 17; ++position) {
    if (position % 9973 == 0) {
      for (size_t i = 0; i < 3; ++i) counted = counted && mixture.rows_of(i, position) == given[i];
    }
    const Mixture::Place place = mixture.place_of(position);
    in_turn = in_turn && place.row == given[place.source]++;
  }
  REQUIRE(in_turn);
  REQUIRE(counted);
  // Far away it costs the same and is no further from the share.
  const int64_t far = int64_t{1} << 50;
  REQUIRE(std::abs(double(mixture.rows_of(0, far)) / double(far) * 3.25 - 1) < 1e-4);
  REQUIRE(mixture.place_of(far).row >= 0);
}

TEST_CASE("the order of a mixture is this one on every machine") {
  const Mixture mixture({5, 3, 2});
  std::string order;
  for (int64_t position = 0; position < 20; ++position) {
    order += std::to_string(mixture.place_of(position).source);
  }
  REQUIRE(order == "01020101020102010102");
  REQUIRE(Mixture({50, 30, 20}).place_of(77).source == mixture.place_of(77).source);
}

TEST_CASE("one source gives all rows and weights that stand for none are refused") {
  const Mixture alone({0.5});
  REQUIRE(alone.place_of(int64_t{1} << 40).row == int64_t{1} << 40);
  REQUIRE(alone.rows_of(0, 7) == 7);
  REQUIRE(alone.share(0) == Mixture::period);
  REQUIRE(tests::error_of([] { Mixture({1, 0}); }) != "");
  REQUIRE(tests::error_of([] { Mixture({1, -1}); }) != "");
  REQUIRE(tests::error_of([] { Mixture({1, std::nan("")}); }) != "");
  REQUIRE(tests::error_of([] { Mixture(std::vector<double>{}); }) != "");
  REQUIRE(tests::error_of([] {
            Mixture({1, 1e-7});
          }).find("less than one row in 100,000") != std::string::npos);
}

using config::RowOrder;

constexpr int seq_len = 4;

/// A token file of `rows` rows with the ids first, first + 1, …
std::filesystem::path counting_file(const tests::TemporaryFolder& folder,
                                    const std::string& name,
                                    int first,
                                    int rows) {
  std::vector<int32_t> ids;
  for (int i = 0; i <= rows * seq_len; ++i) ids.push_back(first + i);
  TokenFileWriter writer(folder / (name + ".tokens"), 70000, hash_hex(""));
  writer.append(ids.data(), ids.size());
  writer.finish();
  return folder / (name + ".tokens");
}

struct Sources {
  tests::TemporaryFolder folder;
  RowSource few = {counting_file(folder, "few", 0, 10), 0, "few", 3};
  RowSource many = {counting_file(folder, "many", 10000, 1000), 0, "many", 1};
};

RowOptions options(RowOrder order = RowOrder::shuffled) {
  RowOptions options;
  options.seq_len = seq_len;
  options.order = order;
  options.seed = 5;
  return options;
}

/// First ids of rows.
std::vector<int32_t> rows_of(const Dataset& data, int64_t position, int count) {
  std::vector<int32_t> inputs(static_cast<size_t>(count) * seq_len);
  std::vector<int32_t> targets = inputs;
  data.fill(position, count, inputs.data(), targets.data());
  std::vector<int32_t> first;
  for (int i = 0; i < count; ++i) {
    for (int t = 0; t < seq_len; ++t) {
      REQUIRE(targets[static_cast<size_t>(i * seq_len + t)] ==
              inputs[static_cast<size_t>(i * seq_len)] + t + 1);
    }
    first.push_back(inputs[static_cast<size_t>(i * seq_len)]);
  }
  return first;
}

std::vector<int32_t> below(const std::vector<int32_t>& rows, bool few) {
  std::vector<int32_t> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found), [&](int32_t id) {
    return (id < 10000) == few;
  });
  return found;
}

TEST_CASE("each source of a mixture has epochs and an order of its own") {
  const Sources sources;
  const Dataset data({sources.few, sources.many}, options());
  REQUIRE(data.rows() == 1010);
  const std::vector<int32_t> rows = rows_of(data, 0, 4000);
  const std::vector<int32_t> few = below(rows, true);
  REQUIRE(few.size() == 3000);
  // 300 epochs of ten rows, each once an epoch and shuffled anew.
  std::set<std::vector<int32_t>> orders;
  for (int epoch = 0; epoch < 300; ++epoch) {
    const std::vector<int32_t> order(few.begin() + epoch * 10, few.begin() + epoch * 10 + 10);
    REQUIRE(std::set<int32_t>(order.begin(), order.end()).size() == 10);
    orders.insert(order);
  }
  REQUIRE(orders.size() > 290);
  const std::vector<int32_t> many = below(rows, false);
  REQUIRE(std::set<int32_t>(many.begin(), many.end()).size() == 1000);
}

TEST_CASE("another source changes nothing in the order of the ones there are") {
  const Sources sources;
  const Dataset two({sources.few, sources.many}, options());
  RowSource third = sources.many;
  third.name = "third";
  third.weight = 7;
  const Dataset three({sources.few, sources.many, third}, options());
  const std::vector<int32_t> before = below(rows_of(two, 0, 400), true);
  const std::vector<int32_t> after = below(rows_of(three, 0, 1000), true);
  REQUIRE(after.size() > 200);
  REQUIRE(std::equal(after.begin(), after.begin() + 200, before.begin()));
  // Nor do two sources of the same text have the same order.
  const Dataset pair({sources.many, third}, options());
  const std::vector<int32_t> rows = rows_of(pair, 0, 800);
  REQUIRE(std::set<int32_t>(rows.begin(), rows.end()).size() > 100);
}

TEST_CASE("rows of a mixture are had from any position and in order") {
  const Sources sources;
  const Dataset shuffled({sources.few, sources.many}, options());
  const std::vector<int32_t> all = rows_of(shuffled, 0, 3000);
  for (const int64_t position : {1, 999, 2990}) {
    const std::vector<int32_t> part = rows_of(shuffled, position, 10);
    REQUIRE(std::equal(part.begin(), part.end(), all.begin() + position));
  }
  const Dataset in_order({sources.few, sources.many}, options(RowOrder::sequential));
  const std::vector<int32_t> few = below(rows_of(in_order, 0, 40), true);
  for (size_t i = 0; i < few.size(); ++i) REQUIRE(few[i] == int32_t(i % 10) * seq_len);
  rows_of(shuffled, int64_t{1} << 45, 3);
}

TEST_CASE("rows one after another are all of the first source before the second") {
  Sources sources;
  sources.few.rows = 3;
  sources.many.rows = 2;
  RowOptions evaluation = options(RowOrder::sequential);
  evaluation.interleaving = Interleaving::sequential;
  const Dataset data({sources.few, sources.many}, evaluation);
  REQUIRE(data.rows() == 5);
  REQUIRE(rows_of(data, 0, 7) == std::vector<int32_t>{0, 4, 8, 10000, 10004, 0, 4});
  sources.many.rows = 1001;
  REQUIRE(tests::error_of([&] {
            Dataset({sources.few, sources.many}, evaluation);
          }).find("holds 1,000 rows") != std::string::npos);
}

TEST_CASE("a mixture's batches are the same for any number of threads and of ranks") {
  const Sources sources;
  const Dataset data({sources.few, sources.many}, options());
  constexpr int batches = 50;
  std::vector<int32_t> expected(size_t{12} * batches * seq_len);
  std::vector<int32_t> targets = expected;
  data.fill(0, 12 * batches, expected.data(), targets.data());
  for (const int ranks : {1, 2, 4}) {
    for (const int threads : {1, 3}) {
      std::vector<int32_t> together;
      std::vector<std::unique_ptr<BatchLoader>> loaders;
      for (int rank = 0; rank < ranks; ++rank) {
        loaders.push_back(std::make_unique<BatchLoader>(
            data, LoaderOptions{12 / ranks, 0, threads, 3, {rank, ranks}}));
      }
      for (int i = 0; i < batches; ++i) {
        for (const auto& loader : loaders) {
          const std::vector<int32_t>& inputs = loader->next().inputs;
          together.insert(together.end(), inputs.begin(), inputs.end());
        }
      }
      REQUIRE(together == expected);
    }
  }
}

}  // namespace
}  // namespace forge::data
