#include "core/run/run_model.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/data/tokenizer_json.h"
#include "core/run/open_model.h"
#include "tests/core/hf/sample_model.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/run_folder_maker.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// A runs folder with one run of the sample model under each id.
class Runs {
 public:
  explicit Runs(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      tests::MadeRun made;
      made.id = id;
      made.experiment.model = tests::small_model();
      made.tokenizer_fingerprint = data::Tokenizer(data::initial_vocabulary()).fingerprint();
      const RunFolder folder = tests::make_completed_run(path(), made);
      tests::write_sample_checkpoint(folder.path(), made.experiment.model);
      tests::write_sample_tokenizer(folder.path());
    }
  }
  fs::path path() const { return folder_ / "runs"; }
  RunFolder find(const std::string& name) const { return named_run(path(), name); }
  std::string fault(const std::string& name) const {
    return error_of([&] { find(name); });
  }
  RunFolder only() const { return list_runs(path()).at(0); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a run is found by its id and by its beginning and by its folder", "[run]") {
  const Runs runs({"train_a-1234", "train_a-1299", "train_a-1299-2", "train_b-1234"});
  REQUIRE(runs.find("train_b").id() == "train_b-1234");
  REQUIRE(runs.find("train_a-1234").id() == "train_a-1234");
  REQUIRE(runs.find("train_a-1299").id() == "train_a-1299");  // though another one begins so
  REQUIRE(runs.find((runs.path() / "train_b-1234").string()).id() == "train_b-1234");
  REQUIRE(runs.find((runs.path() / "train_b-1234/").string()).id() == "train_b-1234");
}

TEST_CASE("a name that is none or too short says what there is", "[run]") {
  const Runs runs({"train_a-1234", "train_a-1299"});
  REQUIRE(contains(runs.fault("train_a"), "'train_a' may mean several runs"));
  REQUIRE(contains(runs.fault("train_a"), "train_a-1234, train_a-1299"));
  REQUIRE(contains(runs.fault("train_a-1243"), "did you mean 'train_a-1234'"));
  REQUIRE(contains(runs.fault("else"), "'forge runs' lists them"));
  REQUIRE(contains(runs.fault(""), "is empty"));
  REQUIRE(contains(error_of([] { named_run("/nowhere/at/all", "x"); }), "no run 'x'"));
}

TEST_CASE("a run opens at its newest checkpoint or at a named one", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  tests::save_checkpoint(folder.checkpoints(), 10);
  const RunModel newest = open_run(folder);
  REQUIRE(newest.step == 30);
  REQUIRE(newest.experiment.model.hidden_size == 8);
  REQUIRE(newest.tokenizer == folder.tokenizer_file());
  REQUIRE(open_run(folder, 10).checkpoint == folder.checkpoints() / "000000010");
  REQUIRE(contains(error_of([&] { open_run(folder, 11); }),
                   "run 'train_a-1234' has no checkpoint of step 11"));
  REQUIRE(contains(error_of([&] { open_run(folder, 11); }), "it has those of 10, 30"));
}

TEST_CASE("a damaged checkpoint is passed over for an older one", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  const fs::path newer = tests::save_checkpoint(folder.checkpoints(), 40);
  write_file_atomic(newer / "weights.safetensors", "x");
  REQUIRE(open_run(folder).step == 30);
  remove_tree(folder.checkpoints() / "000000030");
  REQUIRE(contains(error_of([&] { open_run(folder); }), "has damaged checkpoints only"));
  remove_tree(folder.checkpoints());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "has no checkpoint"));
}

TEST_CASE("the tokenizer must be the one of the training", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  data::Vocabulary other = data::initial_vocabulary();
  other.prefix_space = data::PrefixSpace::none;
  data::save_tokenizer(data::Tokenizer(other), folder.tokenizer_file());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "is not the tokenizer that run"));
  fs::remove(folder.tokenizer_file());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "is gone"));
}

TEST_CASE("a run without a copy of its tokenizer finds it beside its tokens", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  fs::remove(folder.tokenizer_file());
  const TemporaryFolder cache;
  protocol::Request request;
  request.train_tokens = {{(cache / "train.tokens").string(), 1}};
  write_file_atomic(folder.request_file(), protocol::to_line(request));
  tests::write_sample_tokenizer(cache.path());
  REQUIRE(open_run(folder).tokenizer == cache / "tokenizer.json");
}

TEST_CASE("a run whose config is damaged names the file", "[run]") {
  const Runs runs({"train_a-1234"});
  write_file_atomic(runs.only().config_file(), "{");
  REQUIRE(contains(error_of([&] { open_run(runs.only()); }), "config.json' is damaged"));
}

TEST_CASE("a model is opened from a run", "[run]") {
  const Runs runs({"train_a-1234"});
  REQUIRE(open_model(runs.path(), "train_a").step == 30);
  REQUIRE(contains(error_of([&] { open_model(runs.path(), "no/such/folder"); }), "no run"));
}

}  // namespace
}  // namespace forge::run
