#include "core/run/allowed_command.h"

#include <cstdlib>

#include "core/base/files.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::small_inputs;
using tests::TemporaryFolder;

/// A cache folder of this test's own.
class OwnCache {
 public:
  OwnCache() { ::setenv("FORGE_CACHE_DIR", folder_.path().c_str(), 1); }
  ~OwnCache() { ::unsetenv("FORGE_CACHE_DIR"); }

 private:
  TemporaryFolder folder_;
};

config::Experiment with_block(const std::string& source) {
  config::Experiment experiment;
  experiment.backend = "pytorch";
  experiment.external.command = {"python3", "worker.py"};
  experiment.external.working_directory = "/backends/pytorch";
  experiment.model.blocks["mixer"].source = source;
  return experiment;
}

Identity identity_with_seed(int64_t seed) {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  inputs.experiment["seed"] = seed;
  return plan_run(inputs, runs.path(), false).record.identity;
}

TEST_CASE("a command is allowed for one run with all that travels in it, and for no other",
          "[run][hostile]") {
  const OwnCache cache;
  const Identity own = identity_with_seed(11523694), other = identity_with_seed(5188069);
  REQUIRE(run_key(own) == run_key(other));
  const config::Experiment harmless = with_block("harmless");
  REQUIRE(!is_command_allowed(own, harmless));
  allow_command(own, harmless);
  CHECK(is_command_allowed(own, harmless));
  CHECK(!is_command_allowed(other, harmless));
  CHECK(!is_command_allowed(own, with_block("evil")));
  config::Experiment changed = harmless;
  changed.external.environment = {"LD_PRELOAD=evil.so"};
  CHECK(!is_command_allowed(own, changed));
  changed = harmless;
  changed.external.working_directory = "/elsewhere";
  CHECK(!is_command_allowed(own, changed));
  const std::string fault =
      error_of([&] { require_allowed_command("x", other, with_block("evil")); });
  INFO(fault);
  CHECK(contains(fault,
                 "python3 worker.py (in /backends/pytorch), which would run the Python code "
                 "of mixer"));
  CHECK(contains(fault, "--allow-command"));
}

}  // namespace
}  // namespace forge::run
