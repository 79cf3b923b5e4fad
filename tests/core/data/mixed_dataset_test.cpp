#include <algorithm>
#include <set>

#include "core/base/hash.h"
#include "core/data/batch_loader.h"
#include "core/data/dataset.h"
#include "core/data/token_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

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
  evaluation.turns = Turns::one_after_another;
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
