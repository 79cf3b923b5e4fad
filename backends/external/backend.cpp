#include "backends/external/backend.h"

#include <algorithm>
#include <cctype>

#include "backends/describe.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/backend.h"

namespace forge::backends {
namespace {

/// Names of backends go into tables and identities; a worker's word for itself is not trusted.
bool is_sound_name(const std::string& name) {
  constexpr size_t longest = 64;
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= longest &&
         std::all_of(name.begin(), name.end(), is_allowed) && name != config::own_backend;
}

}  // namespace

run::WorkerCommand ExternalBackend::command(const protocol::Request&) const {
  if (config_.command.empty()) {
    throw Error("backend " + name_ + " has no command", {}, "set external.command");
  }
  run::WorkerCommand command;
  command.arguments = config_.command;
  command.working_folder = config_.working_directory;
  // A path, unlike a name that is looked for on the PATH, is meant from where the program starts.
  std::string& program = command.arguments[0];
  if (program.find('/') != std::string::npos)
    program = (command.working_folder / program).lexically_normal().string();
  for (const std::string& entry : config_.environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    command.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return command;
}

run::BackendInfo ExternalBackend::describe(run::Launcher& launcher,
                                           const std::string& device,
                                           int threads) const {
  const protocol::Request request = describe_request(device, threads);
  run::BackendInfo info = ask_worker(launcher, command(request), request);
  if (name_ != config::external_backend) {
    info.hello.backend = name_;
  } else if (!is_sound_name(info.hello.backend)) {
    throw Error("the external backend calls itself '" + info.hello.backend.substr(0, 80) + "'",
                {},
                "its hello must give a name of letters, digits, _ and -, other than libtorch",
                ExitCode::failed);
  }
  return info;
}

}  // namespace forge::backends
