#include "backends/libtorch/backend.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/run/local_launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::backends {
namespace {

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
  protocol::Request request;
  request.threads = 3;
  const run::WorkerCommand command = backend.command(request);
  REQUIRE(command.arguments == std::vector<std::string>{worker});
  REQUIRE(command.environment.at("OMP_DYNAMIC") == "false");
  REQUIRE(command.environment.at("OMP_NUM_THREADS") == "3");
  REQUIRE(backend.command({}).environment.count("OMP_NUM_THREADS") == 0);
}

TEST_CASE("describe asks a worker once and then remembers", "[backend]") {
  const TemporaryFolder folder;
  const LibtorchBackend backend(folder / "forge", folder / "cache");
  program(folder / "forge-worker-libtorch");
  FakeClock clock;
  FakeLauncher launcher(clock, {answer, answer, answer, answer});
  const run::BackendInfo info = backend.describe(launcher, "cpu", 2);
  REQUIRE(info.hello.backend == "fake");
  REQUIRE(info.environment.device_name == "test");
  const auto request = protocol::request_from_line(launcher.launches.at(0).input);
  REQUIRE(request.job == protocol::Job::describe);
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
