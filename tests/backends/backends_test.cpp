#include <sys/resource.h>

#include <cstdlib>

#include "backends/backends.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/waiting.h"
#include "core/config/backend.h"
#include "core/worker/launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::backends {
namespace {

using namespace tests;

ExternalBackend worker(const std::string& name = "mine") {
  return {name, {{"./worker", "a b", "$HOME"}, "/somewhere", {"A=1", "B=x=y", "C="}}};
}

TEST_CASE("an external command is taken word for word and started in its folder", "[backend]") {
  const worker::WorkerCommand command = worker().command({});
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
  worker::LocalLauncher launcher;
  worker::WorkerCommand command{{"ls"}, {}, folder / "at"};
  const auto started = launcher.start({command, "", folder.path(), folder / "stderr.log"});
  const worker::Output output = started->next(600);
  CHECK(std::get<worker::OutputLine>(output).text == "place");
}

TEST_CASE(
    "a worker that does not say what it is is waited for in words, as long as the config says",
    "[backend][waiting]") {
  const auto said_within = [](double seconds) {
    config::Experiment experiment;
    experiment.backend = "external";
    experiment.external.command = {"sh", "-c", "sleep 600"};
    experiment.train.hung_after_seconds = seconds;
    std::string said;
    set_waiting({[&](const std::string& text) { said += text; }, [] { return 0; }});
    worker::LocalLauncher launcher;
    said += error_of([&] { make_backend(experiment, "forge")->describe(launcher, "cpu", 1); });
    set_waiting({});
    return said;
  };
  const std::string soon = said_within(0.2);
  CHECK(contains(soon, "the worker said nothing for"));
  CHECK_FALSE(contains(soon, "waiting for"));
  const std::string late = said_within(4);
  CHECK(contains(late, "waiting for a worker to answer, for 4s at most"));
  CHECK(contains(late, "sh -c 'sleep 600'"));
  CHECK(contains(late, "the worker said nothing for 4s"));
}

TEST_CASE("a declared backend says its name, another one that is sound", "[backend]") {
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
  CHECK(described("mine", "mine").hello.backend == "mine");
  const std::string other = error_of([&] { described("mine", "theirs"); });
  CHECK(contains(other, "backend 'mine' calls itself 'theirs'"));
  CHECK(contains(other, R"(let its hello say "backend":"mine")"));
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
    const std::string hello =
        R"({"event":"hello","protocol":1,"backend":"mine","backend_version":")" +
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
  worker::LocalLauncher launcher;
  const auto list = list_backends(
      {folder / "backends"}, folder / "forge", launcher, [](const auto&) { return true; });
  REQUIRE(list.size() == 2);
  CHECK(contains(list[0].problem, "forge-worker-libtorch was not found"));
  CHECK(list[1].name == "gone");
  CHECK(list[1].description == "D");
  CHECK_FALSE(list[1].info);
  CHECK(contains(list[1].problem, "backends/gone/gone"));
}

TEST_CASE("a backend that may not be started is listed without being asked", "[backend][hostile]") {
  const TemporaryFolder folder;
  folder.write("backends/theirs/backend.yaml", "description: D\ncommand: [touch, started]\n");
  worker::LocalLauncher launcher;
  const auto list = list_backends(
      {folder / "backends"}, folder / "forge", launcher, [](const auto&) { return false; });
  REQUIRE(list.size() == 2);
  CHECK(list[1].name == "theirs");
  CHECK_FALSE(list[1].was_asked);
  CHECK_FALSE(list[1].info);
  CHECK_FALSE(fs::exists(folder / "backends/theirs/started"));
}

using namespace tests;

std::string program(const fs::path& path) {
  make_directories(path.parent_path());
  write_file_atomic(path, "#!/bin/sh\n");
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

const WorkerScript answer{
    {Says{lines::hello}, Says{lines::environment}, Says{lines::supports}, Exits{}}, {}};

/// Sets an environment variable for its scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST_CASE("the worker is found in a build folder and in an installed tree", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend built(folder / "build/forge", folder / "cache");
  const LibtorchBackend installed(folder / "prefix/bin/forge", folder / "cache");
  const std::string message = error_of([&] { built.worker(); });
  REQUIRE(contains(message, "build/forge-worker-libtorch"));
  REQUIRE(contains(message, "libexec/forge/forge-worker-libtorch"));
  REQUIRE(contains(message, "FORGE_WITH_TORCH"));

  const std::string beside = program(folder / "build/forge-worker-libtorch");
  REQUIRE(built.worker() == beside);
  const std::string libexec = program(folder / "prefix/libexec/forge/forge-worker-libtorch");
  REQUIRE(installed.worker() == libexec);

  const Variable chosen("FORGE_WORKER_LIBTORCH", program(folder / "my-worker"));
  REQUIRE(built.worker() == folder / "my-worker");
}

TEST_CASE("a chosen worker that is not there is an error and not passed over", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  program(folder / "forge-worker-libtorch");
  const Variable chosen("FORGE_WORKER_LIBTORCH", (folder / "none").string());
  REQUIRE(contains(error_of([&] { backend.worker(); }), "FORGE_WORKER_LIBTORCH names no program"));
}

TEST_CASE("the worker's environment fixes what a loss may depend on", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  const std::string worker = program(folder / "forge-worker-libtorch");
  worker::Request request;
  request.threads = 3;
  const worker::WorkerCommand command = backend.command(request);
  REQUIRE(command.arguments == std::vector<std::string>{worker});
  REQUIRE(command.environment.at("OMP_DYNAMIC") == "false");
  REQUIRE(command.environment.at("OMP_THREAD_LIMIT") == "2147483647");
  REQUIRE(command.environment.at("OMP_MAX_ACTIVE_LEVELS") == "1");
  REQUIRE(command.environment.at("OMP_NUM_THREADS") == "3");
  REQUIRE(backend.command({}).environment.count("OMP_NUM_THREADS") == 0);
}

TEST_CASE("limits that are too low for Torch are named before a worker starts",
          "[backend][no_sanitizers]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  program(folder / "forge-worker-libtorch");
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_DATA, &before) == 0);
  struct rlimit low = before;
  low.rlim_cur = rlim_t{900} << 20;
  REQUIRE(::setrlimit(RLIMIT_DATA, &low) == 0);
  const std::string error = error_of([&] { backend.command({}); });
  ::setrlimit(RLIMIT_DATA, &before);
  REQUIRE(contains(error, "at least 1.00 GiB of data"));
  REQUIRE(contains(error, "allows 900"));
}

TEST_CASE("describe asks a worker once and then remembers", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  program(folder / "forge-worker-libtorch");
  FakeClock clock;
  FakeLauncher launcher(clock, {answer, answer, answer, answer});
  const worker::BackendInfo info = backend.describe(launcher, "cpu", 2);
  REQUIRE(info.hello.backend == "fake");
  REQUIRE(info.environment.device_name == "test");
  const auto request = worker::request_from_line(launcher.launches.at(0).input);
  REQUIRE(request.job == worker::Job::describe);
  REQUIRE(request.device == "cpu");
  REQUIRE(request.threads == 2);

  REQUIRE(backend.describe(launcher, "cpu", 2).environment.threads == 2);
  REQUIRE(launcher.launches.size() == 1);
  backend.describe(launcher, "cpu", 1);
  REQUIRE(launcher.launches.size() == 2);
  const Variable other("CUDA_VISIBLE_DEVICES", "1");
  backend.describe(launcher, "cpu", 1);
  REQUIRE(launcher.launches.size() == 3);
}

TEST_CASE("a changed worker or a damaged memory is asked again", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  const fs::path worker = program(folder / "forge-worker-libtorch");
  FakeClock clock;
  FakeLauncher launcher(clock, {answer, answer, answer, answer});
  backend.describe(launcher, "auto", 0);
  write_file_atomic(worker, "#!/bin/sh\n# newer\n");
  fs::permissions(worker, fs::perms::owner_all);
  backend.describe(launcher, "auto", 0);
  REQUIRE(launcher.launches.size() == 2);
  for (const auto& entry : fs::directory_iterator(folder / "cache/backends")) {
    write_file_atomic(entry.path(), "{\"hello\":{}}");
  }
  backend.describe(launcher, "auto", 0);
  REQUIRE(launcher.launches.size() == 3);
}

TEST_CASE("a memory that cannot be kept is no error", "[backend]") {
  const TemporaryFolder folder;
  program(folder / "forge-worker-libtorch");
  const LibtorchBackend backend(folder / "forge", folder.write("file", "") / "cache");
  FakeClock clock;
  FakeLauncher launcher(clock, {answer});
  REQUIRE(backend.describe(launcher, "auto", 0).hello.backend == "fake");
}

TEST_CASE("a worker that does not answer whole is an error", "[backend]") {
  const TemporaryFolder folder;
  program(folder / "forge-worker-libtorch");
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  FakeClock clock;
  FakeLauncher launcher(clock, {{{Says{lines::hello}, Exits{}}, {}}});
  REQUIRE(contains(error_of([&] { backend.describe(launcher, "auto", 0); }),
                   "did not say what it runs on"));
}

}  // namespace
}  // namespace forge::backends
