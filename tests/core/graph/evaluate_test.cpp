#include "core/graph/evaluate.h"

#include "tests/core/graph/graphs.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::graph {
namespace {

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
