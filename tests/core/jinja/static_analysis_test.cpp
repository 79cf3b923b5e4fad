#include "core/jinja/static_analysis.h"

#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using jinja::Reference;
using jinja::TemplateAnalysis;
using jinja::VariableWrite;

std::vector<TemplateAnalysis> surveyed(const std::string& text) {
  const TemporaryFolder folder;
  return jinja::analyze_template(jinja::read_template_file(folder.write("main.yaml", text)));
}

/// "kind name|name at line:column" of each reference, "?" for what may not take place.
std::vector<std::string> references(const TemplateAnalysis& part) {
  std::vector<std::string> list;
  for (const Reference& reference : part.references) {
    const std::string names =
        reference.is_expression() ? "an expression" : join(reference.names, "|");
    list.push_back(std::string(name_of(reference.kind)) + " " + names +
                   (reference.is_conditional ? "? at " : " at ") +
                   std::to_string(reference.span.line) + ":" +
                   std::to_string(reference.span.column));
  }
  return list;
}

std::vector<std::string> written(const TemplateAnalysis& part) {
  std::vector<std::string> list;
  for (const VariableWrite& write : part.writes) list.push_back(write.path);
  return list;
}

/// Paths that are read; those that may be undefined with a "?".
std::vector<std::string> read(const TemplateAnalysis& part) {
  std::vector<std::string> list;
  for (const auto& read : part.reads) list.push_back(read.path + (read.is_optional ? "?" : ""));
  return list;
}

using Names = std::vector<std::string>;

TEST_CASE("a template's analysis lists what a template refers to with places in the file") {
  const auto parts = surveyed(
      "-- extends 'base.yaml'\n"
      "## comment\n"
      "-- include 'a' ignore missing\n"
      "-- from 'f' import h1, h2 as heading\n"
      "-- import 'm' as m\n"
      "-- include ['x', 'y']\n"
      "-- include ns.name\n"
      "-- if debug\n"
      "-- include 'd'\n"
      "-- endif\n");
  REQUIRE(parts.size() == 1);
  CHECK(references(parts[0]) == Names{"extends base.yaml at 1:4",
                                      "include a at 3:4",
                                      "from f at 4:4",
                                      "import m at 5:4",
                                      "include x|y at 6:4",
                                      "include an expression at 7:4",
                                      "include d? at 9:4"});
  CHECK(parts[0].references[1].ignores_missing);
  REQUIRE(parts[0].parent());
  CHECK(parts[0].parent()->names == Names{"base.yaml"});
  CHECK(written(parts[0]) == Names{"h1", "heading", "m"});
}

TEST_CASE("an inline if between two names gives both and anything else is an expression") {
  const auto parts = surveyed(
      "-- extends 'a' if x else 'b'\n"
      "-- include 'a' if x\n"
      "-- include 'a' + x\n");
  CHECK(references(parts[0]) == Names{"extends a|b at 1:4",
                                      "include an expression at 2:4",
                                      "include an expression at 3:4"});
}

TEST_CASE(
    "a template's analysis knows each block and the block around it and whether it must be "
    "filled") {
  const auto parts = surveyed(
      "[outer]\n"
      "== super()\n"
      "    [inner]\n"
      "[next]\n"
      "{% block must required %}{% endblock %}\n");
  const auto& blocks = parts[0].blocks;
  REQUIRE(blocks.size() == 4);
  CHECK(blocks[0].name == "outer");
  CHECK(blocks[0].uses_super);
  CHECK(blocks[0].span.line == 1);
  CHECK(blocks[1].name == "inner");
  CHECK(blocks[1].enclosing == "outer");
  CHECK(blocks[1].span.line == 3);
  CHECK(blocks[2].name == "next");
  CHECK(blocks[2].enclosing.empty());
  CHECK(blocks[3].enclosing == "next");
  CHECK(blocks[3].required);
}

TEST_CASE("each inline template is a part of its own and knows its marker") {
  const auto parts = surveyed(
      "-- include 'b.c'\n"
      "\n"
      "#  ---- b.c ----\n"
      "-- extends 'd'\n"
      "[k]\n"
      "#---\n"
      "spread\n"
      "---\n"
      "x\n");
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].inline_name.empty());
  CHECK_FALSE(parts[0].marker);
  CHECK(parts[1].inline_name == "b.c");
  CHECK(parts[1].marker.line == 3);
  CHECK(parts[1].marker.column == 9);
  CHECK(parts[1].marker.line_text() == "#  ---- b.c ----");
  CHECK(references(parts[1]) == Names{"extends d at 4:4"});
  CHECK(parts[1].blocks.at(0).span.line == 5);
  CHECK(parts[2].marker.line == 7);
  CHECK(parts[2].marker.line_text() == "spread");
}

TEST_CASE("a template's analysis lists what is set by its path") {
  const auto parts = surveyed(
      "-- set ns = namespace(a=1)\n"
      "-- set ns.b = 2\n"
      "-- set c\n"
      "text\n"
      "-- endset\n"
      "-- for k, v in [(1, 2)]\n"
      "-- endfor\n"
      "-- with w = 1\n"
      "-- endwith\n"
      "-- macro m(p, q=1)\n"
      "-- endmacro\n");
  CHECK(written(parts[0]) == Names{"ns", "ns.a", "ns.b", "c", "k", "v", "w", "m", "p", "q"});
  CHECK(parts[0].writes[0].makes_namespace);
  CHECK_FALSE(parts[0].writes[2].makes_namespace);
  CHECK(parts[0].writes[2].span.line == 2);
  CHECK(parts[0].writes[2].span.column == 8);
  CHECK(parts[0].writes[7].kind == VariableWrite::Kind::macro);
  CHECK(parts[0].writes[7].span.line == 10);
}

TEST_CASE("default and toyaml with a value and is defined make a read harmless") {
  CHECK(read(surveyed("{{ x }}")[0]) == Names{"x"});
  CHECK(read(surveyed("{{ x | default(1) }}")[0]) == Names{"x?"});
  CHECK(read(surveyed("{{ x | d(y) }}")[0]) == Names{"x?", "y"});
  CHECK(read(surveyed("{{ x | toyaml(1) }}")[0]) == Names{"x?"});
  CHECK(read(surveyed("{{ x | toyaml }}")[0]) == Names{"x"});
  CHECK(read(surveyed("{{ x | trim | default(1) }}")[0]) == Names{"x"});
  CHECK(read(surveyed("{{ ns.x | default(1) }}")[0]) == Names{"ns.x?", "ns"});
  CHECK(read(surveyed("{{ ns['x'] | default(1) }}")[0]) == Names{"ns.x?", "ns"});
  CHECK(read(surveyed("{{ ns.x.y | default(1) }}")[0]) == Names{"ns.x", "ns"});
  CHECK(read(surveyed("{{ (x + 1) | default(1) }}")[0]) == Names{"x"});
}

TEST_CASE("below a test whether it is defined a read is harmless") {
  CHECK(
      read(surveyed("{% if x is defined and y %}{{ x }}{{ y }}{% else %}{{ x }}{% endif %}")[0]) ==
      Names{"x?", "y", "x?", "y", "x"});
  CHECK(read(surveyed("{{ x if x is defined else y }}")[0]) == Names{"x?", "x?", "y"});
  CHECK(read(surveyed("{% if x is defined and x > 1 %}{% endif %}")[0]) == Names{"x?", "x?"});
  CHECK(read(surveyed("{% if x is defined or x > 1 %}{% endif %}")[0]) == Names{"x?", "x"});
}

TEST_CASE("a part with a syntax error says so and leaves the others alone") {
  const auto parts = surveyed("-- if\n\n#--- good ---\n[b]\n");
  REQUIRE(parts.size() == 2);
  REQUIRE(parts[0].problem);
  CHECK(parts[0].problem->where().line == 1);
  CHECK_FALSE(parts[1].problem);
  CHECK(parts[1].blocks.size() == 1);
}

TEST_CASE("a template's analysis knows which block and which condition a line stands in") {
  const auto part = surveyed(
      "before\n"
      "[outer]\n"
      "a\n"
      "    [inner]\n"
      "b\n"
      "-- if x\n"
      "c\n"
      "-- endif\n"
      "d\n"
      "{% block last %}e{% endblock %}\n"
      "f\n")[0];
  const auto block_at = [&](int line) {
    const auto* block = part.block_at(line);
    return block ? block->name : "";
  };
  CHECK(block_at(1).empty());
  CHECK(block_at(3) == "outer");
  CHECK(block_at(5) == "inner");
  CHECK(block_at(10) == "last");
  CHECK(block_at(11) == "inner");
  CHECK(part.is_conditional(7));
  CHECK_FALSE(part.is_conditional(5));
  CHECK_FALSE(part.is_conditional(9));
}

}  // namespace
}  // namespace forge::tests
