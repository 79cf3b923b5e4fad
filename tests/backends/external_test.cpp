#include "backends/external/backend.h"

#include "backends/backends.h"
#include "core/config/backend.h"
#include "core/run/local_launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::backends {
namespace {

using namespace tests;

ExternalBackend worker(const std::string& name = "mine") {
  return {name, {{"./worker", "a b", "$HOME"}, "/somewhere", {"A=1", "B=x=y", "C="}}};
}

TEST_CASE("an external command is taken word for word and started in its folder", "[backend]") {
  const run::WorkerCommand command = worker().command({});
  CHECK(command.arguments == std::vector<std::string>{"/somewhere/worker", "a b", "$HOME"});
  CHECK(command.working_folder == "/somewhere");
  CHECK(command.environment ==
        std::map<std::string, std::string>{{"A", "1"}, {"B", "x=y"}, {"C", ""}});
  const ExternalBackend on_path("mine", {{"awk"}, "/somewhere", {}});
  CHECK(on_path.command({}).arguments[0] == "awk");
}

TEST_CASE("the folder of the command is where the program starts, whatever the launch says",
          "[backend]") {
  const TemporaryFolder folder;
  folder.write("at/place", "");
  run::LocalLauncher launcher;
  run::WorkerCommand command{{"ls"}, {}, folder / "at"};
  const auto started = launcher.start({command, "", folder.path(), "/dev/null"});
  const run::Output output = started->next(10);
  CHECK(std::get<run::OutputLine>(output).text == "place");
}

TEST_CASE("a declared backend goes by its name, another by the worker's if that is sound",
          "[backend]") {
  FakeClock clock;
  const auto hello = [](const std::string& name) {
    return WorkerScript{{Says{R"({"event":"hello","protocol":1,"backend":")" + name +
                              R"(","backend_version":"1","numerics_version":1})"},
                         Says{lines::environment},
                         Says{lines::supports},
                         Exits{}},
                        {}};
  };
  const auto described = [&](const std::string& declared, const std::string& said) {
    FakeLauncher launcher(clock, {hello(said)});
    return worker(declared).describe(launcher, "cpu", 1);
  };
  CHECK(described("mine", "theirs").hello.backend == "mine");
  CHECK(described("external", "theirs").hello.backend == "theirs");
  CHECK(described("external", "theirs").supports->jobs.size() == 2);
  for (const char* name : {"libtorch", "../up", "", "a b"})
    CHECK(contains(error_of([&] { described("external", name); }), "calls itself"));
}

TEST_CASE("what a worker says of itself is kept until a file beside it changes", "[backend]") {
  const TemporaryFolder folder;
  folder.write("worker/main.py", "1");
  folder.write("worker/module.py", "1");
  int started = 0;
  const auto version = [&] {
    FakeClock clock;
    const std::string hello = R"({"event":"hello","protocol":1,"backend":"b","backend_version":")" +
                              std::to_string(started) + R"(","numerics_version":1})";
    FakeLauncher launcher(
        clock,
        {WorkerScript{{Says{hello}, Says{lines::environment}, Says{lines::supports}, Exits{}},
                      {}}});
    const ExternalBackend backend(
        "mine", {{"python3", "main.py"}, (folder / "worker").string(), {}}, folder / "cache");
    const std::string said = backend.describe(launcher, "cpu", 1).hello.backend_version;
    started += static_cast<int>(launcher.launches.size());
    return said;
  };
  CHECK(version() == "0");
  CHECK(version() == "0");
  CHECK(started == 1);
  folder.write("worker/module.py", "22");
  CHECK(version() == "1");
  CHECK(started == 2);
}

TEST_CASE("a backend that cannot be started is listed with the reason", "[backend]") {
  const TemporaryFolder folder;
  folder.write("backends/gone/backend.yaml", "description: D\ncommand: [./gone]\n");
  run::LocalLauncher launcher;
  const auto list = list_backends({folder / "backends"}, folder / "forge", launcher);
  REQUIRE(list.size() == 2);
  CHECK(contains(list[0].problem, "forge-worker-libtorch was not found"));
  CHECK(list[1].name == "gone");
  CHECK(list[1].description == "D");
  CHECK_FALSE(list[1].info);
  CHECK(contains(list[1].problem, "backends/gone/gone"));
}

}  // namespace
}  // namespace forge::backends
