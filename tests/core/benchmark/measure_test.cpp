#include "core/benchmark/measure.h"

#include "core/base/error.h"
#include "core/run/local_launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

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

std::vector<Subject> subjects(const std::vector<std::string>& names) {
  std::vector<Subject> list;
  for (const std::string& name : names) {
    protocol::Request request;
    request.job = protocol::Job::bench;
    list.push_back({name, {{"worker"}, {}}, request});
  }
  return list;
}

void ignore(double, const std::string&) {}

std::string error_of_script(const Script& script, const std::vector<std::string>& names = {"a"}) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  return error_of([&] { measure_in_turns(launcher, subjects(names), 1, ignore); });
}

TEST_CASE("windows are handed out in turns and input ends one after the other", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock, {good_worker({1, 2, 3}), good_worker({4, 5, 6})});
  const auto measured = measure_in_turns(launcher, subjects({"a", "b"}), 3, ignore);
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
  for (const run::Launch& launch : launcher.launches) {
    REQUIRE(launch.more_input);
    REQUIRE(protocol::request_from_line(launch.input).job == protocol::Job::bench);
  }
}

TEST_CASE("progress goes from nothing to near the end and says what is done", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock, {good_worker({1, 1}), good_worker({1, 1})});
  std::vector<std::string> texts;
  double last = -1;
  measure_in_turns(launcher, subjects({"a", "b"}), 2, [&](double fraction, const auto& text) {
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

TEST_CASE("of several subjects the one that failed is named", "[benchmark]") {
  FakeClock clock;
  FakeLauncher launcher(clock,
                        {good_worker({1}),
                         {{Says{lines::hello},
                           Says{R"({"event":"failed","message":"no GPU","hint":"use the CPU"})"},
                           Exits{{2, 0}}},
                          {}}});
  try {
    measure_in_turns(launcher, subjects({"a", "b"}), 1, ignore);
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
  run::LocalLauncher launcher;
  std::vector<Subject> two = subjects({"a", "b"});
  for (Subject& subject : two) subject.command = {{"/bin/sh", "-c", script}, {}};
  const auto measured = measure_in_turns(launcher, two, 3, ignore);
  REQUIRE(measured[0].windows.size() == 3);
  REQUIRE(measured[1].windows.size() == 3);
}

}  // namespace
}  // namespace forge::benchmark
