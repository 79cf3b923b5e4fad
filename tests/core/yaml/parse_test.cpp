#include "core/yaml/parse.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::yaml {
namespace {

NodePtr parse_text(const std::string& text) {
  auto source = std::make_shared<SourceText>();
  source->name = "config.yaml";
  source->text = text;
  return parse(text, [source](int line, int column) { return make_span(source, line, column); });
}

TEST_CASE("a mapping keeps the order of its keys and the origin of keys and values") {
  const NodePtr root = parse_text("model:\n  hidden_size: 256\n  name: tiny\n");
  const Node* model = root->find("model");
  REQUIRE(model->is_mapping());
  REQUIRE(model->entries[0].key == "hidden_size");
  REQUIRE(model->entries[0].key_origin.describe() == "config.yaml:2:3");
  REQUIRE(model->entries[0].value->origin.describe() == "config.yaml:2:16");
  REQUIRE(model->find("hidden_size")->integer == 256);
  REQUIRE(model->find("name")->text == "tiny");
}

}  // namespace
}  // namespace forge::yaml
