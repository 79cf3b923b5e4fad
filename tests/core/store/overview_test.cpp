#include "core/store/overview.h"

#include "core/queue/queue.h"
#include "core/run/host.h"
#include "core/store/result_store.h"
#include "tests/support/catch.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using tests::MadeRun;
using tests::TemporaryFolder;

MadeRun made_with_steps(const std::string& id) {
  MadeRun run;
  run.id = id;
  run.experiment.train.max_steps = 40;
  return run;
}

queue::Entry entry(const std::string& run, int priority = 0) {
  queue::Entry entry;
  entry.run = run;
  entry.group = "group";
  entry.submitted = "2026-11-21T10:00:00.000Z";
  entry.host = run::host_name();
  entry.devices = {{"cpu", 2}};
  entry.priority = priority;
  return entry;
}

TEST_CASE("what runs, waits and has ended is told apart", "[store][overview]") {
  TemporaryFolder runs;
  make_completed_run(runs.path(), made_with_steps("done"));
  make_failed_run(runs.path(), made_with_steps("broken"), 10, "no");
  make_queued_run(runs.path(), made_with_steps("waits"));
  make_queued_run(runs.path(), made_with_steps("first"));
  make_queued_run(runs.path(), made_with_steps("never_asked_for"));
  const FileLock running = make_running_run(runs.path(), made_with_steps("runs"), 20);
  {
    queue::Queue queue(runs.path());
    queue.add(entry("waits"));
    queue.add(entry("first", 1));
    queue::Entry begun = entry("runs");
    begun.device = "cpu";
    queue.add(begun);
  }
  const auto lease = queue::Lease::try_take(queue::leases_folder(runs.path()), {"cuda:0", 24}, 24);
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 1);

  REQUIRE(now.running.size() == 1);
  REQUIRE(now.running[0].run.id == "runs");
  REQUIRE(now.running[0].device == "cpu");
  REQUIRE(now.running[0].step == 20);
  REQUIRE(now.running[0].seconds_left);
  REQUIRE(now.waiting.size() == 2);
  REQUIRE(now.waiting[0].entry.run == "first");
  REQUIRE(now.waiting[1].entry.run == "waits");
  REQUIRE(now.waiting[1].steps_left == 40);
  REQUIRE(now.waiting[1].seconds == 75.0);  // as long as the completed run took
  REQUIRE(now.ended.size() == 1);
  REQUIRE(now.devices.size() == 1);
  REQUIRE(now.devices[0].device.name == "cuda:0");
  REQUIRE(now.devices[0].taken == 24);
  REQUIRE(now.warnings.empty());
}

TEST_CASE("an empty runs folder has nothing to tell", "[store][overview]") {
  TemporaryFolder runs;
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 5);
  REQUIRE(now.running.empty());
  REQUIRE(now.waiting.empty());
  REQUIRE(now.ended.empty());
  REQUIRE(now.devices.empty());
}

}  // namespace
}  // namespace forge::store
