// Rules about meta.yaml, parents and inline templates.

#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("a config that no command can name is warned about") {
  CheckFixture check;
  check.config("fine", "main: 1\n").config("*", "main: 1\n");
  CHECK(check.only("config-name").severity == lint::Severity::warning);
  CHECK(check.only("config-name").message.find("*.yaml") != std::string::npos);
}

TEST_CASE("an unknown key of meta.yaml is found once whatever the configs are") {
  CheckFixture check("searchpath: [templates]\ncolour: red\n");
  check.config("a", "k: 1\n").config("b", "k: 1\n");
  CHECK(check.found({"unknown-meta-key"}) ==
        Lines{"warning unknown-meta-key meta.yaml:1:1 searchpath",
              "warning unknown-meta-key meta.yaml:2:1 colour"});
  const auto report = check.report();
  CHECK(report.findings.size() > 1);
}

TEST_CASE("searchpath is what others call searchdir") {
  CheckFixture check("searchpath: [templates]\n");
  CHECK(check.only("unknown-meta-key").hint == "did you mean 'searchdir'?");
}

TEST_CASE("a config that uses no other template stands alone") {
  CheckFixture check;
  check.file("base.yaml", "k: 1\n")
      .config("alone", "-- include 'own'\n\n#--- own ---\nk: 1\n")
      .config("child", "-- extends 'base.yaml'\n")
      .config("user", "-- include 'base.yaml'\n");
  CHECK(check.found({"stands-alone"}) == Lines{"warning stands-alone alone.yaml:1:1 alone"});
}

TEST_CASE("of two inline templates of one name the parent's wins and the other is found") {
  CheckFixture check;
  check.file("base.yaml", "-- include 'model'\n\n#--- model ---\nk: parent\n")
      .config("c", "-- extends 'base.yaml'\n\n#--- model ---\nk: child\n");
  CHECK(check.found({"duplicate-inline"}) == Lines{"warning duplicate-inline c.yaml:3:6 model"});
  const std::string message = check.only("duplicate-inline").message;
  CHECK(message.find("base.yaml:3:6") != std::string::npos);
}

TEST_CASE("inline templates of one name and one text are no trouble") {
  CheckFixture check;
  check.file("base.yaml", "-- include 'model'\n\n#--- model ---\nk: 1\n")
      .config("c", "-- extends 'base.yaml'\n\n#--- model ---\nk: 1\n");
  CHECK(check.found({"duplicate-inline"}).empty());
}

TEST_CASE("a title between dashes that cuts the file is noted") {
  CheckFixture check;
  check.config("c", "k: 1\n#---- Optimizer ----\nlr: 1\n");
  CHECK(check.found({"unused-inline"}) == Lines{"note unused-inline c.yaml:2:7 Optimizer"});
}

TEST_CASE("an inline template is in use where any config uses it") {
  CheckFixture check;
  check.file("base.yaml", "-- include part\n\n#--- one ---\nk: 1\n#--- two ---\nk: 2\n")
      .config("a", "-- set part = 'one'\n-- include 'base.yaml'\n")
      .config("b", "-- set part = 'two'\n-- include 'base.yaml'\n");
  CHECK(check.found({"unused-inline"}).empty());
}

const char* const base = "[head]\n[body]\n    [inner]\nk: 1\n";

TEST_CASE("a block that no ancestor has is found with a near miss") {
  CheckFixture check;
  check.file("base.yaml", base).config("c", "-- extends 'base.yaml'\n[bodi]\nk: 2\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block c.yaml:2:1 bodi"});
  CHECK(check.only("unknown-block").hint == "did you mean 'body'?");
}

TEST_CASE("without a near miss the hint names the templates that are extended") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("middle.yaml", "-- extends 'base.yaml'\n")
      .config("c", "-- extends 'middle.yaml'\n[trainer]\n");
  CHECK(check.only("unknown-block").hint == "it extends middle.yaml, base.yaml");
}

TEST_CASE("blocks that override something or stand within a block are fine") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("middle.yaml", "-- extends 'base.yaml'\n[body]\n    [place_for_others]\nk: 3\n")
      .config("a", "-- extends 'middle.yaml'\n[inner]\nk: 2\n")
      .config("b", "-- extends 'middle.yaml'\n[place_for_others]\nk: 2\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("a template that extends nothing may have any blocks") {
  CheckFixture check;
  check.file("part.yaml", "[own]\nk: 1\n").config("c", "-- include 'part.yaml'\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("an extends that does not take place makes no parent") {
  CheckFixture check;
  check.file("base.yaml", base)
      .config("c", "-- if false\n-- extends 'base.yaml'\n-- endif\n[own]\nk: 1\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("an inline template has a chain of its own") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("model.yaml", "[layers]\nk: 1\n")
      .config("c",
              "-- extends 'base.yaml'\n[body]\n-- include 'c.model'\n\n"
              "#--- c.model ---\n-- extends 'model.yaml'\n[body]\n[layers]\nk: 1\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block c.yaml:7:1 body"});
}

TEST_CASE("a template whose parent an expression names is judged by all its uses") {
  CheckFixture check;
  check.file("one.yaml", "[one]\n")
      .file("two.yaml", "[two]\n")
      .file("shared.yaml", "-- extends parent\n[one]\na: 1\n[two]\na: 2\n[three]\n")
      .config("a", "-- set parent = 'one.yaml'\n-- include 'shared.yaml'\n")
      .config("b", "-- set parent = 'two.yaml'\n-- include 'shared.yaml'\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block shared.yaml:6:1 three"});
}

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
  jinja::Variables variables;
  variables["given"].kind = jinja::Variable::Kind::integer;
  CHECK(check.report().count(lint::Severity::note) == 1);
  CHECK(check.report(variables).count(lint::Severity::note) == 0);
}

TEST_CASE("settings below a title between dashes are lost, which is a warning") {
  CheckFixture check;
  check.config("c", "model: {}\n# --- optimizer ---\noptimizer.lr: 1\n");
  CHECK(check.found({"unused-inline"}) == Lines{"warning unused-inline c.yaml:2:7 optimizer"});
}

/// A base that reads ns.mixer, and has a block for overrides.
struct MixerCheck : CheckFixture {
  MixerCheck() {
    file("base.yaml",
         "-- set ns = namespace()\n[config_metadata]\n-- set ns.mixer = 'gla5'\n"
         "[body]\nmodel: {layers: [{{ ns.mixer }}]}\n[overrides]\n");
  }
};

TEST_CASE("keys outside of all blocks of a config that extends another are found") {
  MixerCheck check;
  check.config("bare", "-- extends 'base.yaml'\nmodel.canon.set: AC\ntrain.max_steps: 5\n")
      .config("comment", "-- extends 'base.yaml'\n[overrides]  # mine\ntrain.max_steps: 5\n")
      .config("fine", "-- extends 'base.yaml'\n# a word\n[overrides]\ntrain.max_steps: 5\n")
      .config("alone", "train.max_steps: 5\n");
  CHECK(check.found({"outside-blocks"}) ==
        Lines{"warning outside-blocks bare.yaml:2:1 model.canon.set",
              "warning outside-blocks comment.yaml:3:1 train.max_steps"});
}

TEST_CASE("a variable that no template reads behind it is found") {
  MixerCheck check;
  const std::string begin = "-- extends 'base.yaml'\n[config_metadata]\n";
  check.config("a_slip", begin + "== super()\n-- set ns.mixers = 'mamba2'\n")
      .config("b_plain", begin + "== super()\n-- set mixer = 'mamba2'\n")
      .config("c_early", begin + "-- set ns.mixer = 'mamba2'\n== super()\n")
      .config("d_late", "-- extends 'base.yaml'\n[overrides]\n-- set ns.mixer = 'mamba2'\n")
      .config("e_fine", begin + "== super()\n-- set ns.mixer = 'mamba2'\n");
  CHECK(check.found({"never-read"}) == Lines{"warning never-read a_slip.yaml:4:8 ns.mixers",
                                             "warning never-read b_plain.yaml:4:8 mixer",
                                             "warning never-read c_early.yaml:3:8 ns.mixer",
                                             "warning never-read d_late.yaml:3:8 ns.mixer"});
}

}  // namespace
}  // namespace forge::tests
