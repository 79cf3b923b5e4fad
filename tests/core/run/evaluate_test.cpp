#include "core/run/evaluate.h"

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/rows/token_file.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/weights/model_files.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// A model whose tokenizer knows bytes alone; it has no weights, for nothing here looks at them.
struct Fixture {
  Fixture() {
    const data::Tokenizer tokenizer(data::initial_vocabulary());
    data::save_tokenizer(tokenizer, folder / "tokenizer.json");
    model.tokenizer = folder / "tokenizer.json";
    model.tokenizer_fingerprint = tokenizer.fingerprint();
    model.experiment.train.seq_len = 8;
    model.experiment.model.vocab_size = tokenizer.vocab_size();
  }
  EvaluationData at(const std::string& path) const {
    return evaluation_data_at(model, folder / path, cache(), {});
  }
  std::string fault(const std::string& path) const {
    return error_of([&] { at(path); });
  }
  fs::path cache() const { return folder / "cache"; }

  TemporaryFolder folder;
  RunModel model;
};

TEST_CASE("text becomes tokens that go when they are no longer wanted", "[run]") {
  const Fixture fixture;
  fixture.folder.write("texts/a.txt", "twelve bytes");
  fixture.folder.write("texts/b.txt", "x");
  fs::path tokens;
  {
    const EvaluationData data = fixture.at("texts");
    tokens = data.tokens.at(0).path;
    REQUIRE(data::TokenFile(tokens).size() == 1 + 1 + 12 + 1 + 1 + 1);
    REQUIRE(data.tokens.at(0).rows == 2);  // 16 targets
    REQUIRE(data.tokens.at(0).short_last_row);
    REQUIRE_FALSE(data.tokens.at(0).document_start.has_value());
    const EvaluationData copy = data;
  }
  REQUIRE_FALSE(fs::exists(tokens));
}

TEST_CASE("a text is divided as the one that the model was trained on", "[run]") {
  Fixture fixture;
  fixture.folder.write("lines.txt", "ab\ncd\n");
  fixture.folder.write("records.jsonl",
                       R"({"text": "a title", "content": "abc"})"
                       "\n");
  const auto documents = [&](const char* path) {
    const EvaluationData data = fixture.at(path);
    return data::TokenFile(data.tokens.at(0).path).documents();
  };
  const auto tokens = [&](const char* path) {
    const EvaluationData data = fixture.at(path);
    return data::TokenFile(data.tokens.at(0).path).size();
  };
  CHECK(documents("lines.txt") == 1);
  CHECK(tokens("records.jsonl") == 1 + 1 + 7);
  config::DataConfig& data = fixture.model.experiment.data;
  data.source = "text";
  data.documents = config::DocumentKind::line;
  CHECK(documents("lines.txt") == 2);
  CHECK(tokens("records.jsonl") == 1 + 1 + 7);
  data = {};
  data.source = "jsonl";
  data.field = "content";
  CHECK(documents("lines.txt") == 1);
  CHECK(tokens("records.jsonl") == 1 + 1 + 3);
}

TEST_CASE("a token file and the folder of prepared data that holds one are used as they are",
          "[run]") {
  Fixture fixture;
  fixture.model.experiment.train.document_mask = true;
  data::TokenFileWriter writer(
      fixture.folder / "evaluation.tokens", 262, fixture.model.tokenizer_fingerprint);
  const std::vector<int32_t> ids(10, 7);
  writer.append(ids.data(), ids.size());
  writer.finish();
  for (const char* path : {"evaluation.tokens", "."}) {
    const EvaluationData data = fixture.at(path);
    REQUIRE(data.tokens.at(0).rows == 2);
    REQUIRE(data.tokens.at(0).document_start == 0);
    REQUIRE_FALSE(data.temporary_tokens);
  }
}

TEST_CASE("a token file that was damaged is refused", "[run]") {
  const Fixture fixture;
  data::TokenFileWriter writer(
      fixture.folder / "a.tokens", 262, fixture.model.tokenizer_fingerprint);
  const std::vector<int32_t> ids(10, 7);
  writer.append(ids.data(), ids.size());
  writer.finish();
  std::string content = read_file(fixture.folder / "a.tokens");
  content[75] ^= 1;
  fixture.folder.write("a.tokens", content);
  REQUIRE(contains(fixture.fault("a.tokens"), "does not have the hash in its header"));
}

TEST_CASE("tokens of another tokenizer and too few of them are refused", "[run]") {
  const Fixture fixture;
  const std::vector<int32_t> ids = {7};
  for (const std::string& fingerprint : {fixture.model.tokenizer_fingerprint, hash_hex("other")}) {
    data::TokenFileWriter writer(fixture.folder / (fingerprint + ".tokens"), 262, fingerprint);
    writer.append(ids.data(), ids.size());
    writer.finish();
  }
  REQUIRE(contains(fixture.fault(hash_hex("other") + ".tokens"),
                   "is in the tokens of another tokenizer than the model's"));
  REQUIRE(contains(fixture.fault(fixture.model.tokenizer_fingerprint + ".tokens"),
                   "is too short: it has 1 token(s)"));
}

TEST_CASE("an evaluation that cannot be is refused", "[run][plausible]") {
  Fixture fixture;
  fixture.folder.write("a.txt", "twelve bytes and more");
  fixture.model.checkpoint = fixture.folder / "checkpoint";
  const EvaluationData data = fixture.at("a.txt");
  const int64_t tokens = data::TokenFile(data.tokens.at(0).path).size() - 1;
  const auto fault = [&](const std::string& values) {
    tests::FakeClock clock;
    tests::FakeLauncher launcher(clock,
                                 {{{tests::Says{tests::lines::hello},
                                    tests::Says{tests::lines::environment},
                                    tests::Says{R"({"event":"result","values":)" + values + "}"},
                                    tests::Exits{}},
                                   {}}});
    const tests::CommandBackend backend({"worker"});
    return error_of(
        [&] { evaluate(fixture.model, data, "cpu", 1, backend, launcher, [](double) {}); });
  };
  const auto values = [](const std::string& loss, int64_t count, const std::string& seconds) {
    return R"({"loss":)" + loss + R"(,"tokens":)" + std::to_string(count) + R"(,"seconds":)" +
           seconds + "}";
  };
  CHECK(fault(values("2.5", tokens, "0.1")).empty());
  CHECK(contains(fault(values("-5", tokens, "0.1")), "'loss' is negative: -5"));
  for (const int64_t count : {int64_t{0}, int64_t{10}, tokens + 1}) {
    CHECK(contains(fault(values("2.5", count, "0.1")),
                   "the worker evaluated " + std::to_string(count) + " tokens, and its rows have " +
                       std::to_string(tokens)));
  }
  CHECK(contains(fault(values("2.5", tokens, "1e-300")), "'tokens_per_second' is impossible"));
  CHECK(contains(fault(values("2.5", tokens, "-1")), "'seconds' is negative"));
  const std::string unknown = fault(values(R"("nan")", tokens, "0.1"));
  CHECK(contains(unknown, "a.txt' is not a number"));
  CHECK(contains(unknown, "forge cannot read the weights of this backend"));
  const auto write_weight = [&](float last) {
    const std::vector<float> numbers = {1, last};
    fs::create_directories(fixture.model.checkpoint);
    weights::write_safetensors(
        fixture.model.checkpoint / "weights.safetensors",
        {{"model.norm.weight",
          {weights::Dtype::f32, {2}, reinterpret_cast<const std::byte*>(numbers.data()), 8}}});
  };
  write_weight(std::numeric_limits<float>::quiet_NaN());
  const std::string broken = fault(values(R"("nan")", tokens, "0.1"));
  CHECK(contains(broken, "a.txt' is not a number"));
  CHECK(contains(broken, "1 of 2 values of 'model.norm.weight' are NaN or infinite"));
  write_weight(2);
  const std::string overflow = fault(values(R"("inf")", tokens, "0.1"));
  CHECK(contains(overflow, "a.txt' is infinite"));
  CHECK(contains(overflow, "its weights are finite"));
}

TEST_CASE("what cannot be read is said with a way out", "[run]") {
  Fixture fixture;
  fixture.folder.write("empty.txt", "");
  REQUIRE(contains(fixture.fault("empty.txt"), "is empty"));
  REQUIRE(contains(fixture.fault("nothing"), "there is no file or folder"));
  REQUIRE(contains(error_of([&] { own_evaluation_data(fixture.model, fixture.cache(), {}); }),
                   "was not trained here"));
  fixture.folder.write("a.txt", "text");
  fixture.model.tokenizer = "";
  REQUIRE(contains(fixture.fault("a.txt"), "has no tokenizer that forge can use"));
}

TEST_CASE("a run whose text has changed has no held-out rows of its own", "[run]") {
  Fixture fixture;
  fixture.folder.write("text.txt", std::string(4000, 'x'));
  config::Experiment& experiment = fixture.model.experiment;
  experiment.data.source = "text";
  experiment.data.path = (fixture.folder / "text.txt").string();
  experiment.tokenizer.path = (fixture.folder / "tokenizer.json").string();
  experiment.train.eval_rows = 4;
  fixture.model.data_fingerprint = hash_hex("as it was");
  REQUIRE(contains(error_of([&] { own_evaluation_data(fixture.model, fixture.cache(), {}); }),
                   "has changed since: '" + experiment.data.path + "'"));
  const EvaluationData data =
      evaluation_data_of(fixture.model, experiment, "other", fixture.cache(), {});
  REQUIRE(data.tokens.at(0).rows == 4);
  REQUIRE_FALSE(data.tokens.at(0).short_last_row);
  REQUIRE(data.name == "the held-out rows of other");
}

TEST_CASE("a text that trained its own tokenizer has changed as a text, not as a tokenizer",
          "[run]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "the cat and the dog " + std::to_string(i) + "\n";
  Fixture fixture;
  config::Experiment& experiment = fixture.model.experiment;
  experiment.data.source = "text";
  experiment.data.path = fixture.folder.write("text.txt", text).string();
  experiment.tokenizer.vocab_size = experiment.model.vocab_size = 270;
  experiment.train.eval_rows = 4;
  fixture.model.data_fingerprint = hash_hex("as it was");
  fixture.model.tokenizer_fingerprint = hash_hex("trained on that");
  const auto fault = [&] {
    return error_of([&] { own_evaluation_data(fixture.model, fixture.cache(), {}); });
  };
  INFO(fault());
  CHECK(starts_with(fault(), "error: the text that the run was trained on has changed since: '"));
}

TEST_CASE("ids of another task are refused", "[run]") {
  Fixture fixture;
  fixture.model.tokenizer = "";
  fixture.model.identity = Identity();
  config::Experiment& experiment = fixture.model.experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "mano";
  experiment.data.task.max_operators = 3;
  experiment.tokenizer.kind = "none";
  experiment.train.eval_rows = 4;
  config::Experiment other = experiment;
  other.data.seed = 9;
  CHECK(evaluation_data_of(fixture.model, other, "other", fixture.cache(), {}).rows() == 4);
  other.data.task = {};
  other.data.task.name = "copy";
  other.data.task.length = 2;
  const std::string fault =
      error_of([&] { evaluation_data_of(fixture.model, other, "copy", fixture.cache(), {}); });
  INFO(fault);
  CHECK(contains(fault, "the ids of copy mean something else to the model: id 0 is '1' of copy"));
  CHECK(contains(fault, "of mano"));
}

TEST_CASE("a grammar that has changed since is named", "[run]") {
  Fixture fixture;
  config::Experiment& experiment = fixture.model.experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "lano";
  experiment.data.task.grammar =
      fixture.folder.write("grammar.json", R"({"4": [[1, 2], [2, 1, 3]]})").string();
  experiment.tokenizer.kind = "none";
  fixture.model.tokenizer = "";
  fixture.model.data_fingerprint = hash_hex("as it was");
  REQUIRE(contains(error_of([&] { own_evaluation_data(fixture.model, fixture.cache(), {}); }),
                   "has changed since: '" + experiment.data.task.grammar + "'"));
}

}  // namespace
}  // namespace forge::run
