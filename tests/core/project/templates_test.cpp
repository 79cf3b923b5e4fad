#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/project/origins.h"
#include "core/project/project_page.h"
#include "core/project/templates.h"
#include "tests/core/jinja/templates.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::project {
namespace {

using tests::Templates;

Templates family() {
  return Templates({{"main",
                     "-- extends 'base'\n[body]\n  lr: {{ 0.1 }}\n== super()\n-- include 'part'\n"
                     "\n#--- part ---\ninlined: 1\n"},
                    {"base", "head: 1\n-- block body\nbelow: 2\n-- endblock\n\ntail: 3\n"}});
}

TEST_CASE("each line has the origin of what it begins with") {
  Templates templates = family();
  const auto lines = annotate(templates.rendered(), templates.folder().path());
  std::vector<std::string> shown;
  for (const AnnotatedLine& line : lines) shown.push_back(line.text + "|" + line.place);
  CHECK(shown == std::vector<std::string>{"head: 1|base:1",
                                          "  lr: 0.1|main:3",
                                          "below: 2|base:3",
                                          "|",
                                          "inlined: 1|main:8 (inline part)",
                                          "tail: 3|base:6"});
}

TEST_CASE("as JSON each stretch of a line has its place and the way there") {
  Templates templates = family();
  const auto lines = lines_to_json(templates.rendered());
  REQUIRE(lines.size() == 6);
  CHECK(lines[1]["text"] == "  lr: 0.1");
  CHECK(lines[1]["line"] == 2);
  REQUIRE(lines[1]["origins"].size() == 2);
  CHECK(lines[1]["origins"][0]["at"] == 1);
  CHECK(lines[1]["origins"][1]["at"] == 7);
  CHECK(lines[1]["origins"][1]["line"] == 3);
  CHECK(lines[0]["origins"][0]["via"][0]["line"] == 1);
  CHECK(lines[3]["origins"].empty());
  CHECK(lines[4]["origins"][0]["inline"] == "part");
  CHECK(lines[4]["origins"][0]["via"][0]["line"] == 5);
}

TEST_CASE("an unknown place is null and has no line") {
  CHECK(to_json(SourceSpan{}) == nullptr);
  CHECK(line_of(SourceSpan{}, "/") == "");
}

using tests::contains;
using tests::Templates;

std::vector<TreeTemplate> tree() {
  Templates templates({{"configs/main.yaml",
                        "-- extends 'mid.yaml'\n-- block b\n-- include 'part'\n-- endblock\n"
                        "#--- part ---\n-- extends 'tail.yaml'\n"},
                       {"mid.yaml", "-- extends 'base.yaml'\n"},
                       {"base.yaml", "-- include 'head.yaml'\n\n-- block b\n-- endblock\n"},
                       {"head.yaml", "-- from 'macros' import m\n"},
                       {"macros", "-- macro m()\n-- endmacro\n"},
                       {"tail.yaml", "x: 1\n"}});
  return template_tree(templates.rendered("configs/main.yaml").templates,
                       templates.folder().path());
}

TEST_CASE("templates stand below the one that asked for them") {
  CHECK(tree_as_text(tree()) ==
        "configs/main.yaml              configs/main.yaml\n"
        "├── extends mid.yaml           mid.yaml\n"
        "│   └── extends base.yaml      base.yaml\n"
        "│       └── include head.yaml  head.yaml\n"
        "│           └── import macros  macros\n"
        "└── include part               configs/main.yaml:6 (inline)\n"
        "    └── extends tail.yaml      tail.yaml\n");
}

TEST_CASE("files are repeated for inline templates") {
  CHECK(
      tree_as_files(tree()) ==
      "configs/main.yaml\nmid.yaml\nbase.yaml\nhead.yaml\nmacros\nconfigs/main.yaml\ntail.yaml\n");
}

TEST_CASE("files are named from where one stands") {
  Templates templates({{"a", "-- include 'b'\n"}, {"b", "1"}});
  const auto loaded = templates.rendered("a").templates;
  CHECK(template_tree(loaded, templates.folder() / "sub")[1].file == "../b");
}

TEST_CASE("the tree has other notations") {
  const std::string markdown = tree_as_markdown(tree());
  CHECK(contains(markdown, "- [configs/main.yaml](configs/main.yaml)\n"));
  CHECK(contains(markdown, "        - extends [base.yaml](base.yaml)\n"));
  CHECK(contains(markdown, "    - include [part](configs/main.yaml), inline at line 6\n"));
  const std::string dot = tree_as_dot(tree());
  CHECK(contains(dot, "t0 -> t1 [label=\"extends\"];"));
  CHECK(contains(dot, "t5 -> t6 [label=\"extends\"];"));
  CHECK(contains(dot, "t5 [label=\"part\\nconfigs/main.yaml:6 (inline)\"];"));
  const auto json = to_json(tree());
  REQUIRE(json.size() == 7);
  CHECK(json[5]["inline"] == "part");
  CHECK(json[6]["loaded_by"] == "part");
  CHECK(json[6]["level"] == 2);
  CHECK(tree_as_text({}) == "");
  CHECK(contains(tree_as_dot({}), "digraph"));
}

class ListFixture {
 public:
  ListFixture() {
    folder.write("own/configs/a.yaml",
                 "-- extends 'base.yaml'\nx\n#--- a.part ---\n-- extends 'tail.jinja'\n");
    folder.write("own/configs/b.yaml", "-- extends ns.name\n");
    folder.write("own/shared.yaml", "1");
    folder.write("own/.hidden/c.yaml", "1");
    folder.write("own/notes.md", "1");
    folder.write("library/base.yaml", "-- include 'shared.yaml'\n");
    folder.write("library/shared.yaml", "2");
    folder.write("library/tail.jinja", "-- extends 'missing.yaml'\n");
    folder.write("library/wrong.yaml", "-- endblock\n");
    folder.write("library/round.yaml", "-- extends 'round_too.yaml'\n");
    folder.write("library/round_too.yaml", "-- extends 'round.yaml'\n");
    templates = list_templates({folder / "own", folder / "nowhere", folder / "library"});
  }

  tests::TemporaryFolder folder;
  std::vector<ListedTemplate> templates;
};

TEST_CASE("every template file on the search path is listed once") {
  const ListFixture fixture;
  CHECK(list_as_files(fixture.templates, fixture.folder.path()) ==
        "own/configs/a.yaml\nown/configs/b.yaml\nown/shared.yaml\nlibrary/base.yaml\n"
        "library/round.yaml\nlibrary/round_too.yaml\nlibrary/shared.yaml\nlibrary/tail.jinja\n"
        "library/wrong.yaml\n");
}

TEST_CASE("in Markdown a template stands below what its text extends") {
  const ListFixture fixture;
  const std::string text = list_as_markdown(fixture.templates, fixture.folder.path());
  const std::string problem = fixture.templates.back().problem->message();
  CHECK(text ==
        "- [configs/b.yaml](own/configs/b.yaml) (extends what an expression names)\n"
        "- [shared.yaml](own/shared.yaml)\n"
        "- [base.yaml](library/base.yaml)\n"
        "    - [configs/a.yaml](own/configs/a.yaml)\n"
        "- [shared.yaml](library/shared.yaml) (shadowed by a folder before)\n"
        "- [tail.jinja](library/tail.jinja) (extends missing.yaml)\n"
        "    - [a.part](own/configs/a.yaml) (inline at line 4)\n"
        "- [wrong.yaml](library/wrong.yaml) (broken: " +
            problem +
            ")\n"
            "- [round.yaml](library/round.yaml) (extends round_too.yaml)\n"
            "    - [round_too.yaml](library/round_too.yaml)\n");
}

TEST_CASE("as JSON each template says what it is") {
  const ListFixture fixture;
  const auto json = to_json(fixture.templates);
  REQUIRE(json.size() == 10);
  CHECK(json[0]["extends"] == "base.yaml");
  CHECK(json[1]["inline"] == true);
  CHECK(json[1]["name"] == "a.part");
  CHECK(json[2]["dynamic"] == true);
  CHECK(json[9].contains("problem"));
}

using tests::contains;

class PageFixture {
 public:
  PageFixture() {
    files.folder.write("forge_workspace/meta_defaults.yaml",
                       "name: Demo\ndescription: What it shows\nsearchdir:\n"
                       "  - {{ project_dir }}/templates\n  - {{ project_dir }}/nowhere\n"
                       "typo: 1\n");
    files.add_project("p", "-- extends 'meta_defaults.yaml'\n");
    files.folder.write("projects/p/README.md",
                       "# A title\n\nWhat it is about.\n\nMore.\n\n## Section\n\nNot this.\n");
    files.add_config("p", "a", "name: First\ndescription: Of all\ntrain: {}\n");
    files.add_config("p",
                     "b",
                     "meta: {config_name: Second}\n"
                     "dynamic_args: [{names: --max-steps, type: int, help: How many}]\n");
    files.add_config("p", "broken", "x: {{ nothing }}\n");
    files.add_config("p", "wrong_graph", "x: !cal:f []\n");
  }

  MetaPage meta() const {
    return meta_page(files.project("p"), files.workspace(), tests::fixed_surroundings());
  }
  ProjectPage index() const {
    return project_page(files.project("p"), files.workspace(), tests::fixed_surroundings());
  }

  tests::TemporaryWorkspace files;
};

TEST_CASE("the page on meta.yaml has its keys, its templates and the search path") {
  const PageFixture fixture;
  const std::string page = to_markdown(fixture.meta(), fixture.files.folder.path());
  CHECK(contains(page, "# Demo\n\nFolder: projects/p\n"));
  CHECK(contains(page, "```yaml\nname: Demo\ndescription: What it shows\n"));
  CHECK(contains(page, "- [meta.yaml](meta.yaml)\n    - extends [meta_defaults.yaml]"));
  CHECK(contains(page, "- projects/p/templates\n- projects/p/nowhere (does not exist)\n"));
  const auto json = to_json(fixture.meta());
  CHECK(json["keys"]["name"] == "Demo");
  CHECK(json["unknown_keys"][0]["key"] == "typo");
  CHECK(json["search_path"][0]["exists"] == true);
  CHECK(json["search_path"][1]["exists"] == false);
  CHECK(json["templates"][1]["name"] == "meta_defaults.yaml");
}

TEST_CASE("the index shows names and descriptions of others as they stand") {
  PageFixture fixture;
  fixture.files.add_project("q",
                            "name: '<script>x</script>'\ndescription: '![i](http://x/y.png)'\n"
                            "searchdir: ['{{ project_dir }}/templates']\nnote: \"```\\n<b>\"\n");
  fixture.files.folder.write("projects/q/README.md",
                             "# T\n\n<img src=x> `a` ![i](http://x/z.png)\n\x1b[38;5;0mhidden\n");
  fixture.files.add_config("q", "a", "name: '[y](javascript:z)'\ndescription: '</script>'\n");
  const fs::path here = fixture.files.folder.path();
  const Project project = fixture.files.project("q");
  const Workspace workspace = fixture.files.workspace();
  const std::string text =
      to_markdown(project_page(project, workspace, tests::fixed_surroundings()), here);
  CHECK(contains(text, "# \\<script\\>x\\</script\\>\n\n\\!\\[i\\](http://x/y.png)\n"));
  CHECK(contains(text, "\n&lt;img src=x> `a` \\![i](http://x/z.png)\n[38;5;0mhidden\n"));
  CHECK(contains(text, "- **a**"));
  CHECK(contains(text, ": \\[y\\](javascript:z). \\</script\\>\n"));
  const std::string meta =
      to_markdown(meta_page(project, workspace, tests::fixed_surroundings()), here);
  CHECK(contains(meta, "````yaml\n"));
}

TEST_CASE("the index has the README's beginning and every config with its arguments") {
  const PageFixture fixture;
  const ProjectPage page = fixture.index();
  CHECK_FALSE(page.all_configs_valid());
  const std::string text = to_markdown(page, fixture.files.folder.path());
  CHECK(contains(text, "# Demo\n\nWhat it shows\n\nWhat it is about.\n\nMore.\n\nFolder: "));
  CHECK_FALSE(contains(text, "Not this"));
  CHECK(contains(text, "- **a** (default): First. Of all\n"));
  CHECK(contains(text, "- **b**: Second\n    - `--max-steps INT` How many\n"));
  CHECK(contains(text, "- **broken**: broken: "));
  CHECK(contains(text, "broken.yaml:1:7: 'nothing' is undefined"));
  CHECK(contains(text, "unknown tag '!cal:f'"));
  const auto json = to_json(page);
  CHECK(json["default_config"] == "a");
  CHECK(json["configs"][0]["trains"] == true);
  CHECK(json["configs"][1]["arguments"][0]["usage"] == "--max-steps INT");
  CHECK(json["configs"][2].contains("problem"));
}

}  // namespace
}  // namespace forge::project
