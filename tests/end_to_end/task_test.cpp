#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// A run of a playground config at a size of some hundred weights.
std::vector<std::string> tiny_task(const std::string& config, std::vector<std::string> sets) {
  std::vector<std::string> arguments = {"run", config, "-p", "playground", "--threads", "1"};
  for (const char* set : {"model.hidden_size=16",
                          "model.intermediate_size=32",
                          "model.num_layers=1",
                          "model.num_heads=1",
                          "train.batch_size=4",
                          "train.max_steps=6",
                          "train.eval_every=3",
                          "train.eval_rows=4",
                          "train.eval_prompts=3"}) {
    sets.emplace_back(set);
  }
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

json call(const Program& forge, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

TEST_CASE("a task's scores are stored with each evaluation and found again by eval") {
  const Program forge;
  const json trained =
      call(forge, tiny_task("copy/rope_canon_1l_16d", {"data.task.length=6", "train.seq_len=14"}));
  const std::string id = trained[0].at("id");
  const json shown = call(forge, {"runs", "show", id});
  REQUIRE(shown.at("evaluations").size() == 2);
  for (const json& evaluation : shown.at("evaluations")) {
    REQUIRE(evaluation.at("scores").at("token_accuracy").at("count") == 4 * 6);
    REQUIRE(evaluation.at("scores").at("sequence_accuracy").at("count") == 4);
  }
  const json evaluated = call(forge, {"eval", id});
  REQUIRE(evaluated.at("scores") == shown.at("scores"));
  REQUIRE(evaluated.at("loss") == shown.at("eval_loss"));
  REQUIRE(contains(forge.call({"eval", id}).out, "sequence_accuracy"));
  const Outcome table = forge.call({"compare", "-p", "playground", "--table", "copy"});
  REQUIRE(table.exit_code == 0);
  REQUIRE(contains(table.out, "Whole copies"));
}

TEST_CASE("every task trains and brings its figures") {
  const Program forge;
  const std::vector<std::tuple<std::string, std::vector<std::string>, std::string>> tasks = {
      {"depo1/rope_abcd", {"data.task.max_nodes=4", "train.seq_len=64"}, "answer_accuracy.hop_1"},
      {"depo2/nope", {"data.task.max_nodes=3", "train.seq_len=96"}, "token_accuracy"},
      {"brevo1/nope_abcd", {"data.task.max_nodes=5", "train.seq_len=64"}, "answer_accuracy"},
      {"brevo2/rope", {"data.task.max_nodes=4", "train.seq_len=96"}, "answer_accuracy"},
      {"mano/rope", {"data.task.variant=code", "train.seq_len=32"}, "value_accuracy"},
      {"lano/rope", {"train.seq_len=300"}, "kl_divergence"},
      {"capo/nope_abcd",
       {"data.task.people=20",
        "train.seq_len=256",
        "model.vocab_size=400",
        "tokenizer.vocab_size=400"},
       "bits_per_parameter"}};
  for (const auto& [config, sets, score] : tasks) {
    INFO(config);
    const json trained = call(forge, tiny_task(config, sets));
    REQUIRE(trained[0].at("status") == "completed");
    const json& scores = trained[0].at("scores");
    INFO(scores.dump());
    REQUIRE(scores.at(score).at("count") > 0);
    if (config == "lano/rope") REQUIRE(scores.at("sentence_validity").at("count") == 3);
  }
}

TEST_CASE("the task is part of what a run is") {
  const Program forge;
  const auto id = [&](const std::string& length) {
    return call(forge,
                tiny_task(
                    "copy/rope_1l_16d",
                    {"data.task.length=" + length, "train.seq_len=14", "model.vocab_size=8"}))[0]
        .at("id")
        .get<std::string>();
  };
  const std::string six = id("6");
  REQUIRE(id("5") != six);
  REQUIRE(id("6") == six);
}

}  // namespace
}  // namespace forge::tests
