#include "core/yaml/graph/graph.h"
#include "core/yaml/graph/read.h"
#include "tests/core/yaml/graph/graphs.h"
#include "tests/support/catch.h"

namespace forge::graph {
namespace {

using tests::contains;
using tests::graph_error;
using tests::graph_of;

const Node& target(const Graph& graph, const std::string& name) {
  return *graph.target(name).value;
}

TEST_CASE("a call keeps how it is made and what of") {
  const Graph graph = graph_of(
      "a: !call:torch.optim:AdamW@opt {lr: 1.0e-3}\nb: !singleton:m:f []\nc: !factory:m:f []\n"
      "d: !partial:m:f []\ne: !lambda:m:f []\nf: !meta:m:f []\ng: !call:getitem [x, 0]\n");
  const Node& a = target(graph, "a");
  CHECK(a.kind == Node::Kind::call);
  CHECK(a.call_kind == Node::CallKind::singleton);
  CHECK(a.text == "torch.optim:AdamW");
  CHECK(a.identity == "opt");
  CHECK(a.find("lr")->real == 0.001);
  CHECK(a.origin.describe() == "config.yaml:1:4");
  CHECK(target(graph, "b").call_kind == Node::CallKind::singleton);
  CHECK(target(graph, "c").call_kind == Node::CallKind::factory);
  CHECK(target(graph, "d").call_kind == Node::CallKind::partial);
  CHECK(target(graph, "e").call_kind == Node::CallKind::partial);
  CHECK(target(graph, "f").call_kind == Node::CallKind::meta);
  CHECK(target(graph, "g").text == "getitem");
}

TEST_CASE("the first character behind a tag's word is dropped whatever it is") {
  const Graph graph = graph_of(
      "a: !singleton@x []\nb: !dict@n {k: 1}\nc: !dict:@n {k: 1}\nd: !call:f@a@b []\n"
      "e: !call:/code/file.py:Maker []\n");
  CHECK(target(graph, "a").text == "x");
  CHECK(target(graph, "a").identity == "");
  CHECK(target(graph, "b").identity == "");
  CHECK(target(graph, "c").identity == "n");
  CHECK(target(graph, "d").text == "f");
  CHECK(target(graph, "d").identity == "a@b");
  CHECK(target(graph, "e").text == "/code/file.py:Maker");
}

TEST_CASE("arguments are a sequence, a mapping with numbered ones, or given explicitly") {
  const Graph graph = graph_of(
      "sequence: !call:f [1, 2]\n"
      "mapping: !call:f {b: 1, arg10: ten, arg2: two, a: 2, arg1x: no}\n"
      "both: !call:f {args: [1], kwargs: {arg0: zero}}\n"
      "only_args: !call:f {args: [1]}\n"
      "only_kwargs: !call:f {kwargs: {a: 1}}\n"
      "with_others: !call:f {args: [1], a: 1}\n"
      "null_args: !call:f {args: ~}\n"
      "empty: !call:f\n"
      "characters: !call:f h\u00e9\n");
  CHECK(target(graph, "sequence").items.size() == 2);
  const Node& mapping = target(graph, "mapping");
  REQUIRE(mapping.items.size() == 2);
  CHECK(mapping.items[0]->text == "two");
  CHECK(mapping.items[1]->text == "ten");
  REQUIRE(mapping.entries.size() == 3);
  CHECK(mapping.entries[0].key == "b");
  CHECK(mapping.entries[2].key == "arg1x");
  CHECK(target(graph, "both").items.size() == 1);
  CHECK(target(graph, "both").find("arg0")->text == "zero");
  CHECK(target(graph, "only_args").items.size() == 1);
  CHECK(target(graph, "only_kwargs").find("a")->integer == 1);
  CHECK(target(graph, "with_others").find("args")->kind == Node::Kind::list);
  CHECK(target(graph, "null_args").find("args")->kind == Node::Kind::null);
  CHECK(target(graph, "empty").items.empty());
  const Node& characters = target(graph, "characters");
  REQUIRE(characters.items.size() == 2);
  CHECK(characters.items[1]->text == "\u00e9");
}

TEST_CASE("two keywords are for the call itself") {
  const Graph graph = graph_of(
      "a: !call:.m:f {submodule_searchpath: [x], latent_args: {y: 1}, z: 2}\n"
      "b: !call:.m:f {submodule_searchpath: ~}\n");
  const Node& a = target(graph, "a");
  CHECK(a.submodule_searchpath->items[0]->text == "x");
  CHECK(a.latent_args->find("y")->integer == 1);
  CHECK(a.entries.size() == 1);
  CHECK(target(graph, "b").submodule_searchpath == nullptr);
}

TEST_CASE("a variable has a name and perhaps a default") {
  const Graph graph =
      graph_of("a: !var x\nb: !var {name: y, default: [1]}\nc: !var {name: z, default: ~}\n");
  CHECK(target(graph, "a").kind == Node::Kind::variable);
  CHECK(target(graph, "a").text == "x");
  CHECK(target(graph, "a").default_value == nullptr);
  CHECK(target(graph, "b").default_value->items.size() == 1);
  CHECK(target(graph, "c").default_value->kind == Node::Kind::null);
  CHECK(contains(graph_error("a: !var [x]\n"), "write !var NAME"));
  CHECK(contains(graph_error("a: !var {default: 1}\n"), "names no variable"));
  CHECK(contains(graph_error("a: !var {name: x, defualt: 1}\n"), "'!var' has no 'defualt'"));
  CHECK(contains(graph_error("a: !var:x\n"), "write !var x"));
}

TEST_CASE("containers take their own shape or nothing and a dlist drops nulls") {
  const Graph graph = graph_of(
      "a: !dlist {b: 2, gone: ~, a: 1}\nb: !dlist {null: ~}\nc: !list\nd: !dict\n"
      "e: !tuple [1, 2]\nf: !list:@named [1]\ng: {k: [1]}\n");
  const Node& a = target(graph, "a");
  CHECK(a.kind == Node::Kind::list);
  CHECK(a.is_object);
  REQUIRE(a.items.size() == 2);
  CHECK(a.items[0]->integer == 2);
  CHECK(target(graph, "b").items.empty());
  CHECK(target(graph, "c").kind == Node::Kind::list);
  CHECK(target(graph, "d").kind == Node::Kind::mapping);
  CHECK(target(graph, "d").is_object);
  CHECK(target(graph, "e").kind == Node::Kind::tuple);
  CHECK(target(graph, "f").identity == "named");
  CHECK_FALSE(target(graph, "g").is_object);
  CHECK(contains(graph_error("a: !dlist [1]\n"), "'!dlist' is a sequence"));
  CHECK(contains(graph_error("a: !list {a: 1}\n"), "'!list' is a mapping"));
  CHECK(contains(graph_error("a: !tuple\n"), "'!tuple' is null"));
  CHECK(contains(graph_error("a: !dict text\n"), "'!dict' is the string 'text'"));
}

TEST_CASE("an alias is the same node and a merge copies entries only") {
  const Graph graph = graph_of(
      ".define: &opt !call:f@opt {lr: [1]}\na: *opt\nb: [*opt]\nc: !call:g {<<: *opt, x: 1}\n");
  CHECK(&target(graph, "a") == target(graph, "b").items[0].get());
  CHECK(&target(graph, "a") != &target(graph, "c"));
  CHECK(target(graph, "c").find("lr") == target(graph, "a").find("lr"));
  CHECK(graph.root->entries.size() == 3);
}

TEST_CASE("an identity names one node") {
  CHECK(graph_error("a: &x !call:f@one []\nb: *x\n") == "");
  const std::string error = graph_error("a: !call:f@one []\nb: !dict:@one {}\n");
  CHECK(contains(error, "config.yaml:2:4: error: identity 'one' is used twice"));
  CHECK(contains(error, "the other is at config.yaml:1:4"));
}

TEST_CASE("what no graph can hold is refused where it stands") {
  CHECK(contains(graph_error("a: !cal:f []\n"), "unknown tag '!cal:f'"));
  CHECK(contains(graph_error("a: !cal:f []\n"), "did you mean '!call'"));
  CHECK(contains(graph_error("a: !call [1]\n"), "does not say what to call"));
  CHECK(contains(graph_error("a: !factory:@x []\n"), "does not say what to call"));
  CHECK(contains(graph_error("a: 2001-01-01\n"), "is a date"));
  CHECK(contains(graph_error("a: !!set {x}\n"), "!!set"));
  CHECK(contains(graph_error("a: !!binary eA==\n"), "!!binary"));
  CHECK(contains(graph_error("1: x\n"), "target names must be strings, not '1'"));
  CHECK(contains(graph_error("a: !call:f {1: x}\n"), "argument names must be strings"));
  CHECK(contains(graph_error("a: !call:f {args: x}\n"), "'args' is the string 'x'"));
  CHECK(contains(graph_error("a: !call:f {args: [], kwargs: []}\n"), "'kwargs' is a sequence"));
  CHECK(contains(graph_error("a: !call:f {args: !tuple []}\n"), "'args' is '!tuple'"));
}

TEST_CASE("a root that is no mapping has no targets") {
  CHECK_FALSE(graph_of("[1, 2]").has_targets());
  CHECK_FALSE(graph_of("!call:f {a: 1}").has_targets());
  CHECK_FALSE(graph_of("hello").has_targets());
  CHECK(contains(tests::error_of([] { graph_of("[1]").target("main"); }), "has no targets"));
  const Graph graph = graph_of("main: 1\nmeta: 2\n");
  CHECK(contains(tests::error_of([&] { graph.target("mian"); }), "did you mean 'main'"));
  CHECK(graph.only("meta").root->entries.size() == 1);
}

TEST_CASE("aliases cannot nest a graph deeper than the text may") {
  std::string text = "a0: &a0 [1]\n";
  for (int i = 1; i < 300; ++i) {
    const std::string name = "a" + std::to_string(i);
    text += name + ": &" + name + " [*a" + std::to_string(i - 1) + "]\n";
  }
  CHECK(contains(graph_error(text), "more than 200 deep"));
}

using tests::contains;
using tests::graph_of;

NodePtr text_node(const std::string& text) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::string;
  node->text = text;
  return node;
}

TEST_CASE("containers become plain and calls stay with evaluated arguments") {
  const Graph graph = graph_of(
      "list: !dlist:@l {a: 1, b: ~, c: !dict {k: !tuple [2]}}\n"
      "call: !partial:f@c {x: !list [!var v], latent_args: {y: !var v}}\n");
  const NodePtr root = evaluate(graph.root, {{"v", text_node("bound")}});
  const Node* list = root->find("list");
  CHECK(list->kind == Node::Kind::list);
  CHECK_FALSE(list->is_object);
  CHECK(list->identity == "");
  REQUIRE(list->items.size() == 2);
  CHECK_FALSE(list->items[1]->is_object);
  CHECK(list->items[1]->find("k")->kind == Node::Kind::tuple);
  const Node* call = root->find("call");
  CHECK(call->kind == Node::Kind::call);
  CHECK(call->identity == "c");
  CHECK(call->find("x")->items[0]->text == "bound");
  CHECK(call->latent_args->find("y")->text == "bound");
}

TEST_CASE("a variable takes its binding before its default and needs one of them") {
  const Graph graph = graph_of("a: !var {name: x, default: !list [!var y]}\n");
  CHECK(evaluate(graph.root, {{"x", text_node("bound")}})->find("a")->text == "bound");
  const NodePtr root = evaluate(graph.root, {{"y", text_node("inner")}});
  CHECK(root->find("a")->items[0]->text == "inner");
  const std::string error = tests::error_of([&] { evaluate(graph.root, {{"yy", text_node("")}}); });
  CHECK(contains(error, "the variable 'y' has no value"));
  CHECK(contains(error, "did you mean 'yy'"));
}

TEST_CASE("what was one node stays one node") {
  const Graph graph = graph_of("a: &x !list [1]\nb: *x\n");
  const NodePtr root = evaluate(graph.root);
  CHECK(root->find("a") == root->find("b"));
}

}  // namespace
}  // namespace forge::graph
