#include "core/data/prepare_task.h"

#include <limits>

#include "core/data/tasks/spec.h"
#include "core/data/token_file.h"
#include "core/data/tokenizer_json.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

config::Experiment copy_experiment(int length, int seq_len) {
  config::Experiment experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "copy";
  experiment.data.task.length = length;
  experiment.model.vocab_size = length + 2;
  experiment.tokenizer.kind = "none";
  experiment.train.max_steps = 6;
  experiment.train.batch_size = 4;
  experiment.train.seq_len = seq_len;
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
