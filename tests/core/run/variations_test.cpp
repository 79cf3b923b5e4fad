#include "core/run/variations.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using Texts = std::vector<std::string>;

TEST_CASE("a sweep's values are parted by commas outside of brackets and quotes") {
  const Sweep sweep = parse_sweep("optimizer.lr=3e-4,1e-3,3e-3");
  REQUIRE(sweep.path == "optimizer.lr");
  REQUIRE(sweep.values == Texts{"3e-4", "1e-3", "3e-3"});
  REQUIRE(parse_sweep("optimizer.betas=[0.9,0.98],[0.9,0.999]").values ==
          Texts{"[0.9,0.98]", "[0.9,0.999]"});
  REQUIRE(parse_sweep("description=\"a,b\",'c,d'").values == Texts{"\"a,b\"", "'c,d'"});
  REQUIRE(parse_sweep("model.canon.set=A").values == Texts{"A"});
  REQUIRE(parse_sweep("data.path=a=b").values == Texts{"a=b"});
}

TEST_CASE("a sweep without a key, with an empty value or one twice is refused") {
  for (const char* text : {"optimizer.lr", "=1,2", ""})
    REQUIRE(error_of([&] { parse_sweep(text); }).find("is no sweep") != std::string::npos);
  for (const char* text : {"a=", "a=1,", "a=,1", "a=1,,2"})
    REQUIRE(error_of([&] { parse_sweep(text); }).find("empty value") != std::string::npos);
  REQUIRE(error_of([] { parse_sweep("a=1,2,1"); }).find("the value 1 twice") != std::string::npos);
}

TEST_CASE("seeds are a list or a range") {
  REQUIRE(parse_seeds("1,2,7").values == Texts{"1", "2", "7"});
  REQUIRE(parse_seeds("42").values == Texts{"42"});
  REQUIRE(parse_seeds("3..5").values == Texts{"3", "4", "5"});
  REQUIRE(parse_seeds("5..5").path == "seed");
  REQUIRE(seeds_from(42, 3).values == Texts{"42", "43", "44"});
  for (const char* text :
       {"", "a", "-1", "1.5", "1,,2", "1..", "..3", "1,2x", "99999999999999999999"})
    REQUIRE(error_of([&] { parse_seeds(text); }).find("is no seed") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("5..3"); }).find("are none") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("0..1000000"); }).find("more than") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("1,01"); }).find("twice") != std::string::npos);
}

TEST_CASE("several sweeps make their product, the last changing fastest") {
  REQUIRE(variations_of({}) == std::vector<Variation>{{}});
  const auto product = variations_of({parse_seeds("1,2"), parse_sweep("optimizer.lr=0.1,0.2")});
  REQUIRE(product == std::vector<Variation>{{"seed=1", "optimizer.lr=0.1"},
                                            {"seed=1", "optimizer.lr=0.2"},
                                            {"seed=2", "optimizer.lr=0.1"},
                                            {"seed=2", "optimizer.lr=0.2"}});
  REQUIRE(error_of([] {
            variations_of({parse_seeds("1"), parse_sweep("seed=2")});
          }).find("two sweeps change 'seed'") != std::string::npos);
}

}  // namespace
}  // namespace forge::run
