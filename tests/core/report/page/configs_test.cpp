#include "core/report/page/configs.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace forge::report::page {
namespace {

using nlohmann::json;

json config(const std::string& set, int seed) {
  return {{"model", {{"canon", {{"set", set}}}, {"hidden_size", 256}}},
          {"train", {{"max_steps", 300}, {"log_every", 10}}},
          {"name", "Model " + set},
          {"description", "with " + set},
          {"seed", seed}};
}

TEST_CASE("runs of one config with several seeds have one config", "[report][page]") {
  const Configs configs = compare_configs({config("A", 1), config("A", 2), config("B", 1)});
  CHECK(configs.of_run == std::vector<size_t>{0, 0, 1});
  REQUIRE(configs.changes.size() == 2);
  CHECK(configs.common.at("model.canon.set") == "A");
  CHECK(configs.common.at("model.hidden_size") == "256");
  CHECK(configs.common.count("seed") == 0);
  CHECK(configs.common.count("name") == 0);
  CHECK(configs.changes[0].empty());
  CHECK(configs.changes[1] == Leaves{{"model.canon.set", "B"}});
}

TEST_CASE("most configs say what is common, others what they lack", "[report][page]") {
  json with_more = config("A", 1);
  with_more["train"]["z_loss"] = 0.5;
  const Configs configs =
      compare_configs({with_more, config("B", 1), config("B", 2), config("C", 1)});
  CHECK(configs.common.at("train.z_loss") == "0.5");
  CHECK(configs.lacks[0].empty());
  CHECK(configs.lacks[1] == std::vector<std::string>{"train.z_loss"});
  const nlohmann::ordered_json written = to_json(configs);
  CHECK(written["changes"][2]["model.canon.set"] == "C");
  CHECK(written["changes"][2]["train.z_loss"].is_null());
}

TEST_CASE("keys that change no figure are named", "[report][page]") {
  json other = config("A", 1);
  other["train"]["log_every"] = 20;
  const Configs configs = compare_configs({config("A", 1), other});
  CHECK(configs.changes.size() == 2);
  CHECK(configs.harmless == std::vector<std::string>{"train.log_every"});
}

TEST_CASE("a run whose config is not known has an empty one", "[report][page]") {
  const Configs configs = compare_configs({json(), config("A", 1)});
  CHECK(configs.of_run == std::vector<size_t>{0, 1});
  CHECK(configs.lacks[0].size() == configs.common.size());
  CHECK(compare_configs({}).changes.empty());
}

}  // namespace
}  // namespace forge::report::page
