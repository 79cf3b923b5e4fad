#include "core/data/stories/grammar.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::stories {
namespace {

const std::vector<WordList> lists = {{"thing", WordKind::noun, {"kite", "owl", "drum"}},
                                     {"child", WordKind::woman, {"Mara"}},
                                     {"child", WordKind::man, {"Tom"}},
                                     {"walk", WordKind::verb, {"walk"}}};
const std::vector<VariableText> variables = {
    {"A", "child"}, {"B", "child"}, {"x", "thing"}, {"place", "where"}};

std::string expand(const std::string& text, uint64_t seed) {
  const std::vector<RuleText> rules = {{"story", {text}},
                                       {"where", {"in the {thing}", "on the {thing}"}}};
  RandomStream random(seed, 0);
  std::string story;
  Grammar(lists, variables, rules).expand("story", random, story);
  return story;
}

TEST_CASE("a variable stays what it was and its pronouns agree") {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed)
    seen.insert(expand("{A} lost {A.his} hat, said {A}.", seed));
  REQUIRE(seen ==
          std::set<std::string>{"Mara lost her hat, said Mara.", "Tom lost his hat, said Tom."});
}

TEST_CASE("variables of one list stand for different words") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = expand("{A} {B}", seed);
    REQUIRE((text == "Mara Tom" || text == "Tom Mara"));
  }
}

TEST_CASE("a variable of a rule repeats its text word for word") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = expand("it was {place}/{place}", seed);
    const size_t slash = text.find('/');
    REQUIRE(text.substr(7, slash - 7) == text.substr(slash + 1));
  }
}

TEST_CASE("a fresh word is never one that a variable stands for") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = expand("{x} {thing} {thing}", seed);
    const auto words =
        std::set<std::string>{text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)};
    REQUIRE(words.size() == 2);
    std::string lower = text;
    lower[0] = static_cast<char>(std::tolower(lower[0]));
    REQUIRE(lower.find(lower.substr(0, lower.find(' ')), 1) == std::string::npos);
  }
}

TEST_CASE("forms and alternatives are written out") {
  REQUIRE(expand("{walk.ed} {walk.ing} {walk.s}", 1) == "Walked walking walks");
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) seen.insert(expand("a[b|c[d|]|]", seed));
  REQUIRE(seen == std::set<std::string>{"Ab", "Acd", "Ac", "A"});
}

TEST_CASE("sentences begin with a capital and others do not") {
  const std::string w = "{walk}";
  REQUIRE(expand(w + ". " + w + "! " + w + "? " + w, 1) == "Walk. Walk! Walk? Walk");
  REQUIRE(expand("\"" + w + "?\" " + w + ". \"" + w + ".\" " + w, 1) ==
          "\"Walk?\" walk. \"Walk.\" Walk");
  REQUIRE(expand("\"Oh,\" he said, \"" + w + ".\"\n\n" + w, 1) ==
          "\"Oh,\" he said, \"walk.\"\n\nWalk");
}

TEST_CASE("mistakes in a grammar are found when it is made") {
  const auto error = [](const std::string& text) {
    return tests::error_of([&] { expand(text, 1); });
  };
  REQUIRE(error("{nobody}").find("unknown '{nobody}'") != std::string::npos);
  REQUIRE(error("{A.wings}").find("unknown form 'wings'") != std::string::npos);
  REQUIRE(error("{place.s}").find("unknown form 's'") != std::string::npos);
  REQUIRE(error("[a|b").find("open bracket") != std::string::npos);
  REQUIRE(error("a]").find("a bracket too many") != std::string::npos);
  REQUIRE(error("{A").find("open brace") != std::string::npos);
  REQUIRE(error("{story}").find("contains itself") != std::string::npos);
}

}  // namespace
}  // namespace forge::data::stories
