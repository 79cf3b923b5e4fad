#include "backends/describe.h"

#include "core/base/error.h"
#include "core/run/job.h"

namespace forge::backends {
namespace {

constexpr double describe_silence_seconds = 120;  // a first start from a cold network disk is slow

}  // namespace

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
