#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

Lines never_set_in(const std::string& text) {
  return CheckFixture().config("c", text).found({"never-set"});
}

TEST_CASE("a misspelt variable that a default hides is found") {
  CheckFixture check;
  check.config("c", "-- set hidden_size = 4\nsize: {{ hiden_size | default(8) }}\n");
  CHECK(check.found({"never-set"}) == Lines{"warning never-set c.yaml:2:10 hiden_size"});
  CHECK(check.only("never-set").hint == "did you mean 'hidden_size'?");
}

TEST_CASE("a misspelt attribute of a namespace is found through toyaml and is defined") {
  const std::string set = "-- set ns = namespace()\n-- set ns.model_name = 'a'\n";
  CHECK(never_set_in(set + "n: {{ ns.modle_name | toyaml('x') }}\n") ==
        Lines{"warning never-set c.yaml:3:10 ns.modle_name"});
  CHECK(never_set_in(set + "-- if ns.modle_name is defined\nn: 1\n-- endif\n").size() == 1);
}

TEST_CASE("a variable of a namespace that is read without the namespace is found") {
  CheckFixture check;
  check.config("c",
               "-- set ns = namespace()\n-- set ns.log_dir = 'a'\n"
               "dir: {{ log_dir | default('b') }}\n");
  CHECK(check.only("never-set").hint == "did you mean 'ns.log_dir'?");
}

TEST_CASE("the key that a misspelt variable fills tells what was meant") {
  CheckFixture check;
  check.config("c", "activation_dropout: {{ hiactivation_dropoutdden_size | toyaml(0.0) }}\n");
  CHECK(check.only("never-set").severity == lint::Severity::warning);
  CHECK(check.only("never-set").hint == "did you mean 'activation_dropout'?");
}

TEST_CASE("a variable called like the key that it fills is a place for others") {
  CHECK(never_set_in("-- set attention_dropout = 1\n"
                     "activation_dropout: {{ activation_dropout | toyaml(0.0) }}\n")
            .empty());
}

TEST_CASE("a variable that nothing sets and that resembles nothing is a note") {
  CHECK(never_set_in("arg0: {{ tokenizer_path | toyaml('x') }}\n") ==
        Lines{"note never-set c.yaml:1:10 tokenizer_path"});
}

TEST_CASE("siblings that differ in a digit or a short word are no slips") {
  CHECK(never_set_in("-- set adam_beta1 = 1\nbeta: {{ adam_beta2 | default(1) }}\n") ==
        Lines{"note never-set c.yaml:2:10 adam_beta2"});
  CHECK(never_set_in("-- set max_lr = 1\nlr: {{ min_lr | default(1) }}\n") ==
        Lines{"note never-set c.yaml:2:8 min_lr"});
}

TEST_CASE("what is set or passed or declared or built in is known") {
  CHECK(never_set_in("-- set x = 1\na: {{ x | default(2) }}\n").empty());
  CHECK(never_set_in("-- for x in [1]\na: {{ x | default(2) }}\n-- endfor\n").empty());
  CHECK(never_set_in("-- macro m(x)\n{{ x | default(2) }}\n-- endmacro\na: 1\n").empty());
  CHECK(never_set_in("a: {{ project_dir | default(2) }}\n").empty());
  CHECK(never_set_in("a: {{ max_steps | default(2) }}\n"
                     "dynamic_args:\n  - names: --max-steps\n    type: int\n")
            .empty());
  CHECK(never_set_in("a: {{ size | default(2) }}\n"
                     "b: !call:forgather:from_project {pp_kwargs: {size: 3}}\n")
            .empty());
}

TEST_CASE("a variable that is read without a default too is none of this rule") {
  // The render would fail where the template is used; here the reading stands in a macro.
  CHECK(never_set_in("-- macro m()\n{{ x }}\n-- endmacro\na: {{ x | default(2) }}\n").empty());
}

TEST_CASE("variables of the command line are known") {
  CheckFixture check;
  check.config("c", "a: {{ given | default(2) }}\n");
  templating::Variables variables;
  variables["given"].kind = templating::Variable::Kind::integer;
  CHECK(check.report().count(lint::Severity::note) == 1);
  CHECK(check.report(variables).count(lint::Severity::note) == 0);
}

}  // namespace
}  // namespace forge::tests
