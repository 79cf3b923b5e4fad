#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/parallel.h"
#include "core/data/tasks/brevo.h"
#include "core/data/tasks/mano.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/catch.h"

// Sizes of what is generated: in the code's variant beside figures measured on the authors' code,
// and forge's own figures in the paper's variant.
namespace forge::data::tasks {
namespace {

/// A quantity over many instances.
struct Sample {
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

Sample sample_of(const Task& task, Split split, size_t count, const Quantity& quantity) {
  constexpr size_t block = 100;
  Sample sample;
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
double tolerance(const Sample& own, size_t count) {
  return 4 * std::sqrt(own.variance() * (1 / static_cast<double>(own.values.size()) +
                                         1 / static_cast<double>(count)));
}

void check_mean(const Sample& own, const nlohmann::json& published, size_t count) {
  INFO("own mean " << own.mean() << ", published " << published << " of " << count);
  REQUIRE(std::abs(own.mean() - published.get<double>()) <= tolerance(own, count));
}

constexpr size_t of_training = 300;  // instances that a published figure was measured on
constexpr size_t of_depo_evaluation = 100;
constexpr size_t of_brevo_evaluation = 200;

/// The largest of more instances is about as large, or larger: it hangs on chance.
void check_max(const Sample& own, const nlohmann::json& published) {
  REQUIRE(own.max() >= 0.95 * published.get<double>());
}

/// Lengths of both splits.
void check_lengths(const Task& task, const nlohmann::json& published, size_t of_evaluation) {
  const Sample training = sample_of(task, Split::training, 6000, length);
  check_mean(training, published["train_len_mean"], of_training);
  check_max(training, published["train_len_max"]);
  const Sample evaluation = sample_of(task, Split::evaluation, 3000, length);
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
    const Sample scored = sample_of(*task, Split::evaluation, 3000, [](const Instance& instance) {
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
    const Sample groups = sample([](const Instance& instance) {
      return std::min(5.0, static_cast<double>(instance.answers[0].group));
    });
    for (const auto& [depth, fraction] : depths) {
      INFO("depth " << depth);
      Sample own = groups;
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
  const Sample lengths = sample_of(task, Split::training, 20000, length);
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
    const Sample own = sample_of(shorter, Split::training, 40000, value_is(shorter, value));
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
    const Sample own = sample_of(*task, Split::training, 20000, [](const Instance& instance) {
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
    const Sample own = sample_of(*make_task(each.config), each.split, count, length);
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
