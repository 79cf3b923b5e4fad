#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "core/data/stories/english.h"
#include "core/data/stories/story_grammar.h"
#include "core/data/stories/toy_stories.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::stories {
namespace {

TEST_CASE("nouns have their plurals") {
  REQUIRE(plural("kite") == "kites");
  REQUIRE(plural("box") == "boxes");
  REQUIRE(plural("cherry") == "cherries");
  REQUIRE(plural("donkey") == "donkeys");
  REQUIRE(plural("bench") == "benches");
  REQUIRE(plural("leaf") == "leaves");
  REQUIRE(plural("water mouse") == "water mice");
  REQUIRE(plural("oak tree") == "oak trees");
  REQUIRE(plural("bar of soap") == "bars of soap");
}

TEST_CASE("verbs have their forms in the first word of a phrase") {
  REQUIRE(third_person("carry water") == "carries water");
  REQUIRE(third_person("wash") == "washes");
  REQUIRE(third_person("go") == "goes");
  REQUIRE(past("chop wood") == "chopped wood");
  REQUIRE(past("bake") == "baked");
  REQUIRE(past("carry") == "carried");
  REQUIRE(past("play") == "played");
  REQUIRE(past("sing songs") == "sang songs");
  REQUIRE(past("peel") == "peeled");
  REQUIRE(past("whisper") == "whispered");
  REQUIRE(past_participle("shear the sheep") == "shorn the sheep");
  REQUIRE(past_participle("hoe") == "hoed");
  REQUIRE(present_participle("run") == "running");
  REQUIRE(present_participle("make tea") == "making tea");
  REQUIRE(present_participle("lie") == "lying");
  REQUIRE(present_participle("hoe") == "hoeing");
  REQUIRE(present_participle("mix") == "mixing");
  REQUIRE(present_participle("begin") == "beginning");
  REQUIRE(present_participle("open") == "opening");
}

TEST_CASE("adjectives have their degrees") {
  REQUIRE(comparative("kind") == "kinder");
  REQUIRE(comparative("brave") == "braver");
  REQUIRE(comparative("happy") == "happier");
  REQUIRE(comparative("big") == "bigger");
  REQUIRE(comparative("careful") == "more careful");
  REQUIRE(comparative("loyal") == "more loyal");
  REQUIRE(comparative("good") == "better");
  REQUIRE(superlative("quiet") == "quietest");
  REQUIRE(superlative("gentle") == "gentlest");
  REQUIRE(superlative("patient") == "most patient");
  REQUIRE(superlative("bad") == "worst");
}

TEST_CASE("articles follow the first sound") {
  REQUIRE(with_article("kite") == "a kite");
  REQUIRE(with_article("old kite") == "an old kite");
  REQUIRE(with_article("honest man") == "an honest man");
  REQUIRE(with_article("hourglass") == "an hourglass");
  REQUIRE(with_article("unusual kite") == "an unusual kite");
  REQUIRE(with_article("uniform") == "a uniform");
}

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

namespace forge::data {
namespace {

int count_words(const std::string& text) {
  int words = 0;
  bool inside = false;
  for (const char letter : text) {
    const bool gap = letter == ' ' || letter == '\n';
    words += !gap && !inside;
    inside = !gap;
  }
  return words;
}

TEST_CASE("stories are the same bytes for all time") {
  Hasher hasher;
  for (uint64_t i = 0; i < 50; ++i) hasher.update(toy_story(1, Split::training, i));
  for (uint64_t i = 0; i < 50; ++i) hasher.update(toy_story(1, Split::evaluation, i));
  // Whoever changes this raises toy_stories_version: caches and runs depend on it.
  REQUIRE(toy_stories_version == 1);
  REQUIRE(hasher.hex() == "8a868245bc482409364f9ec6dcf5314b");
}

TEST_CASE("stories have 60 to 250 words of clean text") {
  double words = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::string story = toy_story(3, Split::training, i);
    INFO(story);
    const int count = count_words(story);
    REQUIRE(count >= 60);
    REQUIRE(count <= 250);
    words += count;
    REQUIRE(story.find_first_of("{}[]|") == std::string::npos);
    REQUIRE(story.find("  ") == std::string::npos);
    REQUIRE(story.find(" \n") == std::string::npos);
    REQUIRE(story.find("\n\n\n") == std::string::npos);
    REQUIRE(std::isupper(static_cast<unsigned char>(story[0])));
    REQUIRE(std::string(".!\"").find(story.back()) != std::string::npos);
    REQUIRE(std::all_of(story.begin(), story.end(), [](char letter) {
      return letter == '\n' || (letter >= ' ' && letter <= '~');
    }));
  }
  REQUIRE(words / 2000 > 120);
}

TEST_CASE("stories use at least 3000 word forms and more than in passing") {
  std::map<std::string, int> forms;
  for (uint64_t i = 0; i < 6000; ++i) {
    std::string word;
    for (const char letter : toy_story(1, Split::training, i) + " ") {
      if (std::isalpha(static_cast<unsigned char>(letter))) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      } else if (!word.empty()) {
        ++forms[word];
        word.clear();
      }
    }
  }
  int used = 0;
  for (const auto& [word, count] : forms) used += count >= 5;
  REQUIRE(used >= 3000);
}

TEST_CASE("no evaluation story is a training story and no story comes twice") {
  std::set<std::string> training;
  for (uint64_t i = 0; i < 5000; ++i) training.insert(toy_story(1, Split::training, i));
  REQUIRE(training.size() == 5000);
  for (uint64_t i = 0; i < 1000; ++i)
    REQUIRE(training.count(toy_story(1, Split::evaluation, i)) == 0);
  REQUIRE(toy_story(1, Split::training, 5) != toy_story(2, Split::training, 5));
}

TEST_CASE("the probabilities of a grammar's texts add up to 1") {
  // Few enough texts that all of them turn up; each has one derivation.
  const stories::Grammar grammar(
      {{"fruit", stories::WordKind::plain, {"fig", "pear", "plum", "kiwi", "lime"}}},
      {{"first", "fruit"}},
      {{"text", {"{first} {fruit}[|, {first}!|?] {end}", "{fruit} {fruit}"}}, {"end", {"a", "b"}}});
  std::map<std::string, double> probabilities;
  for (uint64_t i = 0; i < 20000; ++i) {
    RandomStream random(7, i);
    std::string text;
    double nats = 0;
    grammar.expand("text", random, text, &nats);
    probabilities[text] = std::exp(-nats);
  }
  REQUIRE(probabilities.size() == 20 * 3 * 2 + 20);
  double sum = 0;
  for (const auto& [text, probability] : probabilities) sum += probability;
  REQUIRE(sum == Approx(1));
}

TEST_CASE("a story holds some 113 nats of choice") {
  const double nats = toy_stories_nats(1, Split::evaluation, 500) / 500;
  REQUIRE(nats > 105);
  REQUIRE(nats < 121);
  REQUIRE(toy_stories_nats(1, Split::evaluation, 0) == 0);
}

TEST_CASE("facts come back: where the thing was put is told twice") {
  int told_again = 0;
  int stories = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string story = toy_story(1, Split::training, i);
    const size_t question = story.find("\"Where was it?\" asked");
    if (question == std::string::npos) continue;
    ++stories;
    const size_t answer = story.find(" \"", question) + 2;
    std::string place = story.substr(answer, story.find(",\"", answer) - answer);
    place[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(place[0])));
    told_again += story.find(place) < question;
  }
  REQUIRE(stories > 5);
  REQUIRE(told_again == stories);
}

TEST_CASE("a story far along a stream is had at once") {
  REQUIRE(toy_story(1, Split::training, (uint64_t{1} << 40) - 1) !=
          toy_story(1, Split::training, 0));
}

}  // namespace
}  // namespace forge::data
