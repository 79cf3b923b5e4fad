#include "core/yaml/section_cache.h"

#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/yaml/sections.h"
#include "core/yaml/yaml.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::yaml {
namespace {

std::string dump(const Node& node) {
  std::string text = std::to_string(static_cast<int>(node.kind)) + "@" + node.origin.describe() +
                     " " + node.tag + "&" + node.anchor + (node.plain ? "p" : "q") + node.text;
  for (const NodePtr& item : node.items) text += "[" + dump(*item) + "]";
  for (const Entry& entry : node.entries) {
    text += "{" + entry.key + (entry.key_is_string ? "s" : "p") + entry.key_origin.describe() +
            ": " + dump(*entry.value);
    for (const NodePtr& value : entry.overridden) text += "<" + dump(*value) + ">";
    text += "}";
  }
  return text;
}

/// The document with all places, or the error's whole message.
std::string outcome(const std::string& text, SectionCache* sections) {
  auto source = std::make_shared<SourceText>();
  source->name = "x.yaml";
  source->text = text;
  const auto origin = [source](int line, int column) { return make_span(source, line, column); };
  try {
    return dump(*(sections ? parse(text, origin, *sections) : parse(text, origin)));
  } catch (const Error& error) {
    return describe(error);
  }
}

/// Whether the cache gives what a whole parse gives, first when it knows little, then all.
void check_same(const std::string& text, SectionCache& sections) {
  INFO(text);
  const std::string whole = outcome(text, nullptr);
  CHECK(outcome(text, &sections) == whole);
  CHECK(outcome(text, &sections) == whole);
}

TEST_CASE("a document is cut where keys begin in the first column") {
  const std::string text = "# head\n\na: 1\n  b\n\n# c\nd: |\n  x\n\n.e: 3\n- f\n\n";
  const auto cut = cut_sections(text);
  REQUIRE(cut);
  REQUIRE(cut->sections.size() == 3);
  CHECK(cut->sections[0].skeleton == "a: 0\n  b\n");
  CHECK(cut->sections[0].line == 2);
  CHECK(cut->sections[1].skeleton == "d: |\n  x\n\n");  // a block scalar keeps its end
  CHECK(cut->sections[2].skeleton == ".e: 0\n- f\n\n");
  CHECK(cut->sections[2].position == Section::Position::last);
  CHECK(!cut_sections("a: 1\n"));
  CHECK(!cut_sections("a: 1\n---\nb: 2\n"));
  CHECK(!cut_sections("%YAML 1.1\na: 1\nb: 2\n"));
  CHECK(!cut_sections("a: 1\n...\nb: 2\n"));
  CHECK(!cut_sections("a: 1\r\nb: 2\r\n"));
  CHECK(!cut_sections("- a\nb: 2\nc: 3\n"));
  CHECK(!cut_sections("  a: 1\nb: 2\nc: 3\n"));
  CHECK(!cut_sections("# only a comment\n"));
}

TEST_CASE("a skeleton leaves out values at the end of lines and what comments say") {
  const std::string text =
      "a: \"x y\"\nb: !t \"\"\n  # c\n  - \"z\"\nc: \"\\n\"\nd: 1.5e-3\n  - 2\n  e: True\n  f: x "
      "1\n"
      "g: 1 # \"e\"\nh: |\n  # i: 1\nj: \"g";
  const auto cut = cut_sections(text);
  REQUIRE(cut);
  std::string skeletons;
  for (const Section& section : cut->sections) skeletons += section.skeleton;
  CHECK(skeletons ==
        "a: \"\"\nb: !t \"\"\n  #@comment@\n  - \"\"\nc: \"\\n\"\nd: 0\n  - 0\n  e: 0\n  f: x 1\n"
        "g: 1 # \"e\"\nh: |\n  # i: 1\nj: \"g");
  CHECK(cut->sections[0].literals.at(0).text == "x y");
  CHECK(cut->sections[1].literals.at(1).text == "z");
  CHECK(cut->sections[1].literals.at(1).line == 2);
  CHECK(cut->sections[1].literals.at(1).column == 5);
  CHECK(cut->sections[3].literals.at(1).text == "2");
}

TEST_CASE("sections that differ in names, numbers and comments keep theirs") {
  SectionCache sections;
  check_same("a: \"x\"\nb: &b \"y\"\nc: 1\n", sections);
  check_same("a: \"longer # text\"\nb: &b \"\"\nc: 1\n", sections);
  check_same("a: \"*b: [\"\nb: &b \"{y\"\nc: \"&c\"", sections);
  check_same("a: 1\n  # one\nb: {c: 2}\nd: 2\n", sections);
  check_same("a: 2.5\n  # two\nb: {c: 2}\nd: 2020-01-01\n", sections);
  check_same("a: &x !call:f\n  b: 1\nc: !d\n  \"1\"\ne: !f\n", sections);
  check_same("a: &x !g:h/i@j\n  b: 2\nc: !0\n  \"2\"\ne: !!str\n", sections);
  check_same("a: &x !<g>\n  b: 2\nc: !\n  3\ne: !z\n", sections);
  check_same("a: 'x\n  y !z\n  '\nb: [!c\n  d, !e\n  ]\nf: x !g\n", sections);
  check_same("a: True\nb: 1\nd:\n", sections);
  check_same("a: \nb: 0\nd: \n", sections);
  check_same("a: 1\n  b\nd: 2\n", sections);                       // a longer plain text
  check_same("a: 'x\n  # y\n  b: 1'\nd: literal@0@\n", sections);  // in a text in single quotes
  check_same("a: \"x\n  # y\n  \"\nb: \"#@comment@\"\nc: #@comment@\n", sections);
  check_same("k: 'a\n  x: \"1\"\n  '\nb: 1\n", sections);  // in a text in single quotes
  check_same("k: a\n  x \"1\"\nb: 1\n", sections);         // in a plain one
  check_same("k: |\n  x: \"1\"\n  x: \"2\"\nb: 1\n", sections);
  check_same("k: \"a\n  x: \"\nb: \"1\"\nc: \"\n", sections);
  check_same("k: [ \"1\"\n, \"2\"\n]\nb: \"1\"\n", sections);
  check_same("k: ? \"1\"\n\"2\"\n: \"3\"\nb: \"\"\n", sections);
}

TEST_CASE("sections known from other documents give the nodes and places of a whole parse") {
  SectionCache sections;
  check_same("a: &a 1\nb: *a\n", sections);
  check_same("# moved\n\n\na: &a 1\nc: {x: *a}\nb: *a\n", sections);
  check_same("a: &a [1]\nb: *a\n", sections);     // the same alias of another anchor
  check_same("b: *a\na: &a 1\n", sections);       // before its anchor
  check_same("a: &a 1\nx: &a 2\n", sections);     // twice
  check_same("a: &a [*a]\nb: 1\n", sections);     // within itself
  check_same("k:\n\n# c\nb: 1\nk:\n", sections);  // values that are not there
  check_same("k:\nnull: 1\nb: 1\n", sections);
  check_same("k: !t\nb: 1\nk: &n\nc: *n\n", sections);
  check_same("m: &m\n  x: 1\nn:\n  <<: *m\n  x: 2\na: 1\na: 2\n", sections);
  check_same("? k\nb: 1\n", sections);
  check_same("k: v\n  w\n# c\n  x\nb: 1\n", sections);
}

TEST_CASE("lines that only look like keys are not taken for sections") {
  SectionCache sections;
  check_same("a: 1\nb: 2\n", sections);
  check_same("t: \"\na: 1\nb: 2\n\"\n", sections);
  check_same("t: '\na: 1\nb: '\nb: 2\n", sections);
  check_same("t: {\na: 1,\nb: 2\n}\n", sections);
  check_same("t: [\na: 1\nb: 2\n", sections);
  check_same("t: |\na: 1\nb: 2\n", sections);
  check_same("t: |+\n  x\n\n\na: 1\n", sections);
  check_same("t: >-\n  x\n\n# c\na: 1\n", sections);
  check_same("a\nb: 2\n", sections);
  check_same("a: 1\n b: 2\n", sections);
  check_same("a: 1\nb\n", sections);
  check_same("a #b\n, 1]\na: 1\n", sections);
}

TEST_CASE("every golden YAML text has the same nodes through the cache") {
  const auto cases =
      nlohmann::json::parse(read_file(tests::tests_dir() / "golden" / "yaml_cases.json"))["cases"];
  SectionCache sections;
  for (const auto& golden : cases) {
    const std::string text = golden[0];
    check_same(text, sections);
    check_same("before: 1\n" + text, sections);
    check_same(text + "\nbehind: 1\n", sections);
    check_same("k: " + text + "\nbehind: 1\n", sections);
  }
}

TEST_CASE("documents put together at random have the same nodes through the cache") {
  static const char* const lines[] = {"a: 1",
                                      "b: &x 2",
                                      "c: *x",
                                      ".d: &y {e: f}",
                                      "g: *y",
                                      "h:",
                                      "  i: 1",
                                      "  - j",
                                      "- k",
                                      "# comment",
                                      "",
                                      "  # inner",
                                      "l: |",
                                      "  text",
                                      "    more",
                                      "m: 'q",
                                      "n'",
                                      "o: \"r",
                                      "p\"",
                                      "q: [1,",
                                      "2]",
                                      "r: {s: 1,",
                                      "t: 2}",
                                      "? u",
                                      ": v",
                                      "w: !call:f",
                                      "  <<: *y",
                                      "x: >-",
                                      "y: !!int z",
                                      "z: 'it''s'",
                                      "plain",
                                      "  folded",
                                      "null:",
                                      "~: 1",
                                      "&z aa: 1",
                                      "bb: *z",
                                      "cc: [*x, *y]",
                                      "dd: \"1\"",
                                      "  ee: \"2 #\"",
                                      "  - \"\"",
                                      "ff: 12",
                                      "ff: 3.5",
                                      "  gg: 7",
                                      "  - 8",
                                      "hh: True",
                                      "ii: !t",
                                      "jj: &j !u:v",
                                      "  - !w",
                                      ", 1]",
                                      "  dd: *x",
                                      "\tee: 1",
                                      "ff: 2020-01-01"};
  const auto seed = GENERATE(1u, 2u, 3u);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  SectionCache sections;
  for (int document = 0; document < 3000; ++document) {
    std::string text;
    for (size_t count = 1 + random() % 8; count > 0; --count) {
      text += lines[random() % std::size(lines)];
      if (count > 1 || random() % 4 > 0) text += "\n";
    }
    check_same(text, sections);
  }
}

}  // namespace
}  // namespace forge::yaml
