#include "backends/describe.h"

#include <chrono>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/run/host.h"
#include "core/run/job.h"

namespace forge::backends {
namespace {

constexpr double describe_silence_seconds = 120;  // a first start from a cold network disk is slow

using Json = nlohmann::json;

int gpu_devices() {
  int count = 0;
  while (fs::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

double age_in_seconds(const fs::path& file) {
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file);
  return std::chrono::duration<double>(age).count();
}

}  // namespace

Json machine_key() {
  Json key = {run::host_name(), usable_cores(), gpu_devices(), protocol::version};
  for (const char* name : {"CUDA_VISIBLE_DEVICES",
                           "LD_LIBRARY_PATH",
                           "OMP_NUM_THREADS",
                           "PATH",
                           "PYTHONPATH",
                           "VIRTUAL_ENV"}) {
    const char* value = std::getenv(name);
    key.push_back(value ? value : "");
  }
  return key;
}

fs::path description_file(const fs::path& cache_folder, const Json& key) {
  return cache_folder / "backends" / (hash_hex(protocol::to_line(key)) + ".json");
}

std::optional<run::BackendInfo> read_description(const fs::path& file, double longest_seconds) {
  try {
    if (age_in_seconds(file) > longest_seconds) return std::nullopt;
    const Json json = protocol::object_from_line(read_file(file));
    return run::BackendInfo{
        std::get<protocol::Hello>(protocol::event_from_json(json.at("hello"))),
        std::get<protocol::Environment>(protocol::event_from_json(json.at("environment"))),
        std::get<protocol::Supports>(protocol::event_from_json(json.at("supports")))};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void write_description(const fs::path& file, const run::BackendInfo& info) {
  if (!info.supports) return;  // a worker that may say more one day: it is asked again
  try {
    make_directories(file.parent_path());
    write_file_atomic(file,
                      protocol::to_line(Json{{"hello", protocol::to_json(info.hello)},
                                             {"environment", protocol::to_json(info.environment)},
                                             {"supports", protocol::to_json(*info.supports)}}));
  } catch (const Error&) {
  }
}

protocol::Request describe_request(const std::string& device, int threads) {
  protocol::Request request;
  request.job = protocol::Job::describe;
  request.device = device;
  request.threads = threads;
  return request;
}

run::BackendInfo ask_worker(run::Launcher& launcher,
                            const run::WorkerCommand& command,
                            const protocol::Request& request) {
  std::optional<protocol::Hello> hello;
  std::optional<protocol::Environment> environment;
  std::optional<protocol::Supports> supports;
  run::run_job(launcher, command, request, describe_silence_seconds, [&](const auto& event) {
    if (const auto* said = std::get_if<protocol::Hello>(&event)) hello = *said;
    if (const auto* said = std::get_if<protocol::Environment>(&event)) environment = *said;
    if (const auto* said = std::get_if<protocol::Supports>(&event)) supports = *said;
  });
  if (!hello || !environment) {
    throw Error("the worker did not say what it runs on", {}, "", ExitCode::failed);
  }
  return {*hello, *environment, supports};
}

}  // namespace forge::backends
