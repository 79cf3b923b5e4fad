#include "core/data/tasks/chart.h"
#include "core/data/tasks/copy.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/mano.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/catch.h"

namespace forge::data::tasks {
namespace {

using published::fault;

Depo small_depo(int letters, int least, int most, int max_hops, int queries, int nodes = 12) {
  DepoConfig config = depo1(nodes, max_hops);
  config.letters = letters;
  config.min_name_length = least;
  config.max_name_length = most;
  config.max_queries = queries;
  return Depo(config);
}

TEST_CASE("tasks accept the published samples of Depo") {
  const nlohmann::json samples = published::read("samples.json");
  const Depo two_queries = small_depo(50, 1, 2, 3, 2);
  for (const auto& sample : samples["depo_small_mini50_N4K3"]) {
    REQUIRE(fault(two_queries, published::depo(two_queries, 50, sample)) == "");
  }
  const Depo names = small_depo(3, 5, 7, 2, 2);
  for (const auto& sample : samples["depo_small_mini3_N3K2"]) {
    REQUIRE(fault(names, published::depo(names, 3, sample)) == "");
  }
  const Depo three_queries = small_depo(50, 1, 2, 4, 3);
  for (const auto& sample : samples["depo_QA_small"]) {
    REQUIRE(fault(three_queries, published::depo(three_queries, 50, sample)) == "");
  }
}

TEST_CASE("tasks accept the published cases of Depo and no other answer to them") {
  const nlohmann::json cases = published::read("validator_cases.json")["depo"];
  REQUIRE(cases.size() == 6);
  for (const auto& sample : cases) {
    const auto& params = sample["params"];
    const int letters = params.value("mini_vocab", 3);
    const Depo task = small_depo(letters,
                                 params.value("min_tlen", 5),
                                 params.value("max_tlen", 7),
                                 params["K"],
                                 10,
                                 params["N"]);
    const Instance good = published::depo(task, letters, sample);
    REQUIRE(fault(task, good) == "");
    REQUIRE(good.answers.size() == sample["queries"].size());
    for (size_t i = 0; i < good.answers.size(); ++i) {
      const auto& query = sample["queries"][i];
      REQUIRE(query["ok"].get<bool>());
      REQUIRE(good.answers[i].group == query["hop"].get<int>());
      const std::vector<int32_t> told(good.tokens.begin() + good.answers[i].begin,
                                      good.tokens.begin() + good.answers[i].end);
      REQUIRE(told == published::depo_ids(task, letters, query["expected"]));
    }
  }
}

TEST_CASE("tasks accept the published samples of Brevo with an eos of its own") {
  const nlohmann::json samples = published::read("samples.json");
  const Brevo numbers(brevo1(6));
  for (const auto& sample : samples["brevo1_small_N6"]) {
    Instance instance = published::brevo(numbers, sample);
    REQUIRE(fault(numbers, instance) == "");
    instance.tokens.back() = numbers.answer();
    REQUIRE(fault(numbers, instance) != "");
  }
  const Brevo names(brevo2(5));
  for (const auto& sample : samples["brevo2_small_N5"]) {
    REQUIRE(fault(names, published::brevo(names, sample)) == "");
  }
}

TEST_CASE("Brevo's answers are right and wrong as the published cases say") {
  const nlohmann::json cases = published::read("validator_cases.json")["brevo"];
  REQUIRE(cases.size() == 4);
  const Brevo task(brevo1(14));
  int bad = 0;
  for (const auto& sample : cases) {
    const Instance instance = published::brevo(task, sample);
    REQUIRE(fault(task, instance) == "");
    for (const auto& answer : sample["answers"]) {
      std::vector<int32_t> written;
      for (const int vertex : answer["answer"]) written.push_back(vertex - 1);
      written.push_back(task.eos());
      const std::optional<Fault> found = task.find_answer_fault(instance, written);
      INFO(answer["what"] << ": " << (found ? found->message : "accepted"));
      REQUIRE(!found == answer["valid"].get<bool>());
      Scores scores;
      task.score(instance, written, scores);
      REQUIRE(*scores.mean("answer_accuracy") == (found ? 0 : 1));
      bad += found.has_value();
      written.pop_back();
      REQUIRE(task.find_answer_fault(instance, written));
    }
  }
  REQUIRE(bad == 19);
}

TEST_CASE("tasks accept the published samples of Mano") {
  const nlohmann::json samples = published::read("samples.json");
  ManoConfig config;
  config.max_operators = 3;
  config.variant = Variant::code;
  for (const char* key : {"mano_L3", "mano_L3_noaug"}) {
    for (const auto& tokens : samples[key]) {
      REQUIRE(fault(Mano(config), published::mano(3, tokens)) == "");
    }
  }
  const nlohmann::json cases = published::read("validator_cases.json")["mano"];
  for (const auto& sample : cases) {
    config.max_operators = sample["L"];
    config.synonyms = sample["augment"];
    const Instance instance = published::mano(config.max_operators, sample["tokens"]);
    const Mano task(config);
    REQUIRE(fault(task, instance) == "");
    REQUIRE(instance.tokens.back() == task.operand(sample["value"]));
    for (int value = 0; value < 23; ++value) {
      Instance other = instance;
      other.tokens.back() = task.operand(value);
      REQUIRE((fault(task, other) == "") == (value == sample["value"]));
    }
  }
}

TEST_CASE("tasks accept the copies of a permutation") {
  for (const auto& sample : published::read("copy_samples.json")) {
    const int length = sample["N"];
    REQUIRE(fault(Copy({length, 0}), published::copy(length, sample)) == "");
  }
}

TEST_CASE("shipped grammars are the published ones and accept their sentences") {
  const nlohmann::json samples = published::read("samples.json");
  for (const std::string name : {"cfg3f", "cfg3j", "cfg3k"}) {
    const Grammar grammar = published::grammar(name);
    REQUIRE(nlohmann::json::parse(grammar.to_json()) == samples[name + "_rules"]);
    const std::vector<int32_t> sentence = samples[name + "_seed7711_first"];
    REQUIRE(!Lano({grammar}).find_sentence_fault(sentence));
  }
}

TEST_CASE("a grammar's membership and inside probabilities are the published ones") {
  const nlohmann::json fixture = published::read("lano_fixture.json");
  const Grammar grammar = published::grammar("cfg3f");
  for (const auto& sample : fixture["sub_grammar_cases"]) {
    const std::vector<int32_t> tokens = sample["tokens"];
    const int symbol = grammar.find(sample["root"]);
    const Chart chart(grammar, tokens);
    const double right = sample["inside_probability"];
    const int size = static_cast<int>(tokens.size());
    REQUIRE(chart.derives(symbol, 0, size) == (right > 0));
    REQUIRE(chart.probability(symbol, 0, size) == Approx(right).epsilon(1e-12).margin(0));
  }
  for (const auto& sample : fixture["full_cases"]) {
    const std::vector<int32_t> tokens = sample["tokens"];
    REQUIRE(Chart(grammar, tokens).accepts() == sample["valid"].get<bool>());
    REQUIRE(!Lano({grammar}).find_sentence_fault(tokens) == sample["valid"].get<bool>());
  }
}

TEST_CASE("the distributions of what comes next in a sentence are the published ones") {
  const nlohmann::json fixture =
      published::read("lano_fixture.json")["next_token_truth_cfg3f_first"];
  const std::vector<int32_t> tokens = fixture["tokens"];
  const Grammar grammar = published::grammar("cfg3f");
  const std::vector<double> truth = Chart(grammar, tokens).next_token_truth();
  const size_t rows = fixture["n_rows"];
  REQUIRE(truth.size() == 4 * rows);
  const auto check = [&](const nlohmann::json& published, size_t first) {
    for (size_t i = 0; i < published.size(); ++i) {
      for (size_t t = 0; t < 4; ++t) {
        const double right = published[i][t];
        INFO("row " << first + i << ", column " << t);
        REQUIRE(truth[4 * (first + i) + t] == Approx(right).epsilon(1e-9).margin(1e-12));
      }
    }
  };
  check(fixture["rows_first40"], 0);
  check(fixture["rows_last5"], rows - 5);
}

}  // namespace
}  // namespace forge::data::tasks
