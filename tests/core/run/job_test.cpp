#include "core/run/job.h"

#include <csignal>

#include "core/base/error.h"
#include "core/run/local_launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::run {
namespace {

using namespace tests;

/// What the events of a scripted job were, or the Error it ended with.
std::string outcome(const Script& script) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  std::string names;
  const std::string error = error_of([&] {
    run_job(launcher, {{"worker"}, {}}, {}, 120, [&](const protocol::Event& event) {
      names += std::string(" ") + protocol::name_of(event);
    });
  });
  return names + error;
}

TEST_CASE("a job passes its worker's events on", "[run][job]") {
  REQUIRE(outcome({Says{lines::hello}, Says{lines::environment}, Exits{}}) == " hello environment");
}

TEST_CASE("a job that goes wrong says how", "[run][job]") {
  REQUIRE(contains(outcome({Exits{{0, 0}}}), "ended with exit status 0"));
  REQUIRE(contains(outcome({Says{lines::hello}, Exits{{0, SIGSEGV}}}),
                   "signal 11 (Segmentation fault)"));
  REQUIRE(contains(outcome({Says{"hi"}}), "'hi'"));
  REQUIRE(contains(outcome({Says{lines::environment}}), "does not speak version 1"));
  REQUIRE(contains(
      outcome({Says{lines::hello}, Says{R"({"event":"failed","message":"no GPU","hint":"h"})"}}),
      "no GPU\nhint: h"));
  REQUIRE(contains(outcome({Says{lines::hello}}), "said nothing for 2m 00s"));
}

TEST_CASE("a job's last words on stderr are shown", "[run][job]") {
  LocalLauncher launcher;
  const std::string message = error_of([&] {
    run_job(launcher,
            {{"/bin/sh", "-c", "echo library missing >&2; exit 127"}, {}},
            {},
            20,
            [](const protocol::Event&) {});
  });
  REQUIRE(contains(message, "exit status 127"));
  REQUIRE(contains(message, "library missing"));
}

TEST_CASE("a tool's line is empty when it fails or is not there", "[run][job]") {
  LocalLauncher launcher;
  REQUIRE(line_of_tool(launcher, {"echo", "hello"}) == "hello");
  REQUIRE(line_of_tool(launcher, {"/bin/sh", "-c", "echo hello; exit 1"}).empty());
  REQUIRE(line_of_tool(launcher, {"no-such-tool-anywhere"}).empty());
  const TemporaryFolder folder;
  REQUIRE(git_revision(launcher, folder.path()).empty());
}

}  // namespace
}  // namespace forge::run
