#include <algorithm>
#include <future>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i * 7919) + " plus zero\n";
  return text;
}

/// Stories without an end, a text in lines and JSON lines, 5 to 3 to 2.
struct Mixed {
  Mixed() {
    folder.write("numbers.txt", numbers(2000));
    std::string lines;
    for (int i = 0; i < 300; ++i) {
      lines += nlohmann::json{{"page", toy_story(9, Split::training, uint64_t(i))}}.dump() + "\n";
    }
    folder.write("pages.jsonl", lines);
    experiment.model.vocab_size = experiment.tokenizer.vocab_size = 400;
    experiment.train.max_steps = 10;
    experiment.train.batch_size = 4;
    experiment.train.seq_len = 32;
    experiment.train.eval_rows = 10;
    experiment.data.source = "mixture";
    auto& sources = experiment.data.sources;
    sources["toys"].weight = 5;
    sources["toys"].source = "toy_stories";
    sources["numbers"].weight = 3;
    sources["numbers"].path = (folder / "numbers.txt").string();
    sources["numbers"].documents = config::DocumentKind::line;
    sources["pages"].weight = 2;
    sources["pages"].source = "jsonl";
    sources["pages"].path = (folder / "pages.jsonl").string();
    sources["pages"].documents = config::DocumentKind::record;
    sources["pages"].field = "page";
  }
  PreparedData prepared(const Progress& progress = {}) const {
    return prepare(experiment, folder / "cache", progress);
  }

  tests::TemporaryFolder folder;
  config::Experiment experiment;
};

TEST_CASE("rows to choose by lie behind those that are reported, of each source its share") {
  Mixed mixed;
  const PreparedData without = mixed.prepared();
  REQUIRE(without.validation.empty());
  mixed.experiment.train.validation_rows = 7;
  const PreparedData with = mixed.prepared();
  int64_t rows = 0;
  REQUIRE(with.evaluation.size() == without.evaluation.size());
  for (size_t i = 0; i < with.evaluation.size(); ++i) {
    REQUIRE(with.evaluation[i].rows == without.evaluation[i].rows);
    REQUIRE(with.evaluation[i].first_row == 0);
  }
  for (const PreparedRows& file : with.validation) {
    const auto reported =
        std::find_if(with.evaluation.begin(), with.evaluation.end(), [&](const PreparedRows& own) {
          return own.name == file.name;
        });
    REQUIRE(reported != with.evaluation.end());
    REQUIRE(file.first_row == reported->rows);
    REQUIRE(file.tokens == reported->tokens);
    REQUIRE(file.weight == reported->weight);
    rows += file.rows;
  }
  REQUIRE(rows == 7);
  mixed.experiment.train.validation_rows = 100'000;
  REQUIRE(contains(tests::error_of([&] { mixed.prepared(); }), "train.validation_rows need"));
}

TEST_CASE("the sources of a mixture are prepared under one tokenizer") {
  const Mixed mixed;
  const PreparedData prepared = mixed.prepared();
  REQUIRE(prepared.train.size() == 3);
  REQUIRE(prepared.train[0].name == "numbers");
  REQUIRE(prepared.train[1].name == "pages");
  REQUIRE(prepared.train[2].name == "toys");
  REQUIRE(prepared.train[2].weight == 5);
  REQUIRE(prepared.train[2].rows == 20);  // half of 40
  int64_t evaluation = 0;
  for (const PreparedRows& rows : prepared.evaluation) evaluation += rows.rows;
  REQUIRE(evaluation == 10);
  REQUIRE(prepared.evaluation[1].rows == 2);
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  REQUIRE(tokenizer.fingerprint() == prepared.tokenizer_fingerprint);
  for (const PreparedRows& rows : prepared.train) {
    REQUIRE(TokenFile(rows.tokens).tokenizer_fingerprint() == prepared.tokenizer_fingerprint);
  }
  // All of it is there the second time.
  std::vector<std::string> phases;
  mixed.prepared([&](double, const std::string& phase) {
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
  });
  REQUIRE(phases == std::vector<std::string>{"numbers: hashing text",
                                             "numbers: counting documents",
                                             "pages: hashing text",
                                             "pages: counting documents"});
}

TEST_CASE("a tokenizer that is exchanged meanwhile does not make tokens of two") {
  Mixed mixed;
  const std::string first = read_file(mixed.prepared().tokenizer);
  mixed.experiment.data.sources["numbers"].weight = 30;
  const std::string second = read_file(mixed.prepared().tokenizer);
  REQUIRE(first != second);
  const std::filesystem::path file = mixed.folder.write("tokenizer.json", first);
  mixed.experiment.tokenizer.path = file.string();
  remove_tree(mixed.folder / "cache");  // it has tokens of the first one
  bool is_exchanged = false;
  const std::string error = tests::error_of([&] {
    mixed.prepared([&](double, const std::string& phase) {
      if (is_exchanged || phase != "numbers: writing training tokens") return;
      is_exchanged = true;
      write_file_atomic(file, second);
    });
  });
  CHECK(is_exchanged);
  CHECK(contains(error, "tokenizer.json' was changed while it was read"));
}

TEST_CASE("a source alone with the mixture's tokenizer shares its tokens") {
  const Mixed mixed;
  const PreparedData prepared = mixed.prepared();
  config::Experiment alone = mixed.experiment;
  alone.data = config::data_of_source(alone.data, alone.data.sources.at("pages"));
  alone.tokenizer.path = prepared.tokenizer.string();
  REQUIRE(prepare(alone, mixed.folder / "cache", {}).train[0].tokens == prepared.train[1].tokens);

  // So does another mixture that is given the tokenizer.
  config::Experiment other = mixed.experiment;
  other.data.sources.erase("toys");
  other.tokenizer.path = prepared.tokenizer.string();
  const PreparedData shared = prepare(other, mixed.folder / "cache", {});
  REQUIRE(shared.train[0].tokens == prepared.train[0].tokens);
  REQUIRE(shared.data_fingerprint != prepared.data_fingerprint);
}

TEST_CASE("weights change the tokenizer of a mixture and a weight of zero leaves a source out") {
  Mixed mixed;
  const PreparedData before = mixed.prepared();
  for (auto& [name, source] : mixed.experiment.data.sources) source.weight *= 2;
  REQUIRE(mixed.prepared().data_fingerprint == before.data_fingerprint);
  mixed.experiment.data.sources["numbers"].weight = 60;
  const PreparedData after = mixed.prepared();
  REQUIRE(after.data_fingerprint != before.data_fingerprint);
  REQUIRE(after.tokenizer_fingerprint != before.tokenizer_fingerprint);
  const auto length = [](const PreparedData& prepared) {
    return load_tokenizer(prepared.tokenizer).encode(" plus zero").size();
  };
  REQUIRE(length(after) < length(before));
  mixed.experiment.data.sources["numbers"].weight = 0;
  mixed.experiment.data.sources["numbers"].path = "/nowhere";
  REQUIRE(mixed.prepared().train.size() == 2);
}

TEST_CASE("what is wrong with a source of a mixture names it") {
  Mixed mixed;
  mixed.folder.write("tiny.txt", "a\nb\nc\n");
  mixed.experiment.data.sources["numbers"].path = (mixed.folder / "tiny.txt").string();
  const std::string error = tests::error_of([&] { mixed.prepared(); });
  INFO(error);
  REQUIRE(contains(error, "data.sources.numbers: "));
  REQUIRE(contains(error, "is too small"));
}

TEST_CASE("two processes may prepare a mixture and one of its sources at once") {
  const Mixed mixed;
  const auto all = [&] { return mixed.prepared(); };
  auto first = std::async(std::launch::async, all);
  auto second = std::async(std::launch::async, all);
  const PreparedData one = first.get(), two = second.get();
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(one.train[i].tokens == two.train[i].tokens);
    TokenFile(one.train[i].tokens).verify_hash();
  }
}

using tests::contains;

config::Experiment copy_experiment(int length, int row_length) {
  config::Experiment experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "copy";
  experiment.data.task.length = length;
  experiment.model.vocab_size = length + 2;
  experiment.tokenizer.kind = "none";
  experiment.train.max_steps = 6;
  experiment.train.batch_size = 4;
  experiment.train.seq_len = row_length;
  experiment.train.eval_rows = 5;
  return experiment;
}

std::string refusal(const config::Experiment& experiment) {
  return tests::error_of([&] { prepare_task(experiment); });
}

TEST_CASE("a task needs nothing on the disk, and as many rows as the run reads") {
  const tests::TemporaryFolder cache;
  const config::Experiment experiment = copy_experiment(10, 32);
  const PreparedData prepared = prepare(experiment, cache.path(), {});
  REQUIRE(std::filesystem::is_empty(cache.path()));
  REQUIRE(prepared.tokenizer.empty());
  REQUIRE(prepared.train.at(0).tokens.empty());
  REQUIRE(prepared.evaluation.at(0).tokens.empty());
  REQUIRE(prepared.train.at(0).rows == 24);
  REQUIRE(prepared.evaluation.at(0).rows == 5);
  REQUIRE_FALSE(prepared.document_start);
  REQUIRE_FALSE(prepared.pad_id);
  REQUIRE(prepared.tokenizer_fingerprint == "");
  REQUIRE(prepared.task == tasks::make_spec(experiment.data));
  REQUIRE(prepared.data_fingerprint == tasks::spec_fingerprint(prepared.task));
}

TEST_CASE("a task's fingerprint is of its text and not of the run") {
  config::Experiment experiment = copy_experiment(10, 32);
  const std::string fingerprint = prepare_task(experiment).data_fingerprint;
  experiment.train.max_steps = 60;
  experiment.train.seq_len = 64;
  experiment.model.vocab_size = 99;
  REQUIRE(prepare_task(experiment).data_fingerprint == fingerprint);
  experiment.data.seed = 2;
  REQUIRE(prepare_task(experiment).data_fingerprint != fingerprint);
}

TEST_CASE("a model without an embedding for every id of a task is refused") {
  config::Experiment experiment = copy_experiment(10, 32);
  experiment.model.vocab_size = 11;
  const std::string error = refusal(experiment);
  INFO(error);
  REQUIRE(contains(error, "the task copy has 12 ids, but model.vocab_size is 11"));
  REQUIRE(contains(error, "set model.vocab_size to 12"));
  experiment.model.vocab_size = 13;
  REQUIRE(refusal(experiment) == "");
}

TEST_CASE("rows too short for any answer of a task are refused") {
  const std::string error = refusal(copy_experiment(500, 512));
  INFO(error);
  REQUIRE(contains(error, "no text of the task copy fits a row of train.seq_len 512"));
  REQUIRE(contains(error, "raise train.seq_len, or make the task smaller"));
  REQUIRE(refusal(copy_experiment(500, 1001)) == "");
  REQUIRE(refusal(copy_experiment(500, 1000)) != "");
}

TEST_CASE("rows that hold texts for training and none for evaluation are refused") {
  config::Experiment experiment = copy_experiment(500, 300);
  experiment.data.task = {};
  experiment.data.task.name = "brevo1";
  experiment.data.task.max_nodes = 200;
  const std::string error = refusal(experiment);
  INFO(error);
  REQUIRE(contains(error, "no text of the task brevo fits a row of train.seq_len 300 for evalu"));
}

TEST_CASE("a run that reads more of a task than can be told apart is refused") {
  config::Experiment experiment = copy_experiment(10, 31);
  experiment.train.max_steps = int64_t{1} << 37;  // of 4 rows of 32 ids: 2^44
  REQUIRE(prepare_task(experiment).train.at(0).rows == int64_t{1} << 39);
  ++experiment.train.max_steps;
  const std::string error = refusal(experiment);
  INFO(error);
  REQUIRE(contains(error, "train.max_steps 137,438,953,473 of 128 tokens each need more text"));
  REQUIRE(contains(error, "lower train.max_steps"));
  experiment.train.max_steps = std::numeric_limits<int64_t>::max();
  REQUIRE(refusal(experiment) != "");
}

std::string document_text(const TokenFile& file, int64_t number, const Tokenizer& tokenizer) {
  const TokenSpan span = file.document(number);
  std::vector<int32_t> ids(static_cast<size_t>(span.count));
  file.read(span.first, span.count, ids.data());
  return tokenizer.decode(ids);
}

TEST_CASE("Capo is prepared as token files with a document for each biography") {
  const tests::TemporaryFolder cache;
  const config::Experiment experiment = tests::capo_experiment(64);
  const PreparedData prepared = prepare(experiment, cache.path(), {});
  REQUIRE(prepared.train.at(0).rows == 1);
  REQUIRE(prepared.evaluation.at(0).rows == 8);
  REQUIRE(prepared.task == tasks::make_spec(experiment.data));
  REQUIRE(prepared.data_fingerprint == tasks::spec_fingerprint(prepared.task));
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  REQUIRE(tokenizer.fingerprint() == prepared.tokenizer_fingerprint);
  const tasks::Capo capo = tasks::capo_of(prepared.task);
  for (const Split split : {Split::training, Split::evaluation}) {
    const TokenFile file(split == Split::training ? prepared.train.at(0).tokens
                                                  : prepared.evaluation.at(0).tokens);
    REQUIRE(file.size() > (split == Split::training ? 1 : 8) * 64);
    REQUIRE(file.documents() > 1);
    for (int64_t i = 0; i < file.documents(); ++i) {
      REQUIRE(document_text(file, i, tokenizer) ==
              capo.biography(split, static_cast<uint64_t>(i)).text);
    }
  }
}

TEST_CASE("Capo of another seed or other people is other data") {
  const tests::TemporaryFolder cache;
  config::Experiment experiment = tests::capo_experiment(64);
  const PreparedData first = prepare(experiment, cache.path(), {});
  REQUIRE(prepare(experiment, cache.path(), {}).train.at(0).tokens == first.train.at(0).tokens);
  experiment.data.task.people = 21;
  const PreparedData second = prepare(experiment, cache.path(), {});
  REQUIRE(second.train.at(0).tokens != first.train.at(0).tokens);
  REQUIRE(second.data_fingerprint != first.data_fingerprint);
}

}  // namespace
}  // namespace forge::data
