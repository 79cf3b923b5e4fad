#include <algorithm>
#include <set>

#include "core/base/hash.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using config::RowOrder;
using Ids = std::vector<int32_t>;

/// A token file of the ids 0, 1, 2, …
std::filesystem::path plain_counting_file(const tests::TemporaryFolder& folder, int count) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(i);
  TokenFileWriter writer(folder / "counting.tokens", 2000, hash_hex(""));
  writer.append(ids.data(), ids.size());
  writer.finish();
  return folder / "counting.tokens";
}

Ids first_inputs(const Dataset& data, int64_t position, int count) {
  Ids inputs(static_cast<size_t>(count * data.seq_len()));
  Ids targets = inputs;
  data.fill(position, count, inputs.data(), targets.data());
  Ids first;
  for (int i = 0; i < count; ++i) {
    for (int t = 0; t < data.seq_len(); ++t) {
      REQUIRE(targets[i * data.seq_len() + t] == inputs[i * data.seq_len()] + t + 1);
    }
    first.push_back(inputs[i * data.seq_len()]);
  }
  return first;
}

TEST_CASE("rows in order begin every seq_len ids and share one id with the next") {
  tests::TemporaryFolder folder;
  const Dataset data(plain_counting_file(folder, 13), {4, RowOrder::sequential, 1});
  REQUIRE(data.rows() == 3);
  Ids inputs(8), targets(8);
  data.fill(1, 2, inputs.data(), targets.data());
  REQUIRE(inputs == Ids{4, 5, 6, 7, 8, 9, 10, 11});
  REQUIRE(targets == Ids{5, 6, 7, 8, 9, 10, 11, 12});
  REQUIRE(first_inputs(data, 2, 3) == Ids{8, 0, 4});
}

TEST_CASE("rows may begin with a later one of the file") {
  tests::TemporaryFolder folder;
  const auto path = plain_counting_file(folder, 21);
  RowOptions options{4, RowOrder::sequential, 1};
  const Dataset behind({{path, 2, "", 1, 3}}, options);
  REQUIRE(behind.rows() == 2);
  REQUIRE(first_inputs(behind, 0, 3) == Ids{12, 16, 12});
  REQUIRE(Dataset({{path, 0, "", 1, 3}}, options).rows() == 2);
  options.order = RowOrder::shuffled;
  const Ids shuffled = first_inputs(Dataset({{path, 2, "", 1, 3}}, options), 0, 2);
  REQUIRE(std::set<int32_t>(shuffled.begin(), shuffled.end()) == std::set<int32_t>{12, 16});
  REQUIRE(tests::error_of([&] {
            Dataset({{path, 3, "", 1, 3}}, options);
          }).find("holds 5 rows of 4 tokens, not 6") != std::string::npos);
  REQUIRE_FALSE(tests::error_of([&] { Dataset({{path, 0, "", 1, 5}}, options); }).empty());
}

TEST_CASE("a last row needs one id more than seq_len") {
  tests::TemporaryFolder folder;
  const auto path = plain_counting_file(folder, 12);
  REQUIRE(Dataset(path, {4, RowOrder::sequential, 1}).rows() == 2);
  REQUIRE(Dataset(path, {11, RowOrder::sequential, 1}).rows() == 1);
  REQUIRE(tests::error_of([&] {
            Dataset(path, {12, RowOrder::sequential, 1});
          }).find("holds 0 rows of 12 tokens, not 1") != std::string::npos);
  REQUIRE(tests::error_of([&] { Dataset(path, {0, RowOrder::sequential, 1}); }) != "");
}

TEST_CASE("each shuffled epoch has every row once and another order") {
  tests::TemporaryFolder folder;
  const Dataset data(plain_counting_file(folder, 201), {4, RowOrder::shuffled, 9});
  REQUIRE(data.rows() == 50);
  const Ids first = first_inputs(data, 0, 50);
  const Ids second = first_inputs(data, 50, 50);
  REQUIRE(std::set<int32_t>(first.begin(), first.end()).size() == 50);
  REQUIRE(std::set<int32_t>(second.begin(), second.end()).size() == 50);
  REQUIRE(first != second);
  const Dataset other(folder / "counting.tokens", {4, RowOrder::shuffled, 10});
  REQUIRE(first_inputs(other, 0, 50) != first);
}

TEST_CASE("a position may be entered anywhere and a batch may cross an epoch") {
  tests::TemporaryFolder folder;
  const Dataset data(plain_counting_file(folder, 41), {4, RowOrder::shuffled, 3});
  const Ids all = first_inputs(data, 0, 40);
  for (const int64_t position : {0, 7, 9, 18, 33}) {
    const Ids part = first_inputs(data, position, 5);
    REQUIRE(part == Ids(all.begin() + position, all.begin() + position + 5));
  }
}

TEST_CASE("the shuffled order is fixed for all time") {
  tests::TemporaryFolder folder;
  const Dataset data(plain_counting_file(folder, 41), {4, RowOrder::shuffled, 1});
  REQUIRE(first_inputs(data, 0, 10) == Ids{24, 36, 20, 16, 28, 4, 12, 8, 32, 0});
}

TEST_CASE("documents of a row are numbered from its beginning") {
  tests::TemporaryFolder folder;
  const auto path = plain_counting_file(folder, 13);
  const Dataset divided(path, {5, RowOrder::sequential, 1, 0, 7});
  REQUIRE(divided.divides_documents());
  // A document begins at 7: within the first row, at the beginning of the second, nowhere.
  const Ids inputs = {3, 4, 7, 8, 7, 7, 1, 2, 7, 7, 1, 2, 3, 4, 5};
  Ids documents(inputs.size());
  divided.number_documents(inputs.data(), 3, documents.data());
  REQUIRE(documents == Ids{0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0});
  REQUIRE_FALSE(Dataset(path, {5, RowOrder::sequential, 1}).divides_documents());
}

TEST_CASE("a dataset can be told to use the first rows alone") {
  tests::TemporaryFolder folder;
  const auto path = plain_counting_file(folder, 41);
  const Dataset data(path, {4, RowOrder::shuffled, 1, 3});
  REQUIRE(data.rows() == 3);
  const Ids rows = first_inputs(data, 0, 9);
  for (const int32_t row : rows) REQUIRE(row <= 8);
  REQUIRE(tests::error_of([&] {
            Dataset(path, {4, RowOrder::shuffled, 1, 11});
          }).find("holds 10 rows of 4 tokens, not 11") != std::string::npos);
  REQUIRE(tests::error_of([&] { first_inputs(data, -1, 1); }).find("never negative") !=
          std::string::npos);
}

TEST_CASE("a short last row holds what is left and scores nothing behind it") {
  tests::TemporaryFolder folder;
  const auto path = plain_counting_file(folder, 12);
  REQUIRE(rows_of(12, 4, LastRow::may_be_short) == 3);
  REQUIRE(rows_of(13, 4, LastRow::may_be_short) == 3);
  REQUIRE(rows_of(14, 4, LastRow::may_be_short) == 4);
  REQUIRE(rows_of(12, 4, LastRow::whole) == 2);
  REQUIRE(rows_of(1, 4, LastRow::may_be_short) == 0);
  REQUIRE(rows_of(0, 4, LastRow::may_be_short) == 0);
  const Dataset data(path, {4, RowOrder::sequential, 1, 0, {}, LastRow::may_be_short});
  REQUIRE(data.rows() == 3);
  Ids inputs(8), targets(8);
  data.fill(1, 2, inputs.data(), targets.data());
  REQUIRE(inputs == Ids{4, 5, 6, 7, 8, 9, 10, 0});
  REQUIRE(targets == Ids{5, 6, 7, 8, 9, 10, 11, -100});
  const Dataset one(path, {100, RowOrder::sequential, 1, 1, {}, LastRow::may_be_short});
  REQUIRE(one.rows() == 1);
  REQUIRE(tests::error_of([&] {
            Dataset(path, {4, RowOrder::sequential, 1, 4, {}, LastRow::may_be_short});
          }).find("holds 3 rows of 4 tokens, not 4") != std::string::npos);
}

/// Documents of 3, 6, 1, 0 and 4 ids: 0, 1, 2 | 3 … 8 | 9 | | 10 … 13.
std::filesystem::path documents_file(const tests::TemporaryFolder& folder) {
  TokenFileWriter writer(folder / "documents.tokens", 2000, hash_hex("a tokenizer"));
  Ids ids;
  for (int i = 0; i < 14; ++i) ids.push_back(i);
  writer.append(ids.data(), ids.size(), {0, 3, 9, 10, 10});
  writer.finish();
  return folder / "documents.tokens";
}

TEST_CASE("a padded row is one document, cut or padded to its length, pads unscored") {
  tests::TemporaryFolder folder;
  RowOptions options;
  options.seq_len = 4;
  options.pad_id = 77;
  const Dataset data(documents_file(folder), options);
  REQUIRE(data.rows() == 5);
  Ids inputs(20);
  Ids targets(20);
  data.fill(0, 5, inputs.data(), targets.data());
  REQUIRE(inputs == Ids{0, 1, 2, 77, 3, 4, 5, 6, 9, 77, 77, 77, 77, 77, 77, 77, 10, 11, 12, 13});
  const int32_t no = unscored_target;
  REQUIRE(targets ==
          Ids{1, 2, no, no, 4, 5, 6, no, no, no, no, no, no, no, no, no, 11, 12, 13, no});
  options.rows = 6;
  REQUIRE(tests::error_of([&] {
            Dataset(folder / "documents.tokens", options);
          }).find("holds 5 documents, not 6") != std::string::npos);
}

struct Rows {
  Ids inputs;
  Ids targets;
};

TEST_CASE("a dataset over a task has the task's rows in order at any position") {
  const std::shared_ptr<const tasks::Task> task = tasks::make_task(tasks::depo1(9, 3));
  for (const Split split : {Split::training, Split::evaluation}) {
    const tasks::TaskRows rows(*task, 5, split, 40);
    const Dataset data(task, 5, split, 40, 1000);
    REQUIRE(data.rows() == 1000);
    REQUIRE(data.seq_len() == 40);
    REQUIRE_FALSE(data.divides_documents());
    for (const int64_t position : {0, 1, 7, 997}) {
      Rows expected = {Ids(120), Ids(120)};
      Rows served = expected;
      for (int row = 0; row < 3; ++row) {
        rows.fill(position + row, &expected.inputs[row * 40], &expected.targets[row * 40]);
      }
      data.fill(position, 3, served.inputs.data(), served.targets.data());
      REQUIRE(served.inputs == expected.inputs);
      REQUIRE(served.targets == expected.targets);
    }
  }
}

TEST_CASE("a dataset over a task begins again behind its last row") {
  const Dataset data(tasks::make_task(tasks::ManoConfig{3}), 5, Split::evaluation, 20, 4);
  Rows once = {Ids(80), Ids(80)};
  Rows later = once;
  data.fill(0, 4, once.inputs.data(), once.targets.data());
  data.fill(6, 4, later.inputs.data(), later.targets.data());
  std::rotate(once.inputs.begin(), once.inputs.begin() + 40, once.inputs.end());
  REQUIRE(later.inputs == once.inputs);
}

TEST_CASE("batches of a task are the same for any number of threads and from any step") {
  const Dataset data(tasks::make_task(tasks::brevo1(8)), 5, Split::training, 30, 4000);
  Rows expected = {Ids(60 * 4 * 30), Ids(60 * 4 * 30)};
  data.fill(0, 240, expected.inputs.data(), expected.targets.data());
  const auto batches_from = [&](int64_t first, int threads) {
    BatchLoader loader(data, {4, first, threads, 3, {}});
    Rows rows;
    for (int64_t batch = first; batch < 60; ++batch) {
      const RowBatch& next = loader.next();
      REQUIRE(next.documents.empty());
      rows.inputs.insert(rows.inputs.end(), next.inputs.begin(), next.inputs.end());
      rows.targets.insert(rows.targets.end(), next.targets.begin(), next.targets.end());
    }
    return rows;
  };
  for (const int threads : {1, 2, 5}) {
    const Rows all = batches_from(0, threads);
    REQUIRE(all.inputs == expected.inputs);
    REQUIRE(all.targets == expected.targets);
    const Rows rest = batches_from(37, threads);
    REQUIRE(rest.inputs == Ids(expected.inputs.begin() + 37 * 120, expected.inputs.end()));
    REQUIRE(rest.targets == Ids(expected.targets.begin() + 37 * 120, expected.targets.end()));
  }
}

TEST_CASE("a dataset over a task needs rows") {
  const std::shared_ptr<const tasks::Task> task = tasks::make_task(tasks::CopyConfig{5, 0});
  const auto error = [&](int seq_len, int64_t rows) {
    return tests::error_of([&] { Dataset(task, 5, Split::training, seq_len, rows); });
  };
  REQUIRE(error(20, 0).find("no rows of the task copy") != std::string::npos);
  REQUIRE(error(0, 5).find("seq_len") != std::string::npos);
  REQUIRE(error(20, 1) == "");
}

/// A token file of the ids 0, 1, 2, … with a document every 7 of them.
std::filesystem::path counting_documents(const tests::TemporaryFolder& folder, int count) {
  std::vector<int32_t> ids;
  std::vector<int64_t> documents;
  for (int i = 0; i < count; ++i) {
    if (i % 7 == 0) documents.push_back(i);
    ids.push_back(i % 7 == 0 ? 1 : i);
  }
  TokenFileWriter writer(folder / "a.tokens", 70000, hash_hex("a tokenizer"));
  writer.append(ids.data(), ids.size(), documents);
  writer.finish();
  return folder / "a.tokens";
}

RowOptions shuffled_rows() {
  RowOptions options;
  options.seq_len = 5;
  options.order = config::RowOrder::shuffled;
  options.seed = 11;
  return options;
}

struct Batches {
  std::vector<int32_t> inputs, targets, documents;
};
void append(std::vector<int32_t>& to, const std::vector<int32_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Batches load(const Dataset& dataset, const LoaderOptions& options, int count) {
  BatchLoader loader(dataset, options);
  Batches batches;
  for (int i = 0; i < count; ++i) {
    const RowBatch& batch = loader.next();
    append(batches.inputs, batch.inputs);
    append(batches.targets, batch.targets);
    append(batches.documents, batch.documents);
  }
  return batches;
}

TEST_CASE("batches are the same bytes for any number of threads and from any position") {
  tests::TemporaryFolder folder;
  RowOptions rows = shuffled_rows();
  rows.document_start = 1;
  for (const bool padded : {false, true}) {
    if (padded) rows.pad_id = 3;
    const Dataset dataset(counting_documents(folder, 1000), rows);
    // Several epochs; each as the dataset itself has it.
    Batches expected;
    expected.inputs.resize(300 * 4 * 5);
    expected.targets.resize(300 * 4 * 5);
    expected.documents.resize(300 * 4 * 5);
    dataset.fill(0, 1200, expected.inputs.data(), expected.targets.data());
    dataset.number_documents(expected.inputs.data(), 1200, expected.documents.data());
    for (const int threads : {1, 2, 5}) {
      for (const int ahead : {1, 3}) {
        const Batches loaded = load(dataset, {4, 0, threads, ahead, {}}, 300);
        REQUIRE(loaded.inputs == expected.inputs);
        REQUIRE(loaded.targets == expected.targets);
        REQUIRE(loaded.documents == expected.documents);
      }
    }
    const Batches later = load(dataset, {4, 250, 2, 4, {}}, 50);
    REQUIRE(std::equal(later.inputs.begin(), later.inputs.end(), expected.inputs.end() - 1000));
  }
}

TEST_CASE("ranks together see the rows of one process") {
  tests::TemporaryFolder folder;
  const Dataset dataset(counting_documents(folder, 1000), shuffled_rows());
  const Batches alone = load(dataset, {6, 0, 1, 2, {}}, 40);
  BatchLoader first(dataset, {2, 0, 1, 2, {0, 3}});
  BatchLoader second(dataset, {2, 0, 2, 2, {1, 3}});
  BatchLoader third(dataset, {2, 0, 1, 1, {2, 3}});
  std::vector<int32_t> together;
  for (int i = 0; i < 40; ++i) {
    for (BatchLoader* loader : {&first, &second, &third}) append(together, loader->next().inputs);
  }
  REQUIRE(together == alone.inputs);
  REQUIRE(tests::error_of([&] { BatchLoader(dataset, {2, 0, 1, 2, {3, 3}}); }) != "");
}

TEST_CASE("a loader may end with batches that nobody took") {
  tests::TemporaryFolder folder;
  const Dataset dataset(counting_documents(folder, 1000), shuffled_rows());
  for (int taken = 0; taken < 20; ++taken) load(dataset, {1, 0, 3, 4, {}}, taken);
}

}  // namespace
}  // namespace forge::data
