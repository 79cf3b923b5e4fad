#include "core/project/template_arguments.h"

#include "tests/core/graph/graphs.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::project {
namespace {

using templating::Variable;
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
      template_arguments_of(project, project.configs[0], tests::fixed_surroundings());
  REQUIRE(arguments.size() == 1);
  CHECK(contains(arguments[0].origin.describe(), "c.yaml:3:5"));
}

}  // namespace
}  // namespace forge::project
