#include "core/config/override.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

std::string error_for(const std::string& argument) {
  return tests::error_of([&] { parse_override(argument); });
}

TEST_CASE("an override is a path and a YAML value with places on the command line") {
  const Assignment assignment = parse_override("optimizer.betas=[0.9, 0.95]");
  REQUIRE(assignment.path == "optimizer.betas");
  REQUIRE(assignment.value->is_sequence());
  REQUIRE(assignment.value->items[1]->origin.describe() == "command line:1:29");
  REQUIRE(parse_override("data.path=a=b").value->text == "a=b");
  REQUIRE(parse_override("data.path=").value->is_null());
  REQUIRE(parse_override("model.canon={set: A}").value->is_mapping());
}

TEST_CASE("an override of an unknown key shows a caret and the nearest key of all") {
  REQUIRE(error_for("train.max_step=4") ==
          "command line:1:7: error: unknown key 'train.max_step'\n"
          "    --set train.max_step=4\n"
          "          ^\n"
          "hint: did you mean 'train.max_steps'?");
  REQUIRE(error_for("batch_size=4").find("did you mean 'train.batch_size'?") != std::string::npos);
  REQUIRE(error_for("seed.x=4").find("unknown key 'seed.x'") != std::string::npos);
  REQUIRE(error_for("optimizer.learning_rate=1").find("the keys of optimizer are type, lr, ") !=
          std::string::npos);
  REQUIRE(error_for("zzzzzz=4").find("forge keys") != std::string::npos);
}

TEST_CASE("an override without a value is refused") {
  REQUIRE(error_for("train.max_steps").find("must be KEY=VALUE") != std::string::npos);
  REQUIRE(error_for("=4").find("must be KEY=VALUE") != std::string::npos);
  REQUIRE(error_for("").find("must be KEY=VALUE") != std::string::npos);
}

TEST_CASE("an override whose value is no YAML is refused on the command line") {
  REQUIRE(error_for("optimizer.betas=[0.9").find("command line:1:") == 0);
}

}  // namespace
}  // namespace forge::config
