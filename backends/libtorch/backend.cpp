#include "backends/libtorch/backend.h"

#include <unistd.h>

#include <cstdlib>

#include "backends/describe.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/run/host.h"

namespace forge::backends {
namespace {

using Json = nlohmann::json;

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int gpu_devices() {
  int count = 0;
  while (fs::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

/// What was kept of an earlier describe, or nothing: damage only means to ask again.
std::optional<run::BackendInfo> read_cached(const fs::path& file) {
  try {
    const Json json = protocol::object_from_line(read_file(file));
    return run::BackendInfo{
        std::get<protocol::Hello>(protocol::event_from_json(json.at("hello"))),
        std::get<protocol::Environment>(protocol::event_from_json(json.at("environment"))),
        std::get<protocol::Supports>(protocol::event_from_json(json.at("supports")))};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void write_cached(const fs::path& file, const run::BackendInfo& info) {
  if (!info.supports) return;  // a worker of another age: it is asked again
  try {
    make_directories(file.parent_path());
    write_file_atomic(file,
                      protocol::to_line(Json{{"hello", protocol::to_json(info.hello)},
                                             {"environment", protocol::to_json(info.environment)},
                                             {"supports", protocol::to_json(*info.supports)}}));
  } catch (const Error&) {
    // A cache that cannot be written costs half a second a start, no more.
  }
}

}  // namespace

fs::path LibtorchBackend::worker() const {
  const std::string name = "forge-worker-libtorch";
  const std::string chosen = environment_variable("FORGE_WORKER_LIBTORCH");
  std::vector<fs::path> places;
  if (!chosen.empty()) {
    places = {fs::absolute(chosen)};
  } else {
    const fs::path folder = program_.parent_path();
    places = {folder / name, folder.parent_path() / "libexec" / "forge" / name};
  }
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place) && ::access(place.c_str(), X_OK) == 0) return place;
    tried.push_back(place.string());
  }
  throw Error("the worker program " + name + " was not found: " + join(tried, ", "),
              {},
              chosen.empty() ? "build forge with FORGE_WITH_TORCH=ON, or set FORGE_WORKER_LIBTORCH"
                             : "FORGE_WORKER_LIBTORCH names no program",
              ExitCode::failed);
}

run::WorkerCommand LibtorchBackend::command(const protocol::Request& request) const {
  run::WorkerCommand command;
  command.arguments = {worker().string()};
  // The same number of threads in every parallel region, so that sums keep their order.
  command.environment["OMP_DYNAMIC"] = "false";
  // A thread that spins at a barrier holds the core that the one it waits for needs: on a busy
  // machine that costs a factor of ten, on an idle one waiting asleep costs next to nothing.
  command.environment["OMP_WAIT_POLICY"] = "passive";
  if (request.threads > 0) {
    command.environment["OMP_NUM_THREADS"] = std::to_string(request.threads);
  }
  // cuBLAS gives the same bits for the same call only with a workspace of fixed size.
  command.environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8";
  return command;
}

/// Named after everything that may change the answer, the machine included: a home folder may be
/// shared between many.
fs::path LibtorchBackend::cache_file(const protocol::Request& request) const {
  const fs::path program = worker();
  const auto changed = fs::last_write_time(program).time_since_epoch().count();
  const Json key = {program.string(),
                    changed,
                    fs::file_size(program),
                    request.device,
                    request.threads,
                    run::host_name(),
                    usable_cores(),
                    gpu_devices(),
                    environment_variable("CUDA_VISIBLE_DEVICES"),
                    environment_variable("LD_LIBRARY_PATH"),
                    environment_variable("OMP_NUM_THREADS"),
                    protocol::version};
  return cache_folder_ / "backends" / (hash_hex(protocol::to_line(key)) + ".json");
}

run::BackendInfo LibtorchBackend::describe(run::Launcher& launcher,
                                           const std::string& device,
                                           int threads) const {
  const protocol::Request request = describe_request(device, threads);
  const fs::path cached = cache_file(request);
  if (const auto info = read_cached(cached)) return *info;
  const run::BackendInfo info = ask_worker(launcher, command(request), request);
  write_cached(cached, info);
  return info;
}

}  // namespace forge::backends
