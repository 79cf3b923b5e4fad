#include "core/inspect/template_tree.h"

#include <nlohmann/json.hpp>

#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::inspect {
namespace {

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

}  // namespace
}  // namespace forge::inspect
