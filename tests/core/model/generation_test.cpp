#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/model/generation.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::model {
namespace {

using tests::contains;
using tests::error_of;

using Logits = std::vector<double>;

int32_t choose(const SamplingOptions& options, const Logits& logits, RandomStream& random) {
  return Sampler(options).choose(logits.data(), static_cast<int64_t>(logits.size()), random);
}

/// Every id that comes out of many draws.
std::set<int32_t> drawn_ids(const SamplingOptions& options, const Logits& logits) {
  RandomStream random(11, 0);
  std::set<int32_t> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(choose(options, logits, random));
  return ids;
}

/// Logits of these probabilities.
Logits logits_of(const std::vector<double>& probabilities) {
  Logits logits;
  for (const double p : probabilities) logits.push_back(std::log(p) + 3);
  return logits;
}

TEST_CASE("temperature 0 takes the highest logit and of equal ones the first") {
  RandomStream random(1, 2);
  REQUIRE(choose({0, 0, 1}, {0.5, 2, -1, 2}, random) == 1);
  REQUIRE(choose({0, 2, 0.5}, {-7}, random) == 0);
  REQUIRE(random.next_u32() == RandomStream(1, 2).next_u32());  // it took no number
}

TEST_CASE("tokens are drawn as often as softmax says at any temperature and filter") {
  const uint64_t seed = std::random_device()();
  std::cout << "sampler: seed " << seed << "\n";
  RandomStream random(seed, 0);
  Logits logits;
  for (int i = 0; i < 12; ++i) logits.push_back(4 * random.uniform());
  struct Case {
    SamplingOptions options;
    size_t kept;  ///< 0: as many as top_p asks for
  };
  for (const auto& [options, count] : {Case{{1, 0, 1}, 12},
                                       Case{{0.7, 0, 1}, 12},
                                       Case{{2.5, 0, 1}, 12},
                                       Case{{1, 5, 1}, 5},
                                       Case{{1.3, 0, 0.8}, 0},
                                       Case{{1, 8, 0.6}, 0}}) {
    // What should come out, computed the slow way.
    std::vector<std::pair<double, int32_t>> sorted;
    for (size_t id = 0; id < logits.size(); ++id)
      sorted.emplace_back(-logits[id], static_cast<int32_t>(id));
    std::sort(sorted.begin(), sorted.end());
    if (options.top_k > 0) sorted.resize(static_cast<size_t>(options.top_k));
    double total = 0, sum = 0;
    for (const auto& [negative, id] : sorted) total += std::exp(-negative / options.temperature);
    std::map<int32_t, double> expected;
    for (const auto& [negative, id] : sorted) {
      if (sum >= options.top_p * total) break;
      expected[id] = std::exp(-negative / options.temperature);
      sum += expected[id];
    }
    if (count > 0) REQUIRE(expected.size() == count);

    constexpr int draws = 40'000;
    std::map<int32_t, int> drawn;
    Sampler sampler(options);
    for (int i = 0; i < draws; ++i) ++drawn[sampler.choose(logits.data(), 12, random)];
    double chi_square = 0;
    for (const auto& [id, weight] : expected) {
      const double wanted = draws * weight / sum;
      chi_square += (drawn[id] - wanted) * (drawn[id] - wanted) / wanted;
    }
    for (const auto& [id, times] : drawn) REQUIRE(expected.count(id) == 1);
    // A chi-square variable of n degrees of freedom is above this once in 10^7 (Wilson-Hilferty).
    const double n = static_cast<double>(expected.size()) - 1;
    const double bound = n * std::pow(1 - 2 / (9 * n) + 5.2 * std::sqrt(2 / (9 * n)), 3);
    INFO("temperature " << options.temperature << ", top-k " << options.top_k << ", top-p "
                        << options.top_p << ", seed " << seed);
    REQUIRE(chi_square < bound);
  }
}

TEST_CASE("top-k keeps exactly k tokens and of equal ones the first") {
  const Logits logits = {1, 3, 3, 2, 3};
  REQUIRE(drawn_ids({1, 1, 1}, logits) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1, 2, 1}, logits) == std::set<int32_t>{1, 2});
  REQUIRE(drawn_ids({1, 4, 1}, logits) == std::set<int32_t>{1, 2, 3, 4});
  for (const int64_t all : {0, 5, 6, 1 << 30}) {
    REQUIRE(drawn_ids({1, all, 1}, logits) == std::set<int32_t>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("top-p keeps the fewest likeliest tokens that reach it and always one") {
  const Logits logits = logits_of({0.1, 0.4, 0.3, 0.2});
  REQUIRE(drawn_ids({1, 0, 1e-300}, logits) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1, 0, 0.39}, logits) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1, 0, 0.41}, logits) == std::set<int32_t>{1, 2});
  REQUIRE(drawn_ids({1, 0, 0.71}, logits) == std::set<int32_t>{1, 2, 3});
  REQUIRE(drawn_ids({1, 0, 0.91}, logits) == std::set<int32_t>{0, 1, 2, 3});
  REQUIRE(drawn_ids({1, 0, 1}, logits) == std::set<int32_t>{0, 1, 2, 3});
  // Of what top-k left: 0.4 of 0.7 is more than half.
  REQUIRE(drawn_ids({1, 2, 0.5}, logits) == std::set<int32_t>{1});
  // After the temperature, which makes the likeliest likelier.
  REQUIRE(drawn_ids({0.1, 0, 0.9}, logits) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1, 0, 0.5}, {2, 2, 2, 2}) == std::set<int32_t>{0, 1});
}

TEST_CASE("extreme temperatures and logits are still drawn from") {
  REQUIRE(drawn_ids({1e-300, 0, 1}, {1, 1.0000001, 0}) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1e300, 0, 1}, {0, 700, -700}) == std::set<int32_t>{0, 1, 2});
  constexpr double never = -std::numeric_limits<double>::infinity();
  REQUIRE(drawn_ids({1, 0, 1}, {never, 1e308, never}) == std::set<int32_t>{1});
  REQUIRE(drawn_ids({1, 0, 1}, {-1e308, 1e308}) == std::set<int32_t>{1});
}

TEST_CASE("each sample has a stream of its own and the same one again") {
  std::set<uint64_t> first_numbers;
  for (int64_t prompt = 0; prompt < 10; ++prompt) {
    for (int64_t sample = 0; sample < 12; ++sample) {
      first_numbers.insert(sample_stream(5, prompt, sample).next_u64());
      REQUIRE(sample_stream(5, prompt, sample).next_u64() ==
              sample_stream(5, prompt, sample).next_u64());
    }
  }
  first_numbers.insert(sample_stream(6, 0, 0).next_u64());
  REQUIRE(first_numbers.size() == 121);
}

TEST_CASE("a seed gives the same tokens on every machine") {
  Logits logits;
  for (int i = 0; i < 50; ++i) logits.push_back((i * 37 % 50) / 10.0);
  RandomStream random = sample_stream(42, 0, 0);
  Sampler sampler({0.8, 20, 0.95});
  std::vector<int32_t> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(sampler.choose(logits.data(), 50, random));
  // As a program in another language draws them from the same Philox stream.
  REQUIRE(ids == std::vector<int32_t>{31, 12, 39, 24, 27, 12, 35, 4});
}

TEST_CASE("options that make no sense are refused with what would") {
  const auto refusal = [](const SamplingOptions& options) {
    return error_of([&] { Sampler sampler(options); });
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  REQUIRE(refusal({0, 0, 1}).empty());
  REQUIRE(contains(refusal({-0.1, 0, 1}), "temperature -0.1 makes no sense"));
  REQUIRE(contains(refusal({-0.1, 0, 1}), "hint: a number from 0 on"));
  REQUIRE(contains(refusal({nan, 0, 1}), "temperature nan"));
  REQUIRE(contains(refusal({infinite, 0, 1}), "temperature inf"));
  REQUIRE(contains(refusal({1, -1, 1}), "top-k -1 makes no sense"));
  for (const double wrong : {0.0, -0.5, 1.0000001, nan, infinite}) {
    REQUIRE(contains(refusal({1, 0, wrong}), "top-p"));
    REQUIRE(contains(refusal({1, 0, wrong}), "hint: a probability above 0 and at most 1"));
  }
}

TEST_CASE("logits that are no numbers are an error and not a token") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  RandomStream random(1, 2);
  for (const double temperature : {0.0, 1.0}) {
    const auto refusal = [&](const Logits& logits) {
      return error_of([&] { choose({temperature, 0, 1}, logits, random); });
    };
    REQUIRE(contains(refusal({1, nan, 2}), "logits are nan"));
    REQUIRE(contains(refusal({nan, 1, 2}), "logits are nan"));
    REQUIRE(contains(refusal({1, infinite}), "logits are inf"));
    REQUIRE(contains(refusal({-infinite, -infinite}), "logits are -inf"));
    REQUIRE(contains(refusal({}), "no logits"));
  }
}

/// What is shown after each part, and at the end, with '|' between.
std::string shown(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
  TextStream stream(stops);
  std::vector<std::string> texts;
  for (const std::string& part : parts) texts.push_back(stream.push(part));
  texts.push_back(stream.finish());
  return join(texts, "|") + (stream.stopped() ? "!" : "");
}

TEST_CASE("text without stop texts is shown as it comes") {
  REQUIRE(shown({}, {"Once", " upon", "", " a time"}) == "Once| upon|| a time|");
}

TEST_CASE("a character is shown when its last byte is there") {
  REQUIRE(shown({}, {"na\xc3", "\xafve"}) == "na|ïve|");
  REQUIRE(shown({}, {"\xe2", "\x82", "\xac!"}) == "||€!|");
  REQUIRE(shown({}, {"a\xf0\x9f", "\x98", "\x80", "b"}) == "a||😀|b|");
}

TEST_CASE("bytes that are no UTF-8 are shown as replacement characters") {
  REQUIRE(shown({}, {"a\xff", "b"}) == "a\uFFFD|b|");
  REQUIRE(shown({}, {"a\xc3", "b"}) == "a|\uFFFDb|");
  REQUIRE(shown({}, {"\x80\x80\x80\x80"}) == "\uFFFD\uFFFD\uFFFD\uFFFD|");
  REQUIRE(shown({}, {"end\xe2\x82"}) == "end|\uFFFD\uFFFD");
  REQUIRE(shown({}, {"\xed\xa0\x80"}) == "\uFFFD\uFFFD\uFFFD|");  // half of a surrogate pair
  REQUIRE(shown({}, {std::string("a\0b", 3)}) == std::string("a\0b|", 4));
}

TEST_CASE("a stop text ends the text in front of it wherever tokens are cut") {
  REQUIRE(shown({"END"}, {"abcENDdef", "ghi"}) == "abc||!");
  REQUIRE(shown({"END"}, {"abcE", "N", "D", "x"}) == "abc||||!");
  REQUIRE(shown({"END"}, {"END"}) == "|!");
  REQUIRE(shown({"\n\n"}, {"a\n", "b\n", "\nc"}) == "a|\nb||!");
}

TEST_CASE("what may begin a stop text is held back no longer than that") {
  REQUIRE(shown({"END"}, {"aE", "x", "EN"}) == "a|Ex||EN");
  REQUIRE(shown({"aab"}, {"aa", "a", "ab"}) == "|a|a|!");
  REQUIRE(shown({"abc", "bx"}, {"ab", "x"}) == "|a|!");
  REQUIRE(shown({"é!"}, {"caf\xc3", "\xa9", "s"}) == "caf||és|");
}

TEST_CASE("of several stop texts the one that is whole first ends the text") {
  REQUIRE(shown({"abcde", "cd"}, {"xabcde"}) == "xab|!");
  REQUIRE(shown({"abcde", "cd"}, {"xabc", "d", "e"}) == "x|ab||!");
  REQUIRE(shown({"bcd", "abcd"}, {"xabcd"}) == "x|!");
}

TEST_CASE("the whole text does not depend on where it is cut into tokens") {
  const uint64_t seed = std::random_device()();
  std::cout << "text stream: seed " << seed << "\n";
  RandomStream random(seed, 0);
  const std::vector<std::string> pieces = {"a", "b", "ab", "é", "€", "\xff", "\xe2\x82", "\n"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += pieces[random.below(pieces.size())];
    std::vector<std::string> stops;
    for (uint64_t i = random.below(3); i > 0; --i) {
      const size_t begin = random.below(text.size());
      stops.push_back(text.substr(begin, 1 + random.below(4)));
    }
    TextStream at_once(stops);
    std::string expected = at_once.push(text);
    expected += at_once.finish();
    TextStream in_parts(stops);
    std::string got;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random.below(3);
      got += in_parts.push(std::string_view(text).substr(at, length));
      at += length;
    }
    got += in_parts.finish();
    INFO("seed " << seed << ", round " << round);
    REQUIRE(got == expected);
    REQUIRE(in_parts.stopped() == at_once.stopped());
  }
}

TEST_CASE("an empty stop text is refused") {
  REQUIRE(tests::error_of([] { check_stop_texts({"a", "b"}); }).empty());
  REQUIRE(tests::contains(tests::error_of([] {
                            check_stop_texts({"a", ""});
                          }),
                          "a stop text is empty"));
}

}  // namespace
}  // namespace forge::model
