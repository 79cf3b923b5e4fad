#include "backends/external/backend.h"

#include <algorithm>
#include <cctype>
#include <set>

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

/// What a library was when it was asked may have changed since, which no file of the worker shows.
constexpr double longest_kept_seconds = 3600;

/// Name, size and time of each file of a folder. A program's modules lie beside it.
nlohmann::json files_key(const fs::path& folder) {
  constexpr size_t most_files = 10'000;
  std::map<std::string, nlohmann::json> files;
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (!entry->is_regular_file(gone) || files.size() >= most_files) continue;
    const auto changed = entry->last_write_time(gone).time_since_epoch().count();
    files[entry->path().filename().string()] = {changed, entry->file_size(gone)};
  }
  return files;
}

/// All that the command's files tell: those beside the ones that its words name, and those of its
/// working folder.
nlohmann::json command_key(const run::WorkerCommand& command) {
  std::set<fs::path> folders = {command.working_folder};
  for (const std::string& word : command.arguments) {
    std::error_code gone;
    const fs::path path = command.working_folder / word;
    if (fs::is_regular_file(path, gone)) folders.insert(path.parent_path());
  }
  nlohmann::json files = nlohmann::json::object();
  for (const fs::path& folder : folders) files[folder.string()] = files_key(folder);
  return {command.arguments, command.environment, std::move(files)};
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
  run::BackendInfo info = ask(launcher, request);
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

run::BackendInfo ExternalBackend::ask(run::Launcher& launcher,
                                      const protocol::Request& request) const {
  const run::WorkerCommand worker = command(request);
  if (cache_folder_.empty()) return ask_worker(launcher, worker, request);
  const fs::path cached = description_file(
      cache_folder_, {command_key(worker), request.device, request.threads, machine_key()});
  if (const auto info = read_description(cached, longest_kept_seconds)) return *info;
  run::BackendInfo info = ask_worker(launcher, worker, request);
  write_description(cached, info);
  return info;
}

}  // namespace forge::backends
