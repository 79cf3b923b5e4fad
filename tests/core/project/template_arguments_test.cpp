#include "core/project/template_arguments.h"
#include "tests/core/project/fixture.h"
#include "tests/core/yaml/graph/graphs.h"
#include "tests/support/catch.h"

namespace forge::project {
namespace {

using jinja::Variable;
using tests::contains;

std::vector<TemplateArgument> arguments_of(const std::string& text) {
  return read_template_arguments(tests::graph_of(text));
}
TemplateArgument argument(const std::string& entry) {
  return arguments_of("dynamic_args: [{" + entry + "}]\n").at(0);
}
std::string problem(const std::string& entry) {
  return tests::error_of([&] { argument(entry); });
}

TEST_CASE("a config declares its arguments in a list or a dlist") {
  const auto arguments = arguments_of(
      "dynamic_args: !dlist\n"
      "  steps: {names: --max-steps, type: int, help: Number of steps, default: 7}\n"
      "  gone: ~\n"
      "  mode: {names: [-m, --run-mode], choices: [fast, slow]}\n");
  REQUIRE(arguments.size() == 2);
  CHECK(arguments[0].variable == "max_steps");
  CHECK(arguments[0].type == TemplateArgument::Type::integer);
  CHECK(arguments[0].help == "Number of steps");
  CHECK(usage_of(arguments[0]) == "--max-steps INT");
  CHECK(arguments[1].variable == "run_mode");
  CHECK(usage_of(arguments[1]) == "-m, --run-mode {fast,slow}");
  CHECK(arguments_of("main: 1\n").empty());
  CHECK(arguments_of("dynamic_args: !dlist\n").empty());
  CHECK(arguments_of("dynamic_args: ~\n").empty());
  CHECK(arguments_of("[1]").empty());
}

TEST_CASE("an argument takes as many values as its action and nargs say") {
  CHECK(usage_of(argument("names: --flag, action: store_true")) == "--flag");
  CHECK(argument("names: --flag, action: store_true").constant.boolean);
  CHECK_FALSE(argument("names: --flag, action: store_false").constant.boolean);
  CHECK(argument("names: --flag, action: store_const, const: 5").constant.integer == 5);
  CHECK(usage_of(argument("names: --two, nargs: 2, type: float")) == "--two NUMBER NUMBER");
  CHECK(usage_of(argument("names: --some, nargs: +")) == "--some TEXT …");
  CHECK(usage_of(argument("names: --any, nargs: '*'")) == "--any [TEXT …]");
  CHECK(usage_of(argument("names: --may, nargs: '?', type: path")) == "--may [PATH]");
  CHECK(usage_of(argument("names: --yes, type: bool")) == "--yes BOOL");
  CHECK(argument("names: --all, action: append").is_list);
}

TEST_CASE("a stray quote at the end of a name is taken off and noted") {
  const TemplateArgument stray = argument("names: '--num-attention-heads\"', type: int");
  CHECK(stray.names[0] == "--num-attention-heads");
  CHECK(stray.variable == "num_attention_heads");
  CHECK(stray.has_stray_quote);
  CHECK_FALSE(argument("names: --x").has_stray_quote);
  CHECK(argument("names: -x").variable == "x");
}

TEST_CASE("a wrong declaration is refused where it stands") {
  CHECK(contains(problem("nmaes: --x"), "did you mean 'names'"));
  CHECK(contains(problem("type: int"), "an argument needs 'names'"));
  CHECK(contains(problem("names: x"), "its names begin with '-'"));
  CHECK(contains(problem("names: '--a b'"), "its names begin with '-'"));
  CHECK(contains(problem("names: []"), "names no option"));
  CHECK(contains(problem("names: --x, type: integer"), "it is one of str, int"));
  CHECK(contains(problem("names: --x, action: count"), "it is store, store_true"));
  CHECK(contains(problem("names: --x, nargs: 0"), "it is a number of values"));
  CHECK(contains(problem("names: --x, action: store_true, nargs: 2"), "takes no values"));
  CHECK(contains(problem("names: --x, choices: fast"), "it is a list"));
  CHECK(contains(problem("names: --x, help: [1]"), "it is a text"));
  CHECK(contains(tests::error_of([] { arguments_of("dynamic_args: {names: --x}\n"); }),
                 "config.yaml:1:15: error: 'dynamic_args' is a mapping"));
  CHECK(
      contains(tests::error_of([] { arguments_of("dynamic_args: [--x]\n"); }), "it is a mapping"));
}

TEST_CASE("a config is rendered without arguments to learn which it takes") {
  const tests::TemporaryWorkspace files;
  files.add_project("p");
  files.add_config("p",
                   "c",
                   "steps: {{ max_steps | default(3) }}\n"
                   "dynamic_args:\n  - names: --max-steps\n    type: int\n");
  const Project project = files.project("p");
  const auto arguments =
      read_template_arguments(load_graph(project, project.configs[0], tests::fixed_surroundings()));
  REQUIRE(arguments.size() == 1);
  CHECK(contains(arguments[0].origin.describe(), "c.yaml:3:5"));
}

using jinja::Variable;
using jinja::Variables;
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
  return parse_template_arguments(read_template_arguments(tests::graph_of(declarations)),
                                  words,
                                  {"train_x", {"--json", "--now"}, "/home/ada"});
}
std::string problem_of_words(const std::vector<std::string>& words) {
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
  CHECK(contains(problem_of_words({"--max-step", "5"}),
                 "the config 'train_x' takes no argument '--max-step'"));
  CHECK(contains(problem_of_words({"--max-step", "5"}), "did you mean '--max-steps'?"));
  CHECK(contains(problem_of_words({"--max-step", "5"}), "-n, --max-steps INT; --rate NUMBER"));
  CHECK(contains(problem_of_words({"--jsn"}), "did you mean '--json'?"));
  CHECK(contains(problem_of_words({"--max-steps"}), "'--max-steps' lacks a value"));
  CHECK(contains(problem_of_words({"--max-steps", "1.5"}), "takes an integer, not '1.5'"));
  CHECK(contains(problem_of_words({"--max-steps", "99999999999999999999"}), "takes an integer"));
  CHECK(contains(problem_of_words({"--max-steps", "1__0"}), "takes an integer"));
  CHECK(contains(problem_of_words({"--rate", "fast"}), "takes a number, not 'fast'"));
  CHECK(contains(problem_of_words({"--tied", "perhaps"}), "takes true or false"));
  CHECK(contains(problem_of_words({"--mode", "medium"}), "'medium' is no choice of '--mode'"));
  CHECK(contains(problem_of_words({"--mode", "medium"}), "--mode {fast,slow}"));
  CHECK(contains(problem_of_words({"--rate", "1", "--rate", "2"}), "'--rate' is given twice"));
  CHECK(contains(problem_of_words({"-n", "1", "--max-steps", "2"}), "given twice"));
  CHECK(contains(problem_of_words({"--flag=yes"}), "'--flag' is followed by 'yes'"));
  CHECK(contains(problem_of_words({"--pair", "1"}), "'--pair' lacks a value"));
  CHECK(contains(problem_of_words({"--rate", "1", "train_y"}), "followed by 'train_y'"));
  CHECK(contains(problem_of_words({"train_y"}), "names of configs stand before the arguments"));
}

TEST_CASE("a config that declares nothing says so") {
  const std::string error = tests::error_of([] {
    parse_template_arguments({}, {"--max-steps", "5"}, {"train_x", {"--json"}, ""});
  });
  CHECK(contains(error, "the config 'train_x' takes no argument '--max-steps'"));
  CHECK(contains(error, "it has no target dynamic_args"));
}

}  // namespace
}  // namespace forge::project
