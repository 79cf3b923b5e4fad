#include "core/generation/text_stream.h"

#include <iostream>
#include <random>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::generation {
namespace {

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
}  // namespace forge::generation
