#include "core/queue/lease.h"

#include <csignal>

#include "tests/core/run/processes.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

using tests::TemporaryFolder;
using tests::until;

const Device cpu{"cpu", 4};

TEST_CASE("units of a device are leased until none are left", "[queue][lease]") {
  TemporaryFolder folder;
  const auto three = Lease::try_take(folder.path(), cpu, 3);
  REQUIRE(three);
  REQUIRE(three->device() == "cpu");
  REQUIRE(taken_units(folder.path(), cpu) == 3);
  REQUIRE_FALSE(Lease::try_take(folder.path(), cpu, 2));
  REQUIRE(taken_units(folder.path(), cpu) == 3);
  const auto one = Lease::try_take(folder.path(), cpu, 1);
  REQUIRE(one);
  REQUIRE_FALSE(Lease::try_take(folder.path(), cpu, 1));
}

TEST_CASE("a lease ends with its object and its units are free again", "[queue][lease]") {
  TemporaryFolder folder;
  { const auto all = Lease::try_take(folder.path(), cpu, 4); }
  REQUIRE(taken_units(folder.path(), cpu) == 0);
  REQUIRE(Lease::try_take(folder.path(), cpu, 4));
}

TEST_CASE("who wants more than a device has gets all of it", "[queue][lease]") {
  TemporaryFolder folder;
  const auto all = Lease::try_take(folder.path(), cpu, 100);
  REQUIRE(all);
  REQUIRE(taken_units(folder.path(), cpu) == 4);
}

TEST_CASE("devices are leased apart", "[queue][lease]") {
  TemporaryFolder folder;
  const auto first = Lease::try_take(folder.path(), {"cuda:0", gpu_units}, gpu_units);
  REQUIRE(first);
  REQUIRE_FALSE(Lease::try_take(folder.path(), {"cuda:0", gpu_units}, 1));
  REQUIRE(Lease::try_take(folder.path(), {"cuda:1", gpu_units}, gpu_units));
}

TEST_CASE("a lease is held by every process that inherits it, however the others end",
          "[queue][lease]") {
  TemporaryFolder folder;
  auto lease = Lease::try_take(folder.path(), cpu, 4);
  const pid_t heir = ::fork();
  if (heir == 0) {
    ::pause();
    ::_exit(0);
  }
  lease.reset();
  REQUIRE(taken_units(folder.path(), cpu) == 4);
  REQUIRE_FALSE(Lease::try_take(folder.path(), cpu, 1));
  ::kill(heir, SIGKILL);
  ::waitpid(heir, nullptr, 0);
  REQUIRE(taken_units(folder.path(), cpu) == 0);
}

TEST_CASE("nothing is taken of a device that nobody has leased yet", "[queue][lease]") {
  TemporaryFolder folder;
  REQUIRE(taken_units(folder / "none", cpu) == 0);
}

}  // namespace
}  // namespace forge::queue
