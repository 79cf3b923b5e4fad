#include "core/run/allowed_command.h"

#include <cstdlib>

#include "core/base/files.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
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
  fs::path permissions() const { return folder_ / "allowed-commands"; }
  const fs::path& path() const { return folder_.path(); }

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

TEST_CASE("a permission that others could have given counts for nothing", "[run][hostile]") {
  const OwnCache cache;
  const Identity identity = identity_with_seed(1);
  const config::Experiment experiment = with_block("harmless");
  allow_command(identity, experiment);
  const fs::path file = fs::directory_iterator(cache.permissions())->path();
  REQUIRE(is_command_allowed(identity, experiment));
  SECTION("the file") { fs::permissions(file, fs::perms(0664)); }
  SECTION("its folder") { fs::permissions(cache.permissions(), fs::perms(0775)); }
  SECTION("a link") {
    fs::rename(file, cache.path() / "elsewhere");
    fs::create_symlink(cache.path() / "elsewhere", file);
  }
  SECTION("a folder") {
    fs::remove(file);
    fs::create_directory(file);
  }
  CHECK_FALSE(is_command_allowed(identity, experiment));
  if (fs::is_directory(file)) return;
  allow_command(identity, experiment);
  CHECK(is_command_allowed(identity, experiment));
  CHECK(fs::status(cache.permissions()).permissions() == fs::perms(0700));
  CHECK(fs::is_regular_file(fs::symlink_status(file)));
}

TEST_CASE("in a cache of another user nothing is allowed", "[run][hostile]") {
  if (::geteuid() != 0) return;  // only root can be two users
  const OwnCache cache;
  const Identity identity = identity_with_seed(1);
  const config::Experiment experiment = with_block("harmless");
  const bool has_permission = GENERATE(true, false);
  if (has_permission) allow_command(identity, experiment);
  fs::permissions(cache.path(), fs::perms::all);
  if (has_permission) fs::permissions(cache.permissions(), fs::perms(0755));
  const std::string said = tests::words_of_other_user([&] {
    const bool is_allowed = is_command_allowed(identity, experiment);
    return (is_allowed ? "allowed\n" : "not allowed\n") +
           error_of([&] { allow_command(identity, experiment); });
  });
  INFO(said);
  CHECK(contains(said,
                 "not allowed\nerror: the program of 'pytorch' cannot be allowed in the cache"));
  CHECK(contains(said, "which is not yours\nhint: FORGE_CACHE_DIR must name a folder of your own"));
}

}  // namespace
}  // namespace forge::run
