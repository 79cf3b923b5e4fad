#include "core/protocol/train_line.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

namespace forge::protocol {
namespace {

std::string stored_line(const TrainMetrics& metrics, double time, int attempt) {
  nlohmann::json json = to_json(Event(metrics));
  json["time"] = time;
  json["attempt"] = attempt;
  return to_line(json);
}

const std::string plain =
    R"({"attempt":3,"elapsed_seconds":0.25,"event":"train","gradient_norm":1.5,)"
    R"("learning_rate":1e-03,"loss":6.75,"step":7,"time":1795168800.125,"tokens":7168,)"
    R"("tokens_per_second":4250})";

std::string with(std::string from, const std::string& to) {
  std::string line = plain;
  return line.replace(line.find(from), from.size(), to);
}

TEST_CASE("a train event is read from its line", "[protocol][train_line]") {
  const auto line = train_from_line(plain);
  REQUIRE(line);
  REQUIRE(line->time == 1795168800.125);
  REQUIRE(line->attempt == 3);
  REQUIRE(line->metrics.step == 7);
  REQUIRE(line->metrics.tokens == 7168);
  REQUIRE(line->metrics.loss == 6.75);
  REQUIRE(line->metrics.learning_rate == 1e-3);
  REQUIRE(line->metrics.gradient_norm == 1.5);
  REQUIRE(line->metrics.tokens_per_second == 4250);
  REQUIRE(line->metrics.elapsed_seconds == 0.25);
}

TEST_CASE("every number is the one that the JSON library reads", "[protocol][train_line]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 generator(seed);
  const auto any = [&] {
    const double value = std::ldexp(double(generator()) - 9e18, int(generator() % 200) - 160);
    return generator() % 10 == 0 ? std::floor(value) : value;
  };
  for (int i = 0; i < 2000; ++i) {
    TrainMetrics metrics;
    metrics.step = int64_t(generator() >> 11);
    metrics.tokens = int64_t(generator() >> (11 + generator() % 50));
    metrics.loss = any();
    metrics.learning_rate = any();
    metrics.gradient_norm = any();
    metrics.tokens_per_second = any();
    metrics.elapsed_seconds = any();
    const std::string text = stored_line(metrics, std::fabs(any()), int(generator() % 1000));
    INFO(text);
    const auto line = train_from_line(text);
    REQUIRE(line);
    const auto slow = std::get<TrainMetrics>(event_from_line(text));
    REQUIRE(line->metrics.step == slow.step);
    REQUIRE(line->metrics.tokens == slow.tokens);
    REQUIRE(line->metrics.loss == slow.loss);
    REQUIRE(line->metrics.learning_rate == slow.learning_rate);
    REQUIRE(line->metrics.gradient_norm == slow.gradient_norm);
    REQUIRE(line->metrics.tokens_per_second == slow.tokens_per_second);
    REQUIRE(line->metrics.elapsed_seconds == slow.elapsed_seconds);
  }
}

TEST_CASE("what is no plain train event is left to the JSON library", "[protocol][train_line]") {
  const std::vector<std::string> others = {"",
                                           "{}",
                                           "[]",
                                           plain + " ",
                                           " " + plain,
                                           plain.substr(0, plain.size() - 1),
                                           with("\"train\"", "\"evaluation\""),
                                           with("\"step\":7", "\"step\":7,\"step\":8"),
                                           with("\"step\":7,", ""),
                                           with("\"step\":7", "\"step\":7.0"),
                                           with("\"step\":7", "\"step\":-7"),
                                           with("\"step\":7", "\"step\":9007199254740993"),
                                           with("\"step\":7", "\"step\":99999999999999999999"),
                                           with("\"step\":7", "\"step\":07"),
                                           with("\"attempt\":3", "\"attempt\":4294967299"),
                                           with("\"loss\":6.75", "\"loss\":\"nan\""),
                                           with("\"loss\":6.75", "\"loss\":null"),
                                           with("\"loss\":6.75", "\"loss\":6."),
                                           with("\"loss\":6.75", "\"loss\":.75"),
                                           with("\"loss\":6.75", "\"loss\":00.75"),
                                           with("\"loss\":6.75", "\"loss\":+6.75"),
                                           with("\"loss\":6.75", "\"loss\":1e999"),
                                           with("\"loss\":6.75", "\"loss\":6-75"),
                                           with("\"loss\":6.75", "\"loss\":inf"),
                                           with("\"loss\":6.75", "\"loss\":[6.75]"),
                                           with("\"loss\"", "\"lo\\u0073s\""),
                                           with("\"loss\":6.75", "\"loss\":6.75,\"more\":1"),
                                           with("\"loss\":6.75", "\"loss\" :6.75")};
  for (const std::string& line : others) {
    INFO(line);
    REQUIRE_FALSE(train_from_line(line));
  }
}

}  // namespace
}  // namespace forge::protocol
