#include "core/yaml/yaml.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::yaml {
namespace {

using nlohmann::json;

NodePtr parse_text(const std::string& text) {
  auto source = std::make_shared<SourceText>();
  source->name = "config.yaml";
  source->text = text;
  const auto origin = [source](int line, int column) { return make_span(source, line, column); };
  return parse(text, origin);
}

std::string parse_error(const std::string& text) {
  return tests::error_of([&] { parse_text(text); });
}

/// A node in the notation of the golden file.
json to_json(const Node& node) {
  json value;
  switch (node.kind) {
    case Node::Kind::null: break;
    case Node::Kind::boolean: value = node.boolean; break;
    case Node::Kind::integer: value = {{"i", node.integer}}; break;
    case Node::Kind::real: value = {{"f", shortest(node.real)}}; break;
    case Node::Kind::string: value = node.text; break;
    case Node::Kind::sequence:
      value = json::array();
      for (const NodePtr& item : node.items) value.push_back(to_json(*item));
      break;
    case Node::Kind::mapping: {
      json entries = json::array();
      for (const Entry& entry : node.entries) {
        entries.push_back({entry.key, entry.key_is_string, to_json(*entry.value)});
      }
      value = {{"m", entries}};
      break;
    }
  }
  if (!node.tag.empty()) value = {{"t", node.tag}, {"v", value}};
  return value;
}

TEST_CASE("every golden YAML text is read as by PyYAML") {
  const json cases =
      json::parse(read_file(tests::tests_dir() / "golden" / "yaml_cases.json"))["cases"];
  REQUIRE(cases.size() >= 870);
  for (const auto& golden : cases) {
    const std::string text = golden[0];
    INFO(text);
    if (golden[1].is_null()) {
      CHECK(parse_error(text) != "");
    } else {
      CHECK(to_json(*parse_text(text)) == golden[1]["value"]);
    }
  }
}

TEST_CASE("a mapping keeps the order of its keys and the origin of keys and values") {
  const NodePtr root = parse_text("model:\n  hidden_size: 256\n  name: tiny\n");
  const Node* model = root->find("model");
  REQUIRE(model->is_mapping());
  CHECK(model->entries[0].key == "hidden_size");
  CHECK(model->entries[0].key_origin.describe() == "config.yaml:2:3");
  CHECK(model->entries[0].value->origin.describe() == "config.yaml:2:16");
  CHECK(model->find("hidden_size")->integer == 256);
  CHECK(model->find("name")->text == "tiny");
  CHECK(model->find("nope") == nullptr);
}

TEST_CASE("numbers need a dot and a signed exponent and keep their text") {
  const NodePtr root = parse_text("[1e-3, 1.0e-3, 010, 1_000, 1:30, '1', yes]");
  CHECK(root->items[0]->kind == Node::Kind::string);
  CHECK(root->items[0]->plain);
  CHECK(root->items[1]->real == 0.001);
  CHECK(root->items[1]->text == "1.0e-3");
  CHECK(root->items[2]->integer == 8);
  CHECK(root->items[3]->integer == 1000);
  CHECK(root->items[4]->integer == 90);
  CHECK_FALSE(root->items[5]->plain);
  CHECK(root->items[6]->boolean);
}

TEST_CASE("a repeated key takes the last value at the first place and remembers the others") {
  const NodePtr root = parse_text("lr: 1\nsteps: 5\nlr: 2\nlr: 3\n");
  REQUIRE(root->entries.size() == 2);
  const Entry& lr = root->entries[0];
  CHECK(lr.value->integer == 3);
  CHECK(lr.key_origin.describe() == "config.yaml:4:1");
  REQUIRE(lr.overridden.size() == 2);
  CHECK(lr.overridden[0]->integer == 2);
  CHECK(lr.overridden[1]->origin.describe() == "config.yaml:1:5");
  CHECK(root->entries[1].key == "steps");
}

TEST_CASE("merged entries come first and yield to the mapping's own") {
  const NodePtr root = parse_text(
      "base: &base !call:m:f {a: 1, b: 2}\nother: &other {b: 7, c: 8}\n"
      "one: {b: 3, <<: *base}\nlist: {<<: [*base, *other], d: 9}\n");
  const Node* one = root->find("one");
  CHECK(one->tag == "");
  CHECK(one->entries[0].key == "a");
  CHECK(one->find("b")->integer == 3);
  CHECK(one->find_entry("b")->overridden[0]->integer == 2);
  const Node* list = root->find("list");
  CHECK(list->find("b")->integer == 2);  // the first mapping wins
  CHECK(list->find("c")->integer == 8);
  CHECK(parse_error("a: {<<: 5}").find("'<<' merges mappings, but this is the number 5") !=
        std::string::npos);
}

TEST_CASE("an alias and its anchor are one node") {
  const NodePtr root = parse_text("a: &x {k: 1}\nb: *x\nc: [*x]\n");
  CHECK(root->find("a") == root->find("b"));
  CHECK(root->find("c")->items[0].get() == root->find("a"));
  CHECK(root->find("a")->anchor == "x");
}

TEST_CASE("names at the root that begin with a dot only hold anchors") {
  const NodePtr root = parse_text(".define: &x 1\n.define: &y 2\nmain: {.inner: *x, k: *y}\n");
  REQUIRE(root->entries.size() == 1);
  CHECK(root->find("main")->find(".inner")->integer == 1);
  CHECK(root->find("main")->find("k")->integer == 2);
}

TEST_CASE("tags stay as they were written") {
  const NodePtr root = parse_text(
      "a: !call:torch.optim:AdamW@opt {lr: 1.0e-3}\nb: !dlist {x: 1}\nc: !var \"name\"\n"
      "d: !tuple [1]\ne: !factory:m:f\nf: !!str 5\n");
  CHECK(root->find("a")->tag == "!call:torch.optim:AdamW@opt");
  CHECK(root->find("a")->find("lr")->real == 0.001);
  CHECK(root->find("b")->tag == "!dlist");
  CHECK(root->find("c")->text == "name");
  CHECK(root->find("d")->is_sequence());
  CHECK(root->find("e")->is_null());
  CHECK(root->find("f")->text == "5");
  CHECK(root->find("f")->tag == "");
}

TEST_CASE("nulls keep how they were written and missing ones have their key's origin") {
  const NodePtr root = parse_text("a: ~\nb:\nc: null\n~: x\n");
  CHECK(root->find("a")->text == "~");
  CHECK(root->find("b")->is_null());
  CHECK(root->find("b")->origin.describe() == "config.yaml:2:1");
  CHECK(root->find("c")->text == "null");
  CHECK(root->entries[3].key == "~");
  CHECK_FALSE(root->entries[3].key_is_string);
}

TEST_CASE("an empty text is null") {
  CHECK(parse_text("")->is_null());
  CHECK(parse_text("# only a comment\n")->is_null());
}

TEST_CASE("errors show the line and say what is wrong") {
  CHECK(parse_error("a: 1\nb: [1, 2\n").find("config.yaml:") == 0);
  CHECK(parse_error("a: &x 1\nb: &x 2\n")
            .find("config.yaml:2:4: error: the anchor '&x' is defined twice") == 0);
  CHECK(parse_error("a: &a [*a]").find("inside the node that it names") != std::string::npos);
  CHECK(parse_error("a: *nope") != "");
  CHECK(parse_error("d: 2001-01-01").find("is a date in YAML 1.1") != std::string::npos);
  CHECK(parse_error("n: 9223372036854775808").find("does not fit 64 bits") != std::string::npos);
  CHECK(parse_error("? [a]\n: b").find("a key must be a scalar") != std::string::npos);
  CHECK(parse_error("a: 1\n---\nb: 2").find("only one document") != std::string::npos);
  CHECK(parse_error("a:\n\tb: 1").find("config.yaml:2:1: error: a tab cannot indent YAML") == 0);
  CHECK(parse_error("[a,,b]").find("an item is missing") != std::string::npos);
  CHECK(parse_error("a: \x01").find("control character 1") != std::string::npos);
}

TEST_CASE("malicious YAML is refused before it costs memory or stack") {
  CHECK(parse_error(std::string(100000, '[')) != "");
  CHECK(parse_error(std::string(100000, '{')) != "");
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(parse_error(deep).find("nested more than 200 deep") != std::string::npos);
  std::string laughs = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  std::string merges = "m0: &m0 {k: 1}\n";
  for (int i = 1; i < 12; ++i) {
    const std::string name = std::to_string(i), before = std::to_string(i - 1);
    laughs += "a" + name + ": &a" + name + " [";
    for (int k = 0; k < 10; ++k) laughs += (k > 0 ? ", *a" : "*a") + before;
    laughs += "]\n";
  }
  CHECK(parse_error(laughs).find("expand to more than a million nodes") != std::string::npos);
  for (int i = 1; i < 60; ++i) {
    const std::string name = std::to_string(i), before = std::to_string(i - 1);
    merges += "m" + name + ": &m" + name + " {<<: [*m" + before + ", *m" + before + "], k: 1}\n";
  }
  CHECK(parse_error(merges) != "");
}

TEST_CASE("a file is read with its own lines as origins") {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("table.yaml", "rows:\n  - config: a\n");
  const NodePtr root = parse_file(path.string());
  const std::string place = root->find("rows")->items[0]->find("config")->origin.describe();
  CHECK(ends_with(place, "table.yaml:2:13"));
  CHECK(tests::error_of([&] { parse_file((folder / "nope.yaml").string()); }).find("nope.yaml") !=
        std::string::npos);
}

TEST_CASE("a repeated key is told from one that was merged") {
  const NodePtr root = parse_text(
      "base: &base {a: 1, b: 1, c: 1}\n"
      "args:\n  <<: *base\n  a: 2\n  a: 3\n  b: 2\n  d: 1\n  d: 2\n");
  const Node& args = *root->find("args");
  CHECK(args.find_entry("a")->overridden.size() == 2);
  CHECK(args.find_entry("a")->repeats == 1);
  CHECK(args.find_entry("b")->overridden.size() == 1);
  CHECK(args.find_entry("b")->repeats == 0);
  CHECK(args.find_entry("c")->repeats == 0);
  CHECK(args.find_entry("d")->repeats == 1);
}

TEST_CASE("keys are the same by their value as in Python") {
  const NodePtr root = parse_text("1: a\n1.0: b\nyes: c\n'1': d\nnull: e\n~: f\n0x10: g\n16: h\n");
  REQUIRE(root->entries.size() == 4);
  CHECK(root->entries[0].value->text == "c");
  CHECK(root->entries[1].value->text == "d");
  CHECK(root->entries[2].value->text == "f");
  CHECK(root->entries[3].value->text == "h");
}

TEST_CASE("a tab is refused wherever it is no part of a quoted or block scalar or a comment") {
  for (const char* text :
       {"a:\t1", "- \ta", "a: 1\t# c", "a: 1\t", "a: x\ty", "a:\n\tb: 1", "\t", "{a:\t1}"}) {
    INFO(text);
    CHECK(parse_error(text).find("a tab cannot") != std::string::npos);
  }
  CHECK(parse_error("a: 1\nb: x\ty").find("config.yaml:2:5: ") != std::string::npos);
  const NodePtr root = parse_text(
      "a: 'x\ty' # c\td\nb: \"\t'\t\"\nc: |\n  x\ty\n  \td\n\n  z\nd: !t >-\n  p\tq\n"
      "e: it's # \t\n");
  CHECK(root->find("a")->text == "x\ty");
  CHECK(root->find("b")->text == "\t'\t");
  CHECK(root->find("c")->text == "x\ty\n\td\n\nz\n");
  CHECK(root->find("d")->text == "p\tq");
  CHECK(root->find("e")->text == "it's");
}

TEST_CASE("a word that is neither key nor value is refused") {
  for (const char* text : {"a:\n5", "a: 1\nb\n", "d:\ni # c\n", "a:\n  b:\n  c # d\n"}) {
    INFO(text);
    CHECK(parse_error(text).find("stands where 'key: value' is expected") != std::string::npos);
  }
  CHECK(parse_error("a: 1\n'b'\n") != "");
  CHECK(parse_text("a:\n  5\nb:\n- 6\n? c\n? d\n: e\nf:\n|\n g\n")->entries.size() == 5);
  CHECK(parse_text("{a, b: }")->entries.size() == 2);
}

TEST_CASE("quotation marks must be closed and anchors and documents well formed") {
  for (const char* text : {"a: '", "a: \"", "'''\n", "a: 'x''"}) {
    INFO(text);
    CHECK(parse_error(text) != "");
  }
  CHECK(parse_error("a: '").find("a quotation mark is not closed") != std::string::npos);
  CHECK(parse_error("a: &x! 1").find("cannot be the name of an anchor") != std::string::npos);
  CHECK(parse_error("!!:").find("expected a value") != std::string::npos);
  CHECK(parse_text("# nothing\n--- # here\n")->is_null());
}

TEST_CASE("a folded scalar keeps the line breaks at its end when told to") {
  const NodePtr root = parse_text("a: >+\n  x\n  y\n\n\nb: >\n  x\n\n\nc: |+\n  x\n\n");
  CHECK(root->find("a")->text == "x y\n\n\n");
  CHECK(root->find("b")->text == "x\n");
  CHECK(root->find("c")->text == "x\n\n");
}

TEST_CASE("a carriage return alone ends a line too") {
  const NodePtr root = parse_text("a: b\rc: d\r\ne: f");
  CHECK(root->find("c")->text == "d");
  CHECK(root->find("e")->text == "f");
}

}  // namespace
}  // namespace forge::yaml
