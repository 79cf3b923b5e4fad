#include "core/data/batch_loader.h"

#include "core/base/hash.h"
#include "core/data/token_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

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
