#include <cstdlib>

#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

TEST_CASE("an installed tree works from anywhere") {
  Program forge;
  const std::string prefix = (forge.folder() / "prefix").string();
  const std::string install =
      "cmake --install " + std::string(FORGE_BUILD_DIR) + " --prefix " + prefix + " > /dev/null";
  REQUIRE(std::system(install.c_str()) == 0);
  forge.binary = std::filesystem::path(prefix) / "bin" / "forge";
  forge.working_directory = forge.folder().path();
  forge.environment["FORGE_RUNS_DIR"] = "";  // ./runs, because the shipped workspace is read-only
  const json projects = json::parse(forge.call({"ls", "--json"}).out);
  REQUIRE(projects.size() == 9);
  const Outcome outcome = forge.call(tiny({"run", "train_canon_ac", "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(json::parse(outcome.out)[0].at("status") == "completed");
  REQUIRE_FALSE(
      std::filesystem::exists(std::filesystem::path(prefix) / "share" / "forge" / "runs"));
}

}  // namespace
}  // namespace forge::tests
