// The commands that look at a tree of templates, on one as Forgather's users write it.
#include "core/base/fs.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// A workspace with a library and two projects, one of which has a config that cannot be rendered.
class Tree {
 public:
  Tree() {
    write("forgather_workspace/meta_defaults.yaml",
          "searchdir:\n"
          "  - \"{{ joinpath(project_dir, 'templates') }}\"\n"
          "  - \"{{ joinpath(workspace_root, 'library') }}\"\n"
          "-- block configs\nconfig_prefix: configs\n-- endblock\n");
    write("library/trainer.yaml",
          "-- set ns = namespace()\n"
          "-- filter trim\n"
          "-- block setup\n"
          "    -- set ns.name = 'Anonymous'\n"
          "-- endblock setup\n"
          "-- endfilter\n"
          "[main_part]\n"
          ".define: &model !singleton:models:Llama@model {hidden: {{ width | default(64) }}}\n"
          "main: !call:trainer:Trainer@trainer\n"
          "    model: *model\n"
          "    lr: 1.0e-3\n"
          "dynamic_args: !dlist\n"
          "    width: {names: --width, type: int, help: \"hidden size\"}\n"
          "meta: !dict:@meta\n"
          "    config_name: \"{{ ns.name }}\"\n"
          "    config_description: \"By {{ ns.name }}\"\n");
    write("fine/meta.yaml",
          "-- extends 'meta_defaults.yaml'\n[configs]\nname: Fine\ndefault_config: first\n");
    write("fine/templates/configs/first.yaml", config("First", ""));
    write("fine/templates/configs/second.yaml", config("Second", "lr: 2.0e-3\n"));
    write("broken/meta.yaml", "-- extends 'meta_defaults.yaml'\n[configs]\nname: Broken\n");
    write("broken/templates/configs/bad.yaml", "main: {{ nothing }}\n");
    write("broken/templates/configs/good.yaml", config("Good", ""));
    forge.working_directory = forge.folder() / "tree" / "fine" / "templates" / "configs";
  }

  static std::string config(const std::string& name, const std::string& arguments) {
    return "-- extends 'trainer.yaml'\n[setup]\n    == super()\n"
           "    -- set ns.name = '" +
           name + "'\n[main_part]\n    == super()\n" +
           (arguments.empty() ? ""
                              : "other: {" + arguments.substr(0, arguments.size() - 1) + "}\n");
  }
  void write(const std::string& path, const std::string& text) const {
    forge.folder().write("tree/" + path, text);
  }
  std::string text(const std::vector<std::string>& arguments) const {
    const Outcome outcome = forge.call(arguments);
    INFO(arguments[0] << ": " << outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  }
  json values(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    return json::parse(text(arguments));
  }

  Program forge;
};

TEST_CASE("a tree is listed from within and a broken config keeps its reason to itself") {
  const Tree tree;
  REQUIRE(contains(tree.text({"ls"}), "[first]"));
  REQUIRE(tree.values({"ls"}).size() == 1);
  const Outcome all = tree.forge.call({"ls", "-r", "-p", "../../.."});
  INFO(all.out << all.err);
  REQUIRE(all.exit_code == 2);
  REQUIRE(contains(all.out, "Second"));
  REQUIRE(contains(all.out, "Good"));
  REQUIRE(contains(all.out + all.err, "'nothing' is undefined"));
  REQUIRE(contains(all.out + all.err, "bad.yaml:1"));
}

TEST_CASE("a config is rendered by name and by beginning and with its arguments") {
  const Tree tree;
  const std::string rendered = tree.text({"pp", "first"});
  REQUIRE(contains(rendered, "Llama@model {hidden: 64}"));
  REQUIRE(tree.text({"pp"}) == rendered);
  REQUIRE(tree.text({"pp", "first.yaml"}) == rendered);
  REQUIRE(tree.text({"-t", "f", "pp"}) == rendered);
  REQUIRE(contains(tree.text({"pp", "first", "--width", "96"}), "{hidden: 96}"));
  const json lines = tree.values({"pp", "first"}).at("lines");
  REQUIRE(contains(rendered, lines.at(0).at("text").get<std::string>() + "\n"));
  REQUIRE(contains(lines.at(0).at("origins").at(0).at("file"), "library/trainer.yaml"));
  const std::string annotated = tree.text({"pp", "first", "--annotate"});
  REQUIRE(contains(annotated, "trainer.yaml:"));
}

TEST_CASE("every command that looks at templates answers in words and in JSON") {
  const Tree tree;
  REQUIRE(tree.text({"targets", "first"}) == "main\ndynamic_args\nmeta\n");
  REQUIRE(contains(tree.text({"trefs", "first"}), "library/trainer.yaml"));
  REQUIRE(contains(tree.text({"trefs", "first", "--format", "dot"}), "digraph"));
  REQUIRE(contains(tree.text({"tlist"}), "library/trainer.yaml"));
  REQUIRE(contains(tree.text({"meta"}), "searchdir"));
  REQUIRE(contains(tree.text({"index"}), "**second**"));
  REQUIRE(contains(tree.text({"graph", "first"}), "!singleton:models:Llama@model"));
  REQUIRE(contains(tree.text({"arguments", "first"}), "--width INT"));
  REQUIRE(contains(tree.text({"explain", "main.lr", "first"}), "library/trainer.yaml:11:9"));
  REQUIRE(contains(tree.text({"check"}), "nothing to mend"));
  const Outcome difference = tree.forge.call({"diff", "first", "second", "--json"});
  REQUIRE(difference.exit_code == 1);  // as diff's own
  REQUIRE(contains(json::parse(difference.out).dump(), "0.002"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"targets"},
                                             {"trefs"},
                                             {"tlist"},
                                             {"meta"},
                                             {"index"},
                                             {"graph"},
                                             {"arguments"},
                                             {"explain", "main"},
                                             {"check"}}) {
    INFO(command[0]);
    REQUIRE_FALSE(tree.values(command).empty());
  }
}

TEST_CASE("what is misspelt gets a near miss and the exit code of wrong usage") {
  const Tree tree;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"pp", "secnd"}, {"targets", "secnd"}, {"graph", "secnd"}, {"diff", "first", "secnd"}}) {
    const Outcome outcome = tree.forge.call(command);
    INFO(command[0]);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(contains(outcome.err, "did you mean 'second'"));
  }
  const Outcome show = tree.forge.call({"show", "first"});
  REQUIRE(show.exit_code == 2);
  REQUIRE(contains(show.err, "is a graph of Python objects"));
}

}  // namespace
}  // namespace forge::tests
