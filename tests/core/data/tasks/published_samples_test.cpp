#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/parallel.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/tasks.h"
#include "tests/core/data/tasks/published.h"
#include "tests/core/data/tasks/validators.h"
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
    REQUIRE(!find_sentence_fault(Lano({grammar}), sentence));
  }
}

TEST_CASE("a grammar's membership and inside probabilities are the published ones") {
  const nlohmann::json fixture = published::read("lano_fixture.json");
  const Grammar grammar = published::grammar("cfg3f");
  for (const auto& sample : fixture["sub_grammar_cases"]) {
    const std::vector<int32_t> tokens = sample["tokens"];
    const int symbol = published::find_symbol(grammar, sample["root"]);
    const Chart chart(grammar, tokens);
    const double right = sample["inside_probability"];
    const int size = static_cast<int>(tokens.size());
    REQUIRE(chart.derives(symbol, 0, size) == (right > 0));
    REQUIRE(chart.probability(symbol, 0, size) == Approx(right).epsilon(1e-12).margin(0));
  }
  for (const auto& sample : fixture["full_cases"]) {
    const std::vector<int32_t> tokens = sample["tokens"];
    REQUIRE(Chart(grammar, tokens).accepts() == sample["valid"].get<bool>());
    REQUIRE(!find_sentence_fault(Lano({grammar}), tokens) == sample["valid"].get<bool>());
  }
}

TEST_CASE("the distributions of what comes next in a sentence are the published ones") {
  const nlohmann::json fixture =
      published::read("lano_fixture.json")["next_token_truth_cfg3f_first"];
  const std::vector<int32_t> tokens = fixture["tokens"];
  const Grammar grammar = published::grammar("cfg3f");
  const std::vector<double> truth = Chart(grammar, tokens).next_token_distribution();
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

// Sizes of what is generated: in the code's variant beside figures measured on the authors' code,
// and forge's own figures in the paper's variant.
namespace forge::data::tasks {
namespace {

/// A quantity over many instances.
struct PublishedSample {
  std::vector<double> values;

  double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double variance() const {
    const double middle = mean();
    double sum = 0;
    for (const double value : values) sum += (value - middle) * (value - middle);
    return sum / static_cast<double>(values.size() - 1);
  }
  double max() const { return *std::max_element(values.begin(), values.end()); }
  double min() const { return *std::min_element(values.begin(), values.end()); }
  double fraction_up_to(double bound) const {
    const auto below = [bound](double value) { return value <= bound; };
    return static_cast<double>(std::count_if(values.begin(), values.end(), below)) /
           static_cast<double>(values.size());
  }
};

using Quantity = std::function<double(const Instance&)>;

PublishedSample sample_of(const Task& task, Split split, size_t count, const Quantity& quantity) {
  constexpr size_t block = 100;
  PublishedSample sample;
  sample.values.resize(count);
  parallel_for((count + block - 1) / block, [&](size_t first) {
    Instance instance;
    for (size_t i = first * block; i < std::min(count, (first + 1) * block); ++i) {
      task.generate(1, split, i, instance);
      sample.values[i] = quantity(instance);
    }
  });
  return sample;
}

double length(const Instance& instance) { return static_cast<double>(instance.tokens.size()); }

/// Four standard errors of the difference of two means, the other one's of `count` instances.
double tolerance(const PublishedSample& own, size_t count) {
  return 4 * std::sqrt(own.variance() * (1 / static_cast<double>(own.values.size()) +
                                         1 / static_cast<double>(count)));
}

void check_mean(const PublishedSample& own, const nlohmann::json& published, size_t count) {
  INFO("own mean " << own.mean() << ", published " << published << " of " << count);
  REQUIRE(std::abs(own.mean() - published.get<double>()) <= tolerance(own, count));
}

constexpr size_t of_training = 300;  // instances that a published figure was measured on
constexpr size_t of_depo_evaluation = 100;
constexpr size_t of_brevo_evaluation = 200;

/// The largest of more instances is about as large, or larger: it hangs on chance.
void check_max(const PublishedSample& own, const nlohmann::json& published) {
  REQUIRE(own.max() >= 0.95 * published.get<double>());
}

/// Lengths of both splits.
void check_lengths(const Task& task, const nlohmann::json& published, size_t of_evaluation) {
  const PublishedSample training = sample_of(task, Split::training, 6000, length);
  check_mean(training, published["train_len_mean"], of_training);
  check_max(training, published["train_len_max"]);
  const PublishedSample evaluation = sample_of(task, Split::evaluation, 3000, length);
  check_mean(evaluation, published["eval_len_mean"], of_evaluation);
  check_max(evaluation, published["eval_len_max"]);
}

TEST_CASE("Depo's instances are as long as those of the code") {
  const nlohmann::json stats = published::read("stats.json");
  const std::map<std::string, DepoConfig> configs = {
      {"depo1_N375K8", depo1(375, 8)},
      {"depo1_N225K8", depo1(225, 8)},
      {"depo2_N125K16", depo2(125, 16, Variant::code)},
      {"depo2_N75K16", depo2(75, 16, Variant::code)}};
  for (const auto& [name, config] : configs) {
    INFO(name);
    const auto task = make_task(config);
    check_lengths(*task, stats[name], of_depo_evaluation);
    const PublishedSample scored =
        sample_of(*task, Split::evaluation, 3000, [](const Instance& instance) {
          return static_cast<double>(
              std::count(instance.scored.begin(), instance.scored.end(), uint8_t{1}));
        });
    check_mean(scored, stats[name]["label_per_sample_eval"], of_depo_evaluation);
  }
}

/// Words among the tokens begin … end-1 of a text of Brevo.
double words_in(const BrevoConfig& config, const Instance& instance, int32_t begin, int32_t end) {
  int words = 0;
  for (int32_t i = begin; i < end; ++i)
    words += !config.names || instance.tokens[i] >= config.letters;
  return words;
}

TEST_CASE("Brevo's instances have the sizes and depths of those of the code", "[slow]") {
  const nlohmann::json stats = published::read("stats.json");
  for (const char* name :
       {"brevo1_N110", "brevo1_N90", "brevo1_N70", "brevo2_N50", "brevo2_N40", "brevo2_N30"}) {
    INFO(name);
    const nlohmann::json& published = stats[name];
    const int nodes = std::atoi(name + 8);
    const BrevoConfig config =
        name[5] == '1' ? brevo1(nodes, Variant::code) : brevo2(nodes, Variant::code);
    const Brevo task(config);
    check_lengths(task, published, of_brevo_evaluation);
    const auto sample = [&](const Quantity& quantity) {
      return sample_of(task, Split::evaluation, 3000, quantity);
    };
    check_mean(sample([&](const Instance& instance) {
                 const auto query = static_cast<int32_t>(
                     std::find(instance.tokens.begin(), instance.tokens.end(), task.query()) -
                     instance.tokens.begin());
                 return words_in(config, instance, 1, query) / 2;
               }),
               published["eval_edges_mean"],
               of_brevo_evaluation);
    check_mean(sample([&](const Instance& instance) {
                 const Answer& answer = instance.answers[0];
                 return words_in(config, instance, answer.begin, answer.end - 1) / nodes;
               }),
               published["eval_answer_fraction_of_nodes"],
               of_brevo_evaluation);
    // Depths of 5 and more, of which a few are expected, are counted together.
    std::map<int, double> depths;
    for (const auto& [depth, count] : published["min_depth_hist"].items()) {
      depths[std::min(5, std::stoi(depth))] += count.get<double>() / of_brevo_evaluation;
    }
    const PublishedSample groups = sample([](const Instance& instance) {
      return std::min(5.0, static_cast<double>(instance.answers[0].group));
    });
    for (const auto& [depth, fraction] : depths) {
      INFO("depth " << depth);
      PublishedSample own = groups;
      for (double& value : own.values) value = value == depth ? 1 : 0;
      check_mean(own, fraction, of_brevo_evaluation);
    }
  }
}

TEST_CASE("Mano's lengths and values are as frequent as those of the code") {
  const nlohmann::json stats = published::read("stats.json");
  constexpr size_t published_lengths = 1000;
  constexpr size_t published_values = 20000;
  const Mano task({16, Variant::code, true});
  const PublishedSample lengths = sample_of(task, Split::training, 20000, length);
  check_mean(lengths, stats["mano_L16"]["len_mean"], published_lengths);
  REQUIRE(lengths.max() == stats["mano_L16"]["len_max"].get<double>());
  const auto value_is = [](const Mano& mano, int value) {
    const int32_t id = mano.operand(value);
    return [id](const Instance& instance) { return instance.tokens.back() == id ? 1.0 : 0.0; };
  };
  for (const int most : {10, 13, 16}) {
    const Mano evaluated({most, Variant::code, true});
    const auto& published = stats["mano_eval_L" + std::to_string(most) + "_majority_baseline"];
    check_mean(sample_of(evaluated, Split::evaluation, 40000, value_is(evaluated, 0)),
               published["freq"],
               published_values);
  }
  const Mano shorter({10, Variant::code, true});
  const auto& published = stats["mano_L10_answer_freq"];
  check_mean(sample_of(shorter, Split::training, 40000, value_is(shorter, 0)),
             published["0"],
             published_values);
  for (int value = 1; value < Mano::modulus; ++value) {
    const PublishedSample own =
        sample_of(shorter, Split::training, 40000, value_is(shorter, value));
    REQUIRE(own.mean() <=
            published["max_nonzero"].get<double>() + tolerance(own, published_values));
    REQUIRE(own.mean() >= published["min"].get<double>() - tolerance(own, published_values));
  }
}

TEST_CASE("sentences of the grammars are as long as those of the code") {
  const nlohmann::json stats = published::read("stats.json");
  constexpr size_t published_sentences = 3000;
  const nlohmann::json samples = published::read("samples.json");
  for (const std::string name : {"cfg3f", "cfg3j", "cfg3k", "cfg3b"}) {
    INFO(name);
    const Grammar grammar = Grammar::parse(samples[name + "_rules"].dump(), name);
    const nlohmann::json& published = stats[name];
    const auto task = make_task(LanoConfig{grammar});
    const PublishedSample own =
        sample_of(*task, Split::training, 20000, [](const Instance& instance) {
          return length(instance) - 1;
        });
    check_mean(own, published["len_mean"], published_sentences);
    check_max(own, published["len_max"]);
    REQUIRE(own.min() <= 1.05 * published["len_min"].get<double>());
    REQUIRE(own.max() <= static_cast<double>(grammar.max_length(grammar.root())));
    REQUIRE(own.min() >= static_cast<double>(grammar.min_length(grammar.root())));
    for (const auto& [key, part] : {std::pair{"p05", 0.05}, std::pair{"p95", 0.95}}) {
      const double bound = published[key];
      const double error = 4 * std::sqrt(part * (1 - part) / published_sentences);
      REQUIRE(own.fraction_up_to(bound - 1) <= part + error);
      REQUIRE(own.fraction_up_to(bound) >= part - error);
    }
  }
}

/// Mean and variance of the lengths of 100,000 instances of forge, seed 1.
struct Recorded {
  const char* name;
  TaskConfig config;
  Split split;
  double mean;
  double variance;
  size_t checked;  ///< instances each time; with FORGE_TASK_INSTANCES so many, 100,000 for all
};

TEST_CASE("forge's own figures of lengths are the recorded ones") {
  const auto cfg = [](const char* name) { return LanoConfig{published::grammar(name)}; };
  const std::vector<Recorded> all = {
      {"depo1", depo1(375, 8), Split::training, 433.605690, 143887.037060, 5000},
      {"depo1", depo1(375, 8), Split::evaluation, 1458.434160, 2.916074, 1000},
      {"depo2", depo2(125, 16), Split::training, 638.661160, 178173.884306, 5000},
      {"depo2", depo2(125, 16), Split::evaluation, 1642.801420, 393.128697, 1000},
      {"brevo1", brevo1(110), Split::training, 182.285950, 20722.495428, 5000},
      {"brevo1", brevo1(110), Split::evaluation, 516.414090, 3151.892478, 1000},
      {"brevo2", brevo2(50), Split::training, 288.160770, 44830.261086, 5000},
      {"brevo2", brevo2(50), Split::evaluation, 746.764010, 8115.666935, 1000},
      {"mano", ManoConfig{}, Split::training, 22.058120, 85.190754, 20000},
      {"lano cfg3f", cfg("cfg3f"), Split::training, 250.984180, 4827.760547, 5000},
      {"lano cfg3j", cfg("cfg3j"), Split::training, 544.853820, 17860.733439, 5000},
      {"lano cfg3k", cfg("cfg3k"), Split::training, 516.651010, 8276.390500, 5000},
  };
  const char* asked = std::getenv("FORGE_TASK_INSTANCES");
  constexpr double recorded_instances = 100000;
  for (const Recorded& each : all) {
    const size_t count = asked == nullptr ? each.checked : std::strtoull(asked, nullptr, 10);
    const PublishedSample own = sample_of(*make_task(each.config), each.split, count, length);
    INFO(each.name << (each.split == Split::training ? " training" : " evaluation") << " of "
                   << count << ": mean " << std::to_string(own.mean()) << ", variance "
                   << std::to_string(own.variance()));
    if (static_cast<double>(count) == recorded_instances) {  // the very same instances
      CHECK(own.mean() == Approx(each.mean).epsilon(1e-6));
      CHECK(own.variance() == Approx(each.variance).epsilon(1e-6));
    }
    CHECK(std::abs(own.mean() - each.mean) <=
          4 * std::sqrt(each.variance / static_cast<double>(count)));
  }
}

}  // namespace
}  // namespace forge::data::tasks
