#include "core/benchmark/probe.h"

#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::benchmark {
namespace {

using namespace tests;

TEST_CASE("a probe tells a step's seconds from the faster of two windows", "[benchmark]") {
  WorkerScript script{{Says{lines::hello}, Says{lines::environment}}, {}};
  script.steps.push_back(Says{R"({"event":"ready","window_steps":4,"tokens_per_step":64})"});
  script.steps.push_back(Says{R"({"event":"window","steps":4,"seconds":3.0})"});
  script.steps.push_back(Says{R"({"event":"window","steps":4,"seconds":2.0})"});
  script.steps.push_back(Says{R"({"event":"result","values":{"peak_memory_bytes":4096}})"});
  script.steps.push_back(Exits{});
  FakeClock clock;
  FakeLauncher launcher(clock, {script});
  protocol::Request request;
  request.job = protocol::Job::bench;
  const Probe found = probe(launcher, {"a", {{"worker"}, {}}, request}, [](double, const auto&) {});
  REQUIRE(found.seconds_per_step == 0.5);
  REQUIRE(found.memory_bytes == 4096);
}

}  // namespace
}  // namespace forge::benchmark
