#include "core/config/keys.h"

#include "core/config/json.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

const Key& key(const std::string& path) {
  for (const Key& candidate : all_keys()) {
    if (candidate.path == path) return candidate;
  }
  throw std::runtime_error("no key " + path);
}

TEST_CASE("every key has its type and meaning and default") {
  REQUIRE(key("model.canon.set").type == "text");
  REQUIRE(key("model.canon.set").default_value == "\"\"");
  REQUIRE(key("model.position.kind").type == "rope | nope");
  REQUIRE(key("model.position.rope_dim").type == "integer or null");
  REQUIRE(key("model.num_kv_heads").type == "integer or null");
  REQUIRE(key("model.num_kv_heads").default_value == "null");
  REQUIRE(key("model.hidden_size").required);
  REQUIRE(key("model.hidden_size").default_value.empty());
  REQUIRE(key("train.document_mask").type == "true or false");
  REQUIRE(key("train.deterministic").type == "true, false or null");
  REQUIRE(key("train.deterministic").default_value == "null");
  REQUIRE(key("optimizer.betas").type == "list");
  REQUIRE(key("optimizer.lr").default_value == "0.001");
  for (const Key& each : all_keys()) REQUIRE_FALSE(each.help.empty());
}

TEST_CASE("the keys are exactly those of the JSON") {
  Experiment experiment;
  experiment.data.sources[any_name];
  const nlohmann::json flat = to_json(experiment).flatten();
  size_t leaves = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.find("/betas/") == std::string::npos) ++leaves;
  }
  REQUIRE(all_keys().size() == leaves + 1);  // and the list of betas
}

TEST_CASE("a path is known where it is a key or a section") {
  REQUIRE(is_known_path("train.z_loss.kind"));
  REQUIRE(is_known_path("train.z_loss"));
  REQUIRE(is_known_path("train"));
  REQUIRE_FALSE(is_known_path("train.z"));
  REQUIRE_FALSE(is_known_path("train.seed"));
  REQUIRE_FALSE(is_known_path(""));
  REQUIRE(is_known_path("data.sources.anything.weight"));
  REQUIRE_FALSE(is_known_path("data.sources.anything.wait"));
}

}  // namespace
}  // namespace forge::config
