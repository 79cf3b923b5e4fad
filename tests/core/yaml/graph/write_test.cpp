#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "core/yaml/graph/write.h"
#include "tests/core/yaml/graph/graphs.h"
#include "tests/support/catch.h"

namespace forge::graph {
namespace {

using nlohmann::json;
using tests::contains;
using tests::graph_of;

/// Compares two graphs node by node; what is one container or call in one must be in the other.
class Comparison {
 public:
  bool same(const NodePtr& a, const NodePtr& b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->text != b->text || a->boolean != b->boolean ||
        a->integer != b->integer || a->identity != b->identity || a->is_object != b->is_object ||
        a->call_kind != b->call_kind || a->items.size() != b->items.size() ||
        a->entries.size() != b->entries.size()) {
      return false;
    }
    if (!(a->real == b->real || (a->real != a->real && b->real != b->real))) return false;
    if (a->is_scalar() || a->kind == Node::Kind::variable) {
      return same(a->default_value, b->default_value);
    }
    const auto [partner, is_new] = partners_.emplace(a.get(), b.get());
    if (!is_new) return partner->second == b.get();
    if (!taken_.emplace(b.get(), a.get()).second) return false;
    for (size_t i = 0; i < a->items.size(); ++i) {
      if (!same(a->items[i], b->items[i])) return false;
    }
    for (size_t i = 0; i < a->entries.size(); ++i) {
      if (a->entries[i].key != b->entries[i].key) return false;
      if (a->entries[i].key_is_string != b->entries[i].key_is_string) return false;
      if (!same(a->entries[i].value, b->entries[i].value)) return false;
    }
    return same(a->submodule_searchpath, b->submodule_searchpath) &&
           same(a->latent_args, b->latent_args);
  }

 private:
  std::map<const Node*, const Node*> partners_, taken_;
};

void check_round_trip(const Graph& graph) {
  const std::string text = write_yaml(graph);
  INFO(text);
  const Graph again = graph_of(text);
  CHECK(Comparison().same(graph.root, again.root));
  CHECK(write_yaml(again) == text);
}

TEST_CASE("a graph is written in one canonical form") {
  const Graph graph = graph_of(
      "main: !call:torch:Train@run {model: &m !factory:m:f [8, {a: 1, b: [x]}], opt: "
      "{lr: 1.0e-3, betas: [0.9, [1, 2]]}, callbacks: !dlist {a: *m, b: !dict:@d {k: ~}}}\n"
      "meta: !var {name: m, default: 'yes'}\nlate: !partial:f {arg0: 1, k: '1e-3'}\n");
  CHECK(write_yaml(graph) ==
        ".m: &m !factory:m:f\n"
        "    - 8\n"
        "    -   a: 1\n"
        "        b:\n"
        "            - x\n"
        "\n"
        "main: !singleton:torch:Train@run\n"
        "    model: *m\n"
        "    opt:\n"
        "        lr: 0.001\n"
        "        betas:\n"
        "            - 0.9\n"
        "            -   - 1\n"
        "                - 2\n"
        "    callbacks: !list\n"
        "        - *m\n"
        "        - !dict:@d\n"
        "            k: null\n"
        "\n"
        "meta: !var\n"
        "    name: m\n"
        "    default: \"yes\"\n"
        "\n"
        "late: !partial:f\n"
        "    args:\n"
        "        - 1\n"
        "    kwargs:\n"
        "        k: \"1e-3\"\n");
  check_round_trip(graph);
}

TEST_CASE("shared nodes are named by identity, else by anchor, else by number") {
  const Graph graph = graph_of(
      "a: &x !call:f@the_name []\nb: *x\nc: &y {k: 1}\nd: *y\n"
      "e: &base {inner: [1]}\nf: {<<: *base}\ng: &the_name [2]\nh: *the_name\n");
  const std::string text = write_yaml(graph);
  CHECK(contains(text, ".the_name: &the_name !singleton:f@the_name []\n"));
  CHECK(contains(text, ".y: &y\n    k: 1\n"));
  CHECK(contains(text, ".shared: &shared\n    - 1\n"));
  CHECK(contains(text, ".the_name_2: &the_name_2\n"));
  check_round_trip(graph);
}

TEST_CASE("a root without targets is written with its anchors in place") {
  for (const char* text : {"[&x !call:f [], *x, {a: *x}]",
                           "!call:f {a: &x {k: 1}, b: *x}",
                           "hello",
                           "[]",
                           "{}",
                           "~",
                           "!dict:@d {a: 1}",
                           "[[1, [2]], {a: [3]}]"}) {
    check_round_trip(graph_of(text));
  }
}

TEST_CASE("texts that could be taken for something else are quoted") {
  const auto written = [](const std::string& text) {
    Node node;
    node.kind = Node::Kind::string;
    node.text = text;
    return yaml_scalar(node);
  };
  for (const std::string plain : {"a", "hello world", "/path/to.file", "a-b_c", "v1.0"}) {
    CHECK(written(plain) == plain);
  }
  for (const std::string quoted :
       {"",   "yes", "null", "1",  "1e-05", "0x1", "a: b", "a #b", "- a",  "~",   "y",
        "No", ".5",  " a",   "a ", "[a]",   "*a",  "!a",   "1:30", "a\nb", "<<",  "\u2028",
        "=",  "---", "on",   "+1", "#",     "a,b", "'",    "\"",   "\\",   "\x7f"}) {
    INFO(quoted);
    const std::string text = written(quoted);
    CHECK(text.front() == '"');
    CHECK(graph_of("k: " + text).root->find("k")->text == quoted);
  }
}

TEST_CASE("keywords that read as something else are given explicitly") {
  for (const char* text : {"a: !call:f {kwargs: {args: [1]}}",
                           "a: !call:f {kwargs: {arg0: 1}}",
                           "a: !call:f {kwargs: {kwargs: {a: 1}, args: 2}}",
                           "a: !call:f {args: ~}",
                           "a: !call:f {args: [1], b: 2}",
                           "a: !call:f {kwargs: {args: 1, latent_args: {x: 1}}}",
                           "a: !call:.m:f {arg0: 1, submodule_searchpath: [x]}"}) {
    check_round_trip(graph_of(text));
  }
}

/// Random documents with every tag, aliases and awkward texts.
class RandomDocument {
 public:
  explicit RandomDocument(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string text;
    const int targets = number(5) + 1;
    for (int i = 0; i < targets; ++i) text += "t" + std::to_string(i) + ": " + node(0) + "\n";
    return text;
  }

 private:
  int number(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  std::string node(int depth) {
    if (!anchors_.empty() && number(5) == 0)
      return "*" + anchors_[random_() % anchors_.size()] + " ";
    const std::string anchor = "n" + std::to_string(count_++);
    const std::string body = content(depth);
    const bool is_empty_scalar = body.empty();
    if (is_empty_scalar || number(3) > 0) return body;
    anchors_.push_back(anchor);
    return "&" + anchor + " " + body;
  }

  std::string content(int depth) {
    static const std::vector<std::string> scalars = {
        "1",     "-7",    "0.5",       "1.0e-05", ".inf",   ".nan",   "~",
        "yes",   "'yes'", "\"a\\nb\"", "text",    "'1e-3'", "1e-3",   "'a: b'",
        "'# x'", "0x1F",  "1:30",      "'é'",     "''",     "!var v", "'!x'"};
    const int kind = depth > 4 ? 0 : number(8);
    if (kind < 3) return scalars[random_() % scalars.size()];
    const std::string identity = number(3) == 0 ? "i" + std::to_string(count_++) : "";
    if (kind == 3) return "[" + items(depth) + "]";
    if (kind == 4) return "{" + entries(depth) + "}";
    if (kind == 5) {
      static const std::vector<std::string> words = {"!list", "!tuple"};
      return words[random_() % 2] + (identity.empty() ? "" : ":@" + identity) + " [" +
             items(depth) + "]";
    }
    if (kind == 6) {
      static const std::vector<std::string> words = {"!dict", "!dlist"};
      return words[random_() % 2] + (identity.empty() ? "" : ":@" + identity) + " {" +
             entries(depth) + "}";
    }
    static const std::vector<std::string> words = {"!call", "!factory", "!partial", "!meta"};
    std::string tag = words[random_() % 4] + ":m.n:f" + (identity.empty() ? "" : "@" + identity);
    return tag + (number(2) == 0 ? " [" + items(depth) + "]" : " {" + entries(depth) + "}");
  }

  std::string items(int depth) {
    std::string text;
    for (int i = number(4); i > 0; --i) text += (text.empty() ? "" : ", ") + node(depth + 1);
    return text;
  }

  std::string entries(int depth) {
    static const std::vector<std::string> keys = {"a",
                                                  "b",
                                                  "args",
                                                  "kw",
                                                  "arg0",
                                                  "arg12",
                                                  "'no'",
                                                  "'1'",
                                                  "'x y'",
                                                  "latent_args",
                                                  "\"a:\\tb\""};
    std::string text;
    for (int i = number(4); i > 0; --i) {
      text += (text.empty() ? "" : ", ") + keys[random_() % keys.size()] + ": " + node(depth + 1);
    }
    return text;
  }

  std::mt19937 random_;
  std::vector<std::string> anchors_;
  int count_ = 0;
};

TEST_CASE("what is written reads as the same graph for random documents") {
  int read = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const std::string text = RandomDocument(seed).text();
    INFO("seed " << seed << "\n" << text);
    Graph graph;
    if (tests::error_of([&] { graph = graph_of(text); }) != "") continue;
    ++read;
    check_round_trip(graph);
  }
  CHECK(read > 300);
}

TEST_CASE("as JSON shared nodes are defined once and calls carry their place") {
  const auto graph =
      to_json(graph_of("main: !call:m:f {x: &o !list [1, .inf], y: *o, v: !var {name: n, default: "
                       "2}}\nplain: {a: [yes]}\n"));
  CHECK(json(graph) == json::parse(R"({"definitions": {"o": {"node": "list", "items": [1, ".inf"],
            "at": "config.yaml:1:21"}},
          "targets": {"main": {"node": "singleton", "constructor": "m:f", "args": [],
            "kwargs": {"x": {"node": "shared", "name": "o"}, "y": {"node": "shared", "name": "o"},
                       "v": {"node": "variable", "name": "n", "default": 2, "at": "config.yaml:1:51"}},
            "at": "config.yaml:1:7"}, "plain": {"a": [true]}}})"));
  CHECK(json(to_json(graph_of("[1]")))["root"] == json::parse("[1]"));
}

TEST_CASE("for Graphviz every call is one box with labelled edges") {
  const std::string dot =
      write_dot(graph_of("main: !call:m:f@top {x: [&o !partial:m:g [], {k: *o}], v: !var n}\n"),
                "a \"title\"");
  CHECK(contains(dot, "digraph \"a \\\"title\\\"\" {"));
  CHECK(contains(dot, "\"target main\" -> n0;"));
  CHECK(contains(dot, "n0 [label=\"top\\nm:f\"];"));
  CHECK(contains(dot, "n1 [label=\"o\\nm:g (partial)\"];"));
  CHECK(contains(dot, "\"n0\" -> n1 [label=\"x[0]\"];"));
  CHECK(contains(dot, "\"n0\" -> n1 [label=\"x[1].k\"];"));
  CHECK(contains(dot, "n2 [label=\"n\", shape=ellipse];"));
}

}  // namespace
}  // namespace forge::graph
