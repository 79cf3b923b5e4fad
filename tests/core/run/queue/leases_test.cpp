#include "core/run/queue/leases.h"

#include <csignal>

#include "core/base/error.h"
#include "core/run/host.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

worker::Environment environment(const std::string& type, int threads, int gpus) {
  worker::Environment environment;
  environment.device_type = type;
  environment.threads = threads;
  environment.devices = {"cpu"};
  for (int i = 0; i < gpus; ++i) environment.devices.push_back("cuda:" + std::to_string(i));
  return environment;
}

std::vector<std::string> names(const ResourceRequest& demand) {
  std::vector<std::string> names;
  for (const LeaseDevice& device : demand.devices) names.push_back(device.name);
  return names;
}

TEST_CASE("a run on a CPU needs as many cores as it has threads", "[queue][demand]") {
  const ResourceRequest demand = resource_request(environment("cpu", 3, 2), "cpu", 0, 8);
  REQUIRE(names(demand) == std::vector<std::string>{"cpu"});
  REQUIRE(demand.devices[0].units == 8);
  REQUIRE(demand.units == 3);
}

TEST_CASE("a run with more threads than cores needs all of them", "[queue][demand]") {
  REQUIRE(resource_request(environment("cpu", 64, 0), "auto", 0, 2).units == 2);
}

TEST_CASE("a run may have any GPU, and has it for itself", "[queue][demand]") {
  for (const std::string device : {"auto", "cuda"}) {
    const ResourceRequest demand = resource_request(environment("cuda", 8, 2), device, 0, 8);
    REQUIRE(names(demand) == std::vector<std::string>{"cuda:0", "cuda:1"});
    REQUIRE(demand.units == gpu_units);
  }
}

TEST_CASE("a GPU that was chosen is the only one", "[queue][demand]") {
  REQUIRE(names(resource_request(environment("cuda", 8, 4), "cuda:2", 0, 8)) ==
          std::vector<std::string>{"cuda:2"});
}

TEST_CASE("more jobs than GPUs share them evenly", "[queue][demand]") {
  const auto units = [](int gpus, int jobs) {
    return resource_request(environment("cuda", 8, gpus), "cuda", jobs, 8).units;
  };
  REQUIRE(units(4, 1) == gpu_units);
  REQUIRE(units(4, 4) == gpu_units);
  REQUIRE(units(4, 5) == gpu_units / 2);
  REQUIRE(units(1, 8) == gpu_units / 8);
  REQUIRE(units(1, 1000) == 1);
}

TEST_CASE("a run of several processes needs a whole GPU for each", "[queue][demand]") {
  const ResourceRequest demand = resource_request(environment("cuda", 8, 4), "cuda", 9, 8, 2);
  REQUIRE(demand.devices.size() == 4);
  REQUIRE(demand.count == 2);
  REQUIRE(demand.units == gpu_units);
  const auto refusal = [](const std::string& device) {
    return tests::error_of([&] { resource_request(environment("cuda", 8, 4), device, 0, 8, 8); });
  };
  REQUIRE(tests::contains(refusal("cuda"), "needs as many GPUs, and this machine has 4"));
  REQUIRE(tests::contains(refusal("cuda:1"), "needs as many GPUs, and cuda:1 is 1"));
  // On a CPU it takes what a single one takes.
  REQUIRE(resource_request(environment("cpu", 3, 2), "cpu", 0, 8, 2).count == 1);
}

TEST_CASE("the units of a GPU can be divided evenly by every common number of jobs",
          "[queue][demand]") {
  for (const int jobs : {1, 2, 3, 4, 6, 8, 12, 24}) REQUIRE(gpu_units % jobs == 0);
}

TEST_CASE("jobs on a CPU share its cores", "[queue][demand]") {
  REQUIRE(threads_for(2, 8) == 4);
  REQUIRE(threads_for(3, 8) == 2);
  REQUIRE(threads_for(5, 2) == 1);
  REQUIRE(threads_for(1, 8) == 8);
}

using tests::TemporaryFolder;
using tests::until;

const LeaseDevice cpu{"cpu", 4};

TEST_CASE("commands that are bound to other cores lease these", "[queue][lease]") {
  const TemporaryFolder folder;
  const LeaseDevice left{"cpu", 2, "", {0, 1}}, right{"cpu", 2, "", {2, 3}};
  const auto one = Lease::try_acquire(folder.path(), left, 2);
  REQUIRE(one);
  CHECK_FALSE(Lease::try_acquire(folder.path(), left, 1));
  const auto other = Lease::try_acquire(folder.path(), right, 2);
  REQUIRE(other);
  CHECK(used_units(folder.path(), cpu) == 4);
  CHECK_FALSE(Lease::try_acquire(folder.path(), cpu, 1));
}

TEST_CASE("units of a device are leased until none are left", "[queue][lease]") {
  TemporaryFolder folder;
  const auto three = Lease::try_acquire(folder.path(), cpu, 3);
  REQUIRE(three);
  REQUIRE(three->device() == "cpu");
  REQUIRE(used_units(folder.path(), cpu) == 3);
  REQUIRE_FALSE(Lease::try_acquire(folder.path(), cpu, 2));
  REQUIRE(used_units(folder.path(), cpu) == 3);
  const auto one = Lease::try_acquire(folder.path(), cpu, 1);
  REQUIRE(one);
  REQUIRE_FALSE(Lease::try_acquire(folder.path(), cpu, 1));
}

TEST_CASE("a lease ends with its object and its units are free again", "[queue][lease]") {
  TemporaryFolder folder;
  { const auto all = Lease::try_acquire(folder.path(), cpu, 4); }
  REQUIRE(used_units(folder.path(), cpu) == 0);
  REQUIRE(Lease::try_acquire(folder.path(), cpu, 4));
}

TEST_CASE("who wants more than a device has gets all of it", "[queue][lease]") {
  TemporaryFolder folder;
  const auto all = Lease::try_acquire(folder.path(), cpu, 100);
  REQUIRE(all);
  REQUIRE(used_units(folder.path(), cpu) == 4);
}

TEST_CASE("devices are leased apart", "[queue][lease]") {
  TemporaryFolder folder;
  const auto first = Lease::try_acquire(folder.path(), {"cuda:0", gpu_units}, gpu_units);
  REQUIRE(first);
  REQUIRE_FALSE(Lease::try_acquire(folder.path(), {"cuda:0", gpu_units}, 1));
  REQUIRE(Lease::try_acquire(folder.path(), {"cuda:1", gpu_units}, gpu_units));
}

TEST_CASE("a lease is held by every process that inherits it, however the others end",
          "[queue][lease]") {
  TemporaryFolder folder;
  auto lease = Lease::try_acquire(folder.path(), cpu, 4);
  const pid_t heir = ::fork();
  if (heir == 0) {
    ::pause();
    ::_exit(0);
  }
  lease.reset();
  REQUIRE(used_units(folder.path(), cpu) == 4);
  REQUIRE_FALSE(Lease::try_acquire(folder.path(), cpu, 1));
  ::kill(heir, SIGKILL);
  ::waitpid(heir, nullptr, 0);
  REQUIRE(used_units(folder.path(), cpu) == 0);
}

TEST_CASE("a lease that is released is held by none of those who share it", "[queue][lease]") {
  const TemporaryFolder folder;
  const auto lease = Lease::try_acquire(folder.path(), cpu, 4);
  const pid_t left_behind = ::fork();
  if (left_behind == 0) {
    ::pause();
    ::_exit(0);
  }
  release_lease(::dup(lease->descriptor()));  // as a supervisor has it from its starter
  CHECK(used_units(folder.path(), cpu) == 0);
  ::kill(left_behind, SIGKILL);
  ::waitpid(left_behind, nullptr, 0);
}

TEST_CASE("nothing is taken of a device that nobody has leased yet", "[queue][lease]") {
  TemporaryFolder folder;
  REQUIRE(used_units(folder / "none", cpu) == 0);
}

TEST_CASE("leases of several devices are had all or not at all", "[queue][lease]") {
  const TemporaryFolder folder;
  const std::vector<LeaseDevice> devices = {
      {"cuda:0", gpu_units}, {"cuda:1", gpu_units}, {"cuda:2", gpu_units}};
  const auto used = [&](size_t device) { return used_units(folder.path(), devices[device]); };
  const auto names = [](const std::vector<Lease>& leases) {
    std::vector<std::string> list;
    for (const Lease& lease : leases) list.push_back(lease.device());
    return list;
  };
  std::optional<Lease> other = Lease::try_acquire(folder.path(), devices[1], 1);
  REQUIRE(other);
  const auto pair = try_acquire_all(folder.path(), devices, 2, gpu_units);
  REQUIRE(names(pair) == std::vector<std::string>{"cuda:0", "cuda:2"});
  {
    const auto none = try_acquire_all(folder.path(), devices, 2, gpu_units);
    REQUIRE(none.empty());
  }
  other.reset();
  REQUIRE(try_acquire_all(folder.path(), devices, 2, gpu_units).empty());
  REQUIRE(used(1) == 0);  // it was free, and is again
  REQUIRE(used(0) == gpu_units);
  REQUIRE(names(try_acquire_all(folder.path(), devices, 1, gpu_units)) ==
          std::vector<std::string>{"cuda:1"});
}

}  // namespace
}  // namespace forge::queue
