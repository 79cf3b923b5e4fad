#include "core/base/json_path.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace forge {

TEST_CASE("a dotted key leads through nested objects") {
  const nlohmann::json object = {{"model", {{"canon", {{"set", "AC"}}}}}, {"seed", 42}};
  REQUIRE(*find_value(object, "seed") == 42);
  REQUIRE(*find_value(object, "model.canon.set") == "AC");
  REQUIRE(find_value(object, "model")->is_object());
  for (const char* key : {"", "x", "model.x", "seed.x", "model.canon.set.x", "model.", ".seed"})
    REQUIRE(find_value(object, key) == nullptr);
  REQUIRE(find_value(nullptr, "seed") == nullptr);
}

}  // namespace forge
