#include "core/benchmark/operations.h"

#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::benchmark {
namespace {

using namespace tests;

std::string result_line(const std::string& values) {
  return R"({"event":"result","values":)" + values + "}";
}

Record measure(const Script& script, std::vector<std::string>& told) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  protocol::Request request;
  request.job = protocol::Job::bench_ops;
  request.operation_bench = protocol::OperationBench{{"swiglu"}, {"4m"}, "float64"};
  const auto on_case = [&](const nlohmann::json& values) {
    told.push_back(values.at("operation").get<std::string>());
  };
  return measure_operations(launcher, {{"worker"}, {}}, request, {}, on_case);
}

TEST_CASE("operations are kept with the device's ceilings", "[benchmark]") {
  std::vector<std::string> told;
  const Record record = measure(
      {Says{lines::hello},
       Says{lines::environment},
       Says{result_line(R"({"ceilings":{"memory":{"bytes_per_second":1}}})")},
       Says{result_line(R"({"operation":"swiglu","size":"4m","shape":"1","seconds":0.5})")},
       Says{result_line(R"({"operation":"swiglu_linear","size":"4m","shape":"1","seconds":1})")},
       Exits{}},
      told);
  REQUIRE(told == std::vector<std::string>{"swiglu", "swiglu_linear"});
  REQUIRE(record.kind == Kind::operations);
  REQUIRE(record.operations.size() == 2);
  REQUIRE(record.ceilings.contains("memory"));
  REQUIRE(record.precision == "float64");
  REQUIRE(record.device.name == "test");
  REQUIRE(record.device.backend == "fake");
}

TEST_CASE("what a worker says of an operation is looked at before it is kept", "[benchmark]") {
  const auto error_for = [](const std::string& values) {
    std::vector<std::string> told;
    return error_of([&] {
      measure({Says{lines::hello}, Says{lines::environment}, Says{result_line(values)}, Exits{}},
              told);
    });
  };
  const std::string start = R"({"operation":"swiglu","size":"4m","shape":"1")";
  CHECK(error_for(start + R"(,"seconds":1})").empty());
  CHECK(contains(error_for(start + "}"), "'seconds' is no positive number"));
  CHECK(contains(error_for(start + R"(,"seconds":"nan"})"), "'seconds'"));
  CHECK(contains(error_for(start + R"(,"seconds":-1})"), "'seconds'"));
  CHECK(contains(error_for(start + R"(,"seconds":1,"windows":[1,"a"]})"), "'windows'"));
  CHECK(contains(error_for(R"({"operation":7,"seconds":1})"), "'operation' is no text"));
}

TEST_CASE("a worker that measures no operation is an error", "[benchmark]") {
  std::vector<std::string> told;
  const std::string error = error_of([&] {
    measure({Says{lines::hello}, Says{lines::environment}, Exits{}}, told);
  });
  REQUIRE(contains(error, "measured no operation"));
}

}  // namespace
}  // namespace forge::benchmark
