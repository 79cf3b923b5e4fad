#include "backends/libtorch/backend.h"

#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "backends/describe.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::backends {
namespace {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
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

fs::path LibtorchBackend::cache_file(const protocol::Request& request) const {
  const fs::path program = worker();
  const auto changed = fs::last_write_time(program).time_since_epoch().count();
  return description_file(cache_folder_,
                          {program.string(),
                           changed,
                           fs::file_size(program),
                           request.device,
                           request.threads,
                           machine_key()});
}

run::BackendInfo LibtorchBackend::describe(run::Launcher& launcher,
                                           const std::string& device,
                                           int threads) const {
  const protocol::Request request = describe_request(device, threads);
  const fs::path cached = cache_file(request);
  constexpr double forever = std::numeric_limits<double>::infinity();
  if (const auto info = read_description(cached, forever)) return *info;
  const run::BackendInfo info = ask_worker(launcher, command(request), request);
  write_description(cached, info);
  return info;
}

}  // namespace forge::backends
