#include "core/config/tree.h"

#include "core/yaml/parse.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

yaml::NodePtr parse(const std::string& text) {
  return yaml::parse(text, [](int line, int column) {
    return make_span(std::make_shared<SourceText>(), line, column);
  });
}

/// The tree in flow style, mappings in their order.
std::string flow(const yaml::Node& node) {
  if (!node.is_mapping()) return short_text(node);
  std::string text;
  for (const yaml::Entry& entry : node.entries) {
    text += (text.empty() ? "" : ", ") + entry.key + ": " + flow(*entry.value);
  }
  return "{" + text + "}";
}

TEST_CASE("a dotted path becomes nested mappings with a place for each part") {
  const SourceSpan start = make_span(std::make_shared<SourceText>(), 3, 7);
  const yaml::NodePtr tree = nest("model.canon.set", start, parse("AC"));
  REQUIRE(flow(*tree) == "{model: {canon: {set: AC}}}");
  const yaml::Entry* canon = tree->find("model")->find_entry("canon");
  REQUIRE(canon->key_origin.column == 7 + 6);
  REQUIRE(canon->value->find_entry("set")->key_origin.column == 7 + 12);
}

TEST_CASE("merging replaces leaves and lists and keeps the rest in order") {
  const yaml::NodePtr merged =
      merge(parse("a: 1\nb: {c: 2, d: [1, 2]}\n"), parse("b: {d: [3], e: 4}\na: {x: 1}\nf: 5\n"));
  REQUIRE(flow(*merged) == "{a: {x: 1}, b: {c: 2, d: [3], e: 4}, f: 5}");
}

TEST_CASE("merging keeps what was replaced nearest first") {
  const yaml::NodePtr merged = merge(merge(parse("a: 1\n"), parse("a: 2\n")), parse("a: 3\n"));
  const yaml::Entry* a = merged->find_entry("a");
  REQUIRE(a->value->text == "3");
  REQUIRE(a->overridden.size() == 2);
  REQUIRE(a->overridden[0]->text == "2");
  REQUIRE(a->overridden[1]->text == "1");
}

TEST_CASE("a value is shown on one short line") {
  REQUIRE(short_text(*parse("[0.9, 0.999]")) == "[0.9, 0.999]");
  REQUIRE(short_text(*parse("[1, {a: b}]")) == "[1, a mapping]");
  REQUIRE(short_text(*parse("[1,2,3,4,5,6,7,8,9,10]")) == "[1, 2, 3, 4, 5, 6, 7, 8, …]");
  REQUIRE(short_text(*parse("~")) == "null");
}

}  // namespace
}  // namespace forge::config
