#include "core/base/error.h"
#include "core/base/text.h"
#include "core/results/benchmark/benchmark.h"
#include "core/worker/launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::benchmark {
namespace {

using namespace tests;

const std::string ready = R"({"event":"ready","window_steps":4,"tokens_per_step":64})";
const std::string result = R"({"event":"result","values":{"parts":{}}})";

std::string window(double seconds, int steps = 4) {
  return R"({"event":"window","steps":)" + std::to_string(steps) + R"(,"seconds":)" +
         std::to_string(seconds) + "}";
}

WorkerScript good_worker(const std::vector<double>& seconds) {
  WorkerScript script{{Says{lines::hello}, Says{lines::environment}, Says{lines::progress(1)}}, {}};
  script.steps.push_back(Says{ready});
  for (const double time : seconds) {
    script.steps.push_back(Says{lines::progress(9)});
    script.steps.push_back(Says{window(time)});
  }
  script.steps.push_back(Says{result});
  script.steps.push_back(Exits{});
  return script;
}

std::vector<BenchTarget> subjects(const std::vector<std::string>& names) {
  std::vector<BenchTarget> list;
  for (const std::string& name : names) {
    worker::Request request;
    request.job = worker::Job::bench;
    list.push_back({name, {{"worker"}, {}}, request});
  }
  return list;
}

void ignore(double, const std::string&) {}

std::string error_of_script(const Script& script, const std::vector<std::string>& names = {"a"}) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  return error_of([&] { measure_interleaved(launcher, subjects(names), 1, ignore); });
}

TEST_CASE("windows are handed out in turns and input ends one after the other", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock, {good_worker({1, 2, 3}), good_worker({4, 5, 6})});
  const auto measured = measure_interleaved(launcher, subjects({"a", "b"}), 3, ignore);
  const std::string ask = R"({"window":4})";
  REQUIRE(launcher.sent == std::vector<std::string>{"1: " + ask,
                                                    "2: " + ask,
                                                    "1: " + ask,
                                                    "2: " + ask,
                                                    "1: " + ask,
                                                    "2: " + ask,
                                                    "1: end",
                                                    "2: end"});
  REQUIRE(measured.size() == 2);
  REQUIRE(measured[0].windows.size() == 3);
  REQUIRE(measured[0].windows[2].seconds == 3);
  REQUIRE(measured[1].windows[0].seconds == 4);
  REQUIRE(measured[1].ready.tokens_per_step == 64);
  REQUIRE(measured[1].hello.backend == "fake");
  REQUIRE(measured[1].environment.device_name == "test");
  REQUIRE(measured[1].result.contains("parts"));
  for (const worker::Launch& launch : launcher.launches) {
    REQUIRE(launch.keep_stdin_open);
    REQUIRE(worker::request_from_line(launch.input).job == worker::Job::bench);
  }
}

TEST_CASE("progress goes from nothing to near the end and says what is done", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock, {good_worker({1, 1}), good_worker({1, 1})});
  std::vector<std::string> texts;
  double last = -1;
  measure_interleaved(launcher, subjects({"a", "b"}), 2, [&](double fraction, const auto& text) {
    REQUIRE(fraction > last);
    REQUIRE(fraction < 1);
    last = fraction;
    texts.push_back(text);
  });
  REQUIRE(texts.front() == "warming up, a");
  REQUIRE(texts[3] == "window 1 of 2, b");
  REQUIRE(texts.back() == "parts of a step, b");
}

TEST_CASE("a worker that does not know windows is refused", "[benchmark]") {
  const std::string error =
      error_of_script({Says{lines::hello}, Says{lines::environment}, Says{result}, Exits{}});
  REQUIRE(contains(error, "backend 'fake' does not measure in windows"));
  REQUIRE(contains(error, "docs/PROTOCOL.md"));
}

TEST_CASE("what goes wrong in a measurement is told", "[benchmark]") {
  const Script begin = {Says{lines::hello}, Says{lines::environment}};
  const auto with = [&](const Script& rest) {
    Script script = begin;
    script.insert(script.end(), rest.begin(), rest.end());
    return error_of_script(script);
  };
  REQUIRE(contains(with({Exits{}}), "ended before it was told to"));
  REQUIRE(contains(with({Says{ready}, Exits{{1, 0}}}), "exit status 1"));
  REQUIRE(contains(with({Says{ready}, Says{window(1, 3)}}), "4 steps was asked for"));
  REQUIRE(contains(with({Says{ready}, Says{window(0)}}), "4 steps was asked for"));
  REQUIRE(contains(with({Says{ready}, Says{window(1)}, Exits{}}), "without a result"));
  REQUIRE(contains(with({Says{R"({"event":"ready","window_steps":0,"tokens_per_step":1})"}}),
                   "without steps"));
  REQUIRE(contains(with({Says{R"({"event":"failed","message":"out of memory"})"}, Exits{{1, 0}}}),
                   "out of memory"));
}

TEST_CASE("numbers of a measurement that cannot be are refused", "[benchmark][plausible]") {
  const auto fault = [](const std::string& said_ready, const std::string& said_window) {
    std::vector<BenchTarget> targets = subjects({"a"});
    targets[0].request.experiment = {{"train", {{"batch_size", 4}, {"seq_len", 16}}}};
    FakeClock clock;
    FakeLauncher launcher(clock,
                          {{{Says{lines::hello},
                             Says{lines::environment},
                             Says{said_ready},
                             Says{said_window},
                             Says{result},
                             Exits{}},
                            {}}});
    return error_of([&] { measure_interleaved(launcher, targets, 1, ignore); });
  };
  CHECK(fault(ready, window(1)).empty());
  CHECK(contains(fault(R"({"event":"ready","window_steps":4,"tokens_per_step":999999})", window(1)),
                 "steps of 999,999 tokens, and the config has 64"));
  const auto seconds = [](const std::string& number) {
    return R"({"event":"window","steps":4,"seconds":)" + number + "}";
  };
  CHECK(contains(fault(ready, seconds("1e-300")), "'tokens_per_second' is impossible"));
  CHECK(contains(fault(ready, seconds("\"inf\"")), "seconds"));
  CHECK(contains(fault(ready, seconds("-1")), "4 steps was asked for"));
}

TEST_CASE("processes of a subject meet in one place and get the same lines", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(
      clock, {good_worker({1}), {{Says{lines::hello}, Says{lines::environment}, Exits{}}, {}}});
  std::vector<BenchTarget> targets = subjects({"a"});
  targets[0].processes = 2;
  targets[0].devices = {"cuda:0", "cuda:2"};
  const auto measured = measure_interleaved(launcher, targets, 1, ignore);
  REQUIRE(measured[0].processes == 2);
  REQUIRE(measured[0].windows.size() == 1);
  REQUIRE(launcher.launches.size() == 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    INFO("rank " << rank);
    const worker::Launch& launch = launcher.launches[rank];
    REQUIRE(launch.command.environment.at(worker::rank_variable) == std::to_string(rank));
    REQUIRE(launch.input == launcher.launches[0].input);
    REQUIRE(launch.keep_stdin_open);
  }
  const worker::Processes together =
      worker::request_from_line(launcher.launches[0].input).processes.value();
  REQUIRE(together.count == 2);
  REQUIRE(together.devices == targets[0].devices);
  REQUIRE(starts_with(together.rendezvous, "file:/"));
}

TEST_CASE("of several subjects the one that failed is named", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock,
                        {good_worker({1}),
                         {{Says{lines::hello},
                           Says{R"({"event":"failed","message":"no GPU","hint":"use the CPU"})"},
                           Exits{{2, 0}}},
                          {}}});
  try {
    measure_interleaved(launcher, subjects({"a", "b"}), 1, ignore);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    REQUIRE(error.message() == "b: no GPU");
    REQUIRE(error.hint() == "use the CPU");
    REQUIRE(error.exit_code() == ExitCode::usage);
  }
}

TEST_CASE("a real program reads one request for a window after the other", "[benchmark]") {
  const std::string script = "read request; echo '" + lines::hello + "'; echo '" +
                             lines::environment + "'; echo '" + ready +
                             "'; while read line; do echo '" + window(0.5) +
                             "'; echo \"$line\" >&2; done; echo '" + result + "'";
  worker::LocalLauncher launcher;
  std::vector<BenchTarget> two = subjects({"a", "b"});
  for (BenchTarget& subject : two) subject.command = {{"/bin/sh", "-c", script}, {}};
  const auto measured = measure_interleaved(launcher, two, 3, ignore);
  REQUIRE(measured[0].windows.size() == 3);
  REQUIRE(measured[1].windows.size() == 3);
}

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
  worker::Request request;
  request.job = worker::Job::bench;
  const Probe found = probe(launcher, {"a", {{"worker"}, {}}, request}, [](double, const auto&) {});
  REQUIRE(found.seconds_per_step == 0.5);
  REQUIRE(found.memory_bytes == 4096);
}

using namespace tests;

std::string result_line(const std::string& values) {
  return R"({"event":"result","values":)" + values + "}";
}

Record measure(const Script& script, std::vector<std::string>& told) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  worker::Request request;
  request.job = worker::Job::bench_ops;
  request.operation_bench = worker::OperationBench{{"swiglu"}, {"4m"}, "float64"};
  const auto on_case = [&](const nlohmann::json& values) {
    told.push_back(values.at("operation").get<std::string>());
  };
  return measure_operations(launcher, {{"worker"}, {}}, request, {}, on_case);
}

TEST_CASE("links are measured by a group whose first process answers", "[benchmark]") {
  FakeClock clock;
  const auto answer = [&](const std::string& values) {
    const Script first = {
        Says{lines::hello}, Says{lines::environment}, Says{result_line(values)}, Exits{}};
    const Script second = {Says{lines::hello}, Says{lines::environment}, Exits{}};
    FakeLauncher launcher(clock, {{first, {}}, {second, {}}});
    const LinkBench bench = measure_links(
        launcher, {{"worker"}, {}}, worker::Request(), 2, {}, [](const LinkSpeed&) {});
    REQUIRE(launcher.launches.size() == 2);
    CHECK(launcher.launches[1].command.environment.at(worker::rank_variable) == "1");
    const auto request = worker::request_from_line(launcher.launches[1].input);
    CHECK(request.job == worker::Job::bench_links);
    CHECK(request.processes->count == 2);
    return bench;
  };
  const LinkBench bench =
      answer(R"({"operation":"all_gather","bytes":64,"seconds":0.5,"bytes_per_second":64})");
  REQUIRE(bench.links.size() == 1);
  CHECK(bench.links[0].operation == "all_gather");
  CHECK(bench.links[0].seconds == 0.5);
  REQUIRE(contains(
      error_of([&] { answer(R"({"operation":"x","bytes":64,"seconds":0,"bytes_per_second":1})"); }),
      "'seconds'"));
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
  for (const char* ceilings : {R"(7)",
                               R"({"memory":7})",
                               R"({"memory":{"bytes_per_second":0}})",
                               R"({"matrix_product":{"flops":"nan"}})"}) {
    CAPTURE(ceilings);
    CHECK(contains(error_for(R"({"ceilings":)" + std::string(ceilings) + "}"),
                   "the worker's 'ceilings' are no speeds"));
  }
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
