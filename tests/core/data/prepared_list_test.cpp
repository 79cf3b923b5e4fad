#include "core/data/prepared_list.h"

#include "core/base/fs.h"
#include "core/data/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

config::Experiment small_experiment(uint64_t seed) {
  config::Experiment experiment;
  experiment.model.vocab_size = experiment.tokenizer.vocab_size = 300;
  experiment.train.max_steps = 1;
  experiment.train.batch_size = 1;
  experiment.train.seq_len = 64;
  experiment.train.eval_rows = 1;
  experiment.data.seed = seed;
  return experiment;
}

TEST_CASE("prepared data is listed with what it holds and where it is from") {
  tests::TemporaryFolder cache;
  REQUIRE(list_prepared(cache.path()).empty());
  const PreparedData made = prepare(small_experiment(1), cache.path(), {});
  prepare(small_experiment(2), cache.path(), {});
  const std::vector<PreparedFolder> list = list_prepared(cache.path());
  REQUIRE(list.size() == 2);
  const std::string name = "toy_stories-" + made.data_fingerprint.substr(0, 8);
  const PreparedFolder found = find_prepared(cache.path(), name);
  REQUIRE(found.name == name + "/byte_level_bpe-300-v1");
  REQUIRE(found.folder == made.train[0].tokens.parent_path());
  REQUIRE(found.source == "toy_stories");
  REQUIRE(found.train->tokens > 64);
  REQUIRE(found.train->documents == 256);
  REQUIRE(found.bytes > static_cast<int64_t>(fs::file_size(made.train[0].tokens)));
  REQUIRE_FALSE(found.unfinished);
  REQUIRE(find_prepared(cache.path(), found.folder.string()).bytes == found.bytes);
  REQUIRE(contains(tests::error_of([&] { find_prepared(cache.path(), "toy"); }),
                   "is the beginning of several names"));
  REQUIRE(contains(tests::error_of([&] { find_prepared(cache.path(), "x"); }),
                   "no prepared data is called 'x'"));
}

TEST_CASE("a token file that is not whole is listed as none") {
  tests::TemporaryFolder cache;
  const PreparedData made = prepare(small_experiment(1), cache.path(), {});
  fs::resize_file(made.train[0].tokens, 100);
  write_file_atomic(made.train[0].tokens.string() + ".partial", "x");
  const PreparedFolder found = list_prepared(cache.path()).at(0);
  REQUIRE_FALSE(found.train.has_value());
  REQUIRE(found.evaluation.has_value());
  REQUIRE(found.unfinished);
}

}  // namespace
}  // namespace forge::data
