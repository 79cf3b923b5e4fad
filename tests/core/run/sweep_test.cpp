#include "core/run/sweep.h"
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
  REQUIRE(error_of([] { seeds_from(0, 20261127); }).find("more than") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("1,01"); }).find("twice") != std::string::npos);
}

TEST_CASE("a seed that no record could have is refused with the largest one") {
  const std::string largest = "9007199254740992";
  REQUIRE(parse_seeds(largest).values == Texts{largest});
  REQUIRE(seeds_from(9007199254740991, 2).values == Texts{"9007199254740991", largest});
  for (const char* text : {"9007199254740993", "9007199254740992..9007199254740993"})
    REQUIRE(tests::contains(error_of([&] { parse_seeds(text); }), "from 0 to " + largest));
  REQUIRE(
      tests::contains(error_of([] { seeds_from(9007199254740991, 3); }), "from 0 to " + largest));
}

TEST_CASE("several sweeps make their product, the last changing fastest") {
  REQUIRE(sweep_points({}) == std::vector<Overrides>{{}});
  const auto product = sweep_points({parse_seeds("1,2"), parse_sweep("optimizer.lr=0.1,0.2")});
  REQUIRE(product == std::vector<Overrides>{{"seed=1", "optimizer.lr=0.1"},
                                            {"seed=1", "optimizer.lr=0.2"},
                                            {"seed=2", "optimizer.lr=0.1"},
                                            {"seed=2", "optimizer.lr=0.2"}});
  REQUIRE(error_of([] {
            sweep_points({parse_seeds("1"), parse_sweep("seed=2")});
          }).find("two sweeps change 'seed'") != std::string::npos);
}

TEST_CASE("combinations that nobody can run are refused before they fill the memory",
          "[run][sweep]") {
  const auto range = [](const std::string& path) {
    return parse_sweep(path + "=linear(1,9000,9000)");
  };
  CHECK(tests::contains(tests::error_of([&] {
                          sweep_points({range("optimizer.lr"), range("train.warmup_steps")});
                        }),
                        "the sweeps make 81,000,000 runs of a config"));
}

TEST_CASE("a range is written as its kind, its ends and its number of values", "[run][sweep]") {
  REQUIRE(parse_sweep("optimizer.lr=log(1e-4,1e-2,5)").values ==
          Texts{"0.0001", "0.000316", "0.001", "0.00316", "0.01"});
  REQUIRE(parse_sweep("optimizer.weight_decay=linear(0, 0.2, 3)").values ==
          Texts{"0", "0.1", "0.2"});
  REQUIRE(parse_sweep("train.batch_size=log(8,64,4)").values == Texts{"8", "16", "32", "64"});
  // A text with a parenthesis is a text.
  REQUIRE(parse_sweep("name=f(x),g(x)").values == Texts{"f(x)", "g(x)"});
  const auto says = [](const char* text, const char* what) {
    INFO(text);
    REQUIRE(error_of([&] { parse_sweep(text); }).find(what) != std::string::npos);
  };
  says("optimizer.lr=log(1e-4,1e-2)", "the two ends and the number of values");
  says("optimizer.lr=log(1e-4,1e-2,5", "does not end with ')'");
  says("optimizer.lr=log(a,1e-2,5)", "'a' is no number for an end");
  says("optimizer.lr=log(1e-4,1e-2,0)", "'0' is no number for the number of values");
  says("optimizer.lr=log(1e-4,1e-2,1)", "a range has two ends");
  says("optimizer.lr=log_uniform(1e-4,1e-2)", "are drawn");
}

TEST_CASE("values that are drawn are written as their distribution", "[run][sweep]") {
  REQUIRE(!parse_random_key("optimizer.lr=1e-4,1e-2"));
  REQUIRE(!parse_random_key("optimizer.lr=log(1e-4,1e-2,5)"));
  const auto rate = parse_random_key("optimizer.lr=log_uniform(1e-4,1e-2)");
  REQUIRE(rate);
  REQUIRE(rate->path == "optimizer.lr");
  REQUIRE(rate->distribution.kind == ValueKind::log_uniform);
  REQUIRE(rate->distribution.low == 1e-4);
  REQUIRE(rate->distribution.high == 1e-2);
  const auto betas = parse_random_key("optimizer.betas=choice([0.9,0.98],[0.9,0.999])");
  REQUIRE(betas->distribution.choices == Texts{"[0.9,0.98]", "[0.9,0.999]"});
  REQUIRE(error_of([] { parse_random_key("optimizer.lr=uniform(1)"); }).find("the two ends") !=
          std::string::npos);
}

TEST_CASE("samples are combined with every point of the lists", "[run][sweep]") {
  const std::vector<Overrides> samples = {{"optimizer.lr=0.1", "train.grad_clip=1"},
                                          {"optimizer.lr=0.2", "train.grad_clip=2"}};
  const auto points = sweep_points({parse_seeds("1,2")}, samples);
  REQUIRE(points.size() == 4);
  REQUIRE(points[1] == Overrides{"seed=1", "optimizer.lr=0.2", "train.grad_clip=2"});
  REQUIRE(error_of([&] {
            sweep_points({parse_sweep("optimizer.lr=1,2")}, samples);
          }).find("two sweeps change 'optimizer.lr'") != std::string::npos);
}

}  // namespace
}  // namespace forge::run
