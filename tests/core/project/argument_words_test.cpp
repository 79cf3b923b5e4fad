#include "core/project/argument_words.h"

#include "tests/core/graph/graphs.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::project {
namespace {

using templating::Variable;
using templating::Variables;
using tests::contains;

constexpr const char* declarations =
    "dynamic_args:\n"
    "  - {names: [-n, --max-steps], type: int}\n"
    "  - {names: --rate, type: float}\n"
    "  - {names: --tied, type: bool}\n"
    "  - {names: --flag, action: store_true}\n"
    "  - {names: --no-flag, action: store_false}\n"
    "  - {names: --level, action: store_const, const: 3}\n"
    "  - {names: --out-dir, type: path}\n"
    "  - {names: --mode, choices: [fast, slow]}\n"
    "  - {names: --size, type: int, choices: [1, 2]}\n"
    "  - {names: --pair, type: int, nargs: 2}\n"
    "  - {names: --names, nargs: +}\n"
    "  - {names: --maybe, nargs: '?', const: here}\n"
    "  - {names: --add, action: append}\n"
    "  - {names: '--heads\"', type: int}\n";

Variables read(const std::vector<std::string>& words) {
  return read_argument_words(read_template_arguments(tests::graph_of(declarations)),
                             words,
                             {"train_x", {"--json", "--now"}, "/home/ada"});
}
std::string problem(const std::vector<std::string>& words) {
  return tests::error_of([&] { read(words); });
}
Variable only(const std::vector<std::string>& words) {
  const Variables variables = read(words);
  REQUIRE(variables.size() == 1);
  return variables.begin()->second;
}

TEST_CASE("words become variables of the declared types") {
  CHECK(read({"--max-steps", "5"}).at("max_steps").integer == 5);
  CHECK(read({"-n", "-5"}).at("max_steps").integer == -5);
  CHECK(read({"--max-steps=1_000"}).at("max_steps").integer == 1000);
  CHECK(only({"--rate", "1e-3"}).real == 0.001);
  CHECK(only({"--rate", "-1e-3"}).real == -0.001);
  CHECK(only({"--rate", "2"}).kind == Variable::Kind::real);
  CHECK(only({"--tied", "Yes"}).boolean);
  CHECK_FALSE(only({"--tied", "off"}).boolean);
  CHECK(read({"--out-dir", "~/x"}).at("out_dir").string == "/home/ada/x");
  CHECK(only({"--out-dir", "/x/~"}).string == "/x/~");
  CHECK(only({"--mode", "slow"}).string == "slow");
  CHECK(only({"--mode=fast"}).string == "fast");
  CHECK(only({"--size", "2"}).integer == 2);
  CHECK(read({"--heads", "8"}).at("heads").integer == 8);
  CHECK(read({"--rate", "1", "--flag", "-n", "3"}).size() == 3);
}

TEST_CASE("an argument that is not given is absent") {
  CHECK(read({}).empty());
  CHECK(read({"--rate", "1"}).count("flag") == 0);
  CHECK(only({"--flag"}).boolean);
  CHECK_FALSE(only({"--no-flag"}).boolean);
  CHECK(only({"--level"}).integer == 3);
  CHECK(only({"--maybe"}).string == "here");
  CHECK(only({"--maybe", "there"}).string == "there");
}

TEST_CASE("several values are a list") {
  const Variable pair = only({"--pair", "1", "-2"});
  CHECK(pair.kind == Variable::Kind::list);
  REQUIRE(pair.items.size() == 2);
  CHECK(pair.items[1].integer == -2);
  CHECK(only({"--names", "a", "b", "c"}).items.size() == 3);
  CHECK(text_of(only({"--add", "a", "--add=b"})) == "[a, b]");
}

TEST_CASE("what does not fit a declaration is refused and says what does") {
  CHECK(contains(problem({"--max-step", "5"}),
                 "the config 'train_x' takes no argument '--max-step'"));
  CHECK(contains(problem({"--max-step", "5"}), "did you mean '--max-steps'?"));
  CHECK(contains(problem({"--max-step", "5"}), "-n, --max-steps INT; --rate NUMBER"));
  CHECK(contains(problem({"--jsn"}), "did you mean '--json'?"));
  CHECK(contains(problem({"--max-steps"}), "'--max-steps' lacks a value"));
  CHECK(contains(problem({"--max-steps", "1.5"}), "takes an integer, not '1.5'"));
  CHECK(contains(problem({"--max-steps", "99999999999999999999"}), "takes an integer"));
  CHECK(contains(problem({"--max-steps", "1__0"}), "takes an integer"));
  CHECK(contains(problem({"--rate", "fast"}), "takes a number, not 'fast'"));
  CHECK(contains(problem({"--tied", "perhaps"}), "takes true or false"));
  CHECK(contains(problem({"--mode", "medium"}), "'medium' is no choice of '--mode'"));
  CHECK(contains(problem({"--mode", "medium"}), "--mode {fast,slow}"));
  CHECK(contains(problem({"--rate", "1", "--rate", "2"}), "'--rate' is given twice"));
  CHECK(contains(problem({"-n", "1", "--max-steps", "2"}), "given twice"));
  CHECK(contains(problem({"--flag=yes"}), "'--flag' is followed by 'yes'"));
  CHECK(contains(problem({"--pair", "1"}), "'--pair' lacks a value"));
  CHECK(contains(problem({"--rate", "1", "train_y"}), "followed by 'train_y'"));
  CHECK(contains(problem({"train_y"}), "names of configs stand before the arguments"));
}

TEST_CASE("a config that declares nothing says so") {
  const std::string error = tests::error_of([] {
    read_argument_words({}, {"--max-steps", "5"}, {"train_x", {"--json"}, ""});
  });
  CHECK(contains(error, "the config 'train_x' takes no argument '--max-steps'"));
  CHECK(contains(error, "it has no target dynamic_args"));
}

}  // namespace
}  // namespace forge::project
