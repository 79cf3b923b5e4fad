#include "core/data/stories/english.h"

#include "tests/support/catch.h"

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

}  // namespace
}  // namespace forge::data::stories
