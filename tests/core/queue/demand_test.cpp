#include "core/queue/demand.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

protocol::Environment environment(const std::string& type, int threads, int gpus) {
  protocol::Environment environment;
  environment.device_type = type;
  environment.threads = threads;
  environment.devices = {"cpu"};
  for (int i = 0; i < gpus; ++i) environment.devices.push_back("cuda:" + std::to_string(i));
  return environment;
}

std::vector<std::string> names(const Demand& demand) {
  std::vector<std::string> names;
  for (const Device& device : demand.devices) names.push_back(device.name);
  return names;
}

TEST_CASE("a run on a CPU needs as many cores as it has threads", "[queue][demand]") {
  const Demand demand = demand_of(environment("cpu", 3, 2), "cpu", 0, 8);
  REQUIRE(names(demand) == std::vector<std::string>{"cpu"});
  REQUIRE(demand.devices[0].units == 8);
  REQUIRE(demand.units == 3);
}

TEST_CASE("a run with more threads than cores needs all of them", "[queue][demand]") {
  REQUIRE(demand_of(environment("cpu", 64, 0), "auto", 0, 2).units == 2);
}

TEST_CASE("a run may have any GPU, and has it for itself", "[queue][demand]") {
  for (const std::string device : {"auto", "cuda"}) {
    const Demand demand = demand_of(environment("cuda", 8, 2), device, 0, 8);
    REQUIRE(names(demand) == std::vector<std::string>{"cuda:0", "cuda:1"});
    REQUIRE(demand.units == gpu_units);
  }
}

TEST_CASE("a GPU that was chosen is the only one", "[queue][demand]") {
  REQUIRE(names(demand_of(environment("cuda", 8, 4), "cuda:2", 0, 8)) ==
          std::vector<std::string>{"cuda:2"});
}

TEST_CASE("more jobs than GPUs share them evenly", "[queue][demand]") {
  const auto units = [](int gpus, int jobs) {
    return demand_of(environment("cuda", 8, gpus), "cuda", jobs, 8).units;
  };
  REQUIRE(units(4, 1) == gpu_units);
  REQUIRE(units(4, 4) == gpu_units);
  REQUIRE(units(4, 5) == gpu_units / 2);
  REQUIRE(units(1, 8) == gpu_units / 8);
  REQUIRE(units(1, 1000) == 1);
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

}  // namespace
}  // namespace forge::queue
