#include "backends/backends.h"

#include <sys/resource.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/config/keys.h"
#include "core/config/own_blocks.h"
#include "core/run/host.h"
#include "core/worker/job.h"

namespace forge::backends {
namespace {

using Json = nlohmann::json;

constexpr const char* descriptions_folder = "backends";  // in the cache

int gpu_devices() {
  int count = 0;
  while (fs::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

double age_in_seconds(const fs::path& file) {
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file);
  return std::chrono::duration<double>(age).count();
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// What may change a worker's answer though its own files stay the same: the machine (a home folder
/// may be shared between many), its cores and GPUs, and the variables that libraries heed.
Json machine_key() {
  Json key = {run::host_name(), usable_cores(), gpu_devices(), worker::version};
  for (const char* name : {"CUDA_VISIBLE_DEVICES",
                           "LD_LIBRARY_PATH",
                           "OMP_NUM_THREADS",
                           "PATH",
                           "PYTHONPATH",
                           "VIRTUAL_ENV"}) {
    key.push_back(environment_variable(name));
  }
  return key;
}

/// The cached answer; nothing where it is older than `longest_seconds` or damaged: damage only
/// means to ask again.
std::optional<worker::BackendInfo> read_description(const fs::path& file, double longest_seconds) {
  try {
    if (age_in_seconds(file) > longest_seconds) return std::nullopt;
    const Json json = worker::object_from_line(read_file(file));
    return worker::BackendInfo{
        std::get<worker::Hello>(worker::event_from_json(json.at("hello"))),
        std::get<worker::Environment>(worker::event_from_json(json.at("environment"))),
        std::get<worker::Supports>(worker::event_from_json(json.at("supports")))};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Caches the answer. A cache that cannot be written costs the time of a start, no more.
void write_description(const fs::path& file, const worker::BackendInfo& info) {
  if (!info.supports) return;  // a later version of the worker may answer: ask again
  try {
    make_directories(file.parent_path());
    write_file_atomic(file,
                      worker::to_line(Json{{"hello", worker::to_json(info.hello)},
                                           {"environment", worker::to_json(info.environment)},
                                           {"supports", worker::to_json(*info.supports)}}));
  } catch (const Error&) {
  }
}

worker::Request describe_request(const std::string& device, int threads) {
  worker::Request request;
  request.job = worker::Job::describe;
  request.device = device;
  request.threads = threads;
  return request;
}

/// A worker to be asked what it is.
struct Question {
  worker::WorkerCommand command;
  worker::Request request;
  double silence_seconds = 0;  ///< after which it is given up
};

/// Starts the worker and asks what it is. Throws Error as worker::run_job does, and where it ends
/// without hello and environment.
worker::BackendInfo ask_worker(worker::Launcher& launcher, const Question& question) {
  std::optional<worker::Hello> hello;
  std::optional<worker::Environment> environment;
  std::optional<worker::Supports> supports;
  worker::run_job(launcher,
                  question.command,
                  question.request,
                  question.silence_seconds,
                  [&](const worker::Event& event) {
                    if (const auto* said = std::get_if<worker::Hello>(&event)) hello = *said;
                    if (const auto* said = std::get_if<worker::Environment>(&event))
                      environment = *said;
                    if (const auto* said = std::get_if<worker::Supports>(&event)) supports = *said;
                  });
  if (!hello || !environment) {
    throw Error("the worker did not say what it runs on", ExitCode::failed);
  }
  return {*hello, *environment, supports};
}

/// The cached answer where it is not older than `longest_seconds`, else the worker's own, which is
/// then cached. `key` holds everything that may change the answer.
worker::BackendInfo ask_once(const fs::path& cache_folder,
                             const Json& key,
                             double longest_seconds,
                             worker::Launcher& launcher,
                             const Question& question) {
  const fs::path cached =
      cache_folder / descriptions_folder / (hash_hex(worker::to_line(key)) + ".json");
  if (const auto info = read_description(cached, longest_seconds)) return *info;
  worker::BackendInfo info = ask_worker(launcher, question);
  write_description(cached, info);
  return info;
}

/// Name, size and time of each file of a folder. A program's modules lie beside it.
Json files_key(const fs::path& folder) {
  constexpr size_t most_files = 10'000;
  std::map<std::string, Json> files;
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (!entry->is_regular_file(gone) || files.size() >= most_files) continue;
    const auto changed = entry->last_write_time(gone).time_since_epoch().count();
    files[entry->path().filename().string()] = {changed, entry->file_size(gone)};
  }
  return files;
}

/// Arguments, environment and files of a command: files beside those that its words name, and files
/// of its working folder.
Json command_key(const worker::WorkerCommand& command) {
  std::set<fs::path> folders = {command.working_folder};
  for (const std::string& word : command.arguments) {
    const fs::path path = command.working_folder / word;
    if (is_file(path)) folders.insert(path.parent_path());
  }
  Json files = Json::object();
  for (const fs::path& folder : folders) files[folder.string()] = files_key(folder);
  return {command.arguments, command.environment, std::move(files)};
}

}  // namespace

worker::WorkerCommand ExternalBackend::command(const worker::Request&) const {
  if (config_.command.empty()) {
    throw Error("backend " + name_ + " has no command", "set external.command");
  }
  worker::WorkerCommand command;
  command.arguments = config_.command;
  command.working_folder = config_.working_directory;
  // A path, unlike a name on the PATH, is relative to the working folder.
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

worker::BackendInfo ExternalBackend::describe(worker::Launcher& launcher,
                                              const std::string& device,
                                              int threads) const {
  const worker::Request request = describe_request(device, threads);
  const worker::WorkerCommand worker = command(request);
  const Question question{worker, request, silence_seconds_};
  // Its libraries may change, which no file of the worker shows: the answer holds for an hour.
  constexpr double longest_seconds = 3600;
  worker::BackendInfo info = cache_folder_.empty()
                                 ? ask_worker(launcher, question)
                                 : ask_once(cache_folder_,
                                            {command_key(worker), device, threads, machine_key()},
                                            longest_seconds,
                                            launcher,
                                            question);
  const std::string& name = info.hello.backend;
  if (name_ != config::external_backend && name != name_) {
    throw Error(
        "backend '" + name_ + "' calls itself '" + name.substr(0, 80) +
            "': its runs would stand in tables under the name of another program",
        "let its hello say \"backend\":\"" + name_ + "\", or give its folder the name that it says",
        ExitCode::failed);
  }
  // Names of backends go into tables and identities; a worker's word for itself is not trusted.
  if (!config::is_allowed_name(name) || name == config::own_backend) {
    throw Error("the external backend calls itself '" + name.substr(0, 80) + "'",
                "its hello must give a name of letters, digits, _ and -, other than libtorch",
                ExitCode::failed);
  }
  return info;
}

namespace {

/// The values of an earlier answer; null where there is none, or it is damaged.
Json read_answer(const fs::path& file) {
  try {
    return is_file(file) ? parse_json(read_file_within(file, worker::max_request_bytes)) : Json();
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// What of an experiment the descriptions of its blocks follow from.
Json described_part(const Json& experiment) {
  Json model = experiment.at("model");
  for (auto& [name, block] : model.at("blocks").items()) block.erase("described");
  const Json none = Json::object();
  const Json& train = experiment.contains("train") ? experiment.at("train") : none;
  return {{"seed", experiment.value("seed", uint64_t{0})},
          {"model", std::move(model)},
          {"train",
           {{"seq_len", train.value("seq_len", config::TrainConfig().seq_len)},
            {"precision", train.value("precision", "float32")}}}};
}

}  // namespace

std::map<std::string, Json> ExternalBackend::describe_blocks(worker::Launcher& launcher,
                                                             const Json& experiment) const {
  worker::Request request;
  request.job = worker::Job::describe_blocks;
  request.experiment = described_part(experiment);
  request.device = "cpu";
  request.threads = 1;
  const worker::WorkerCommand worker = command(request);
  Json asked = request.experiment;
  asked.erase("seed");  // it changes no shape and no count
  const Json key = {command_key(worker), machine_key(), std::move(asked)};
  const fs::path cached = cache_folder_ / "own-blocks" / (hash_hex(worker::to_line(key)) + ".json");
  Json answer = cache_folder_.empty() ? Json() : read_answer(cached);
  if (!answer.is_object()) {
    answer = worker::job_result(launcher, worker, request).value("blocks", Json());
    if (!answer.is_object()) throw Error("the worker described no blocks", ExitCode::failed);
    try {
      if (!cache_folder_.empty()) make_directories(cached.parent_path());
      if (!cache_folder_.empty()) write_file_atomic(cached, json_text(answer));
    } catch (const Error&) {  // it costs the time of a start, no more
    }
  }
  std::map<std::string, Json> blocks;
  for (const auto& [name, description] : answer.items()) blocks[name] = description;
  return blocks;
}

namespace {

/// Says of which config's block a problem is, and what is missing where there is no torch.
[[noreturn]] void rethrow_of(const Error& problem, const config::ResolvedConfig& resolved) {
  const bool no_torch = problem.message().find("needs torch") != std::string::npos;
  const auto layers = resolved.origins.find("model.layers");
  throw Error(no_torch ? "a block in Python needs torch, and the backend pytorch finds none"
                       : problem.message(),
              layers == resolved.origins.end() ? SourceSpan() : layers->second.set_by.origin,
              problem.hint(),
              problem.exit_code());
}

}  // namespace

void describe_own_blocks(config::ResolvedConfig& resolved,
                         const std::vector<fs::path>& folders,
                         worker::Launcher& launcher) {
  if (!config::has_own_blocks(resolved.experiment.model)) return;
  config::require_no_obstacles(resolved);
  for (const config::DeclaredBackend& declared : config::declared_backends(folders)) {
    if (declared.name != config::own_block_backend) continue;
    const ExternalBackend backend(declared.name, declared.external, user_cache_dir());
    try {
      config::set_descriptions(resolved, backend.describe_blocks(launcher, resolved.json));
    } catch (const Error& problem) {
      rethrow_of(problem, resolved);
    }
    return;
  }
  throw Error("no backend pytorch here, which computes blocks in Python");
}

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
              chosen.empty() ? "build forge with FORGE_WITH_TORCH=ON, or set FORGE_WORKER_LIBTORCH"
                             : "FORGE_WORKER_LIBTORCH names no program",
              ExitCode::failed)
      .with_cause(ENOENT);
}

namespace {

/// Throws Error where this shell allows too little memory for Torch: OpenBLAS asks for it for ever.
void require_memory_limits() {
  struct Need {
    __rlimit_resource resource;
    rlim_t least;
    const char* what;
    const char* hint;
  };
  for (const Need& need :
       {Need{RLIMIT_AS, rlim_t{3} << 30, "address space", "'ulimit -v unlimited' allows more"},
        Need{RLIMIT_DATA, rlim_t{1} << 30, "data", "'ulimit -d unlimited' allows more"}}) {
    struct rlimit limit {};
    if (::getrlimit(need.resource, &limit) != 0 || limit.rlim_cur >= need.least) continue;
    throw Error("the worker needs at least " + human_bytes(double(need.least)) + " of " +
                    need.what + ", and this shell allows " + human_bytes(double(limit.rlim_cur)),
                need.hint,
                ExitCode::failed);
  }
}

}  // namespace

worker::WorkerCommand LibtorchBackend::command(const worker::Request& request) const {
  require_memory_limits();
  worker::WorkerCommand command;
  command.arguments = {worker().string()};
  // The same number of threads in every parallel region, so that sums keep their order.
  command.environment["OMP_DYNAMIC"] = "false";
  // OpenBLAS waits for ever for threads that the environment forbids.
  command.environment["OMP_THREAD_LIMIT"] = "2147483647";
  command.environment["OMP_MAX_ACTIVE_LEVELS"] = "1";
  // A thread that spins at a barrier holds the core that the one it waits for needs: on a busy
  // machine that costs a factor of ten. On an idle one, sleeping costs next to nothing.
  command.environment["OMP_WAIT_POLICY"] = "passive";
  if (request.threads > 0) {
    command.environment["OMP_NUM_THREADS"] = std::to_string(request.threads);
  }
  // cuBLAS gives the same bits for the same call only with a workspace of fixed size.
  command.environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8";
  return command;
}

worker::BackendInfo LibtorchBackend::describe(worker::Launcher& launcher,
                                              const std::string& device,
                                              int threads) const {
  const worker::Request request = describe_request(device, threads);
  const fs::path program = worker();
  const auto changed = fs::last_write_time(program).time_since_epoch().count();
  const Json key = {
      program.string(), changed, fs::file_size(program), device, threads, machine_key()};
  constexpr double forever = std::numeric_limits<double>::infinity();
  return ask_once(
      cache_folder_, key, forever, launcher, {command(request), request, silence_seconds_});
}

void forget_descriptions(const fs::path& cache_folder) {
  std::error_code in_use;
  fs::remove_all(cache_folder / descriptions_folder, in_use);  // another one may write to it
}

std::unique_ptr<worker::Backend> make_backend(const config::Experiment& experiment,
                                              const std::filesystem::path& program) {
  if (experiment.backend == config::own_backend)
    return std::make_unique<LibtorchBackend>(
        program, user_cache_dir(), experiment.train.hung_after_seconds);
  return std::make_unique<ExternalBackend>(experiment.backend,
                                           experiment.external,
                                           user_cache_dir(),
                                           experiment.train.hung_after_seconds);
}

namespace {

ListedBackend ask(const worker::Backend& backend, worker::Launcher& launcher) {
  ListedBackend listed;
  listed.name = backend.name();
  try {
    listed.info = backend.describe(launcher, "auto", 0);
  } catch (const Error& problem) {
    listed.problem = problem.message();
    if (!problem.hint().empty()) listed.problem += "\n" + problem.hint();
  }
  return listed;
}

}  // namespace

std::vector<ListedBackend> list_backends(
    const std::vector<fs::path>& folders,
    const fs::path& program,
    worker::Launcher& launcher,
    const std::function<bool(const config::DeclaredBackend&)>& may_start) {
  std::vector<ListedBackend> list = {ask(LibtorchBackend(program, user_cache_dir()), launcher)};
  list[0].description = "forge's own, in C++";
  for (const config::DeclaredBackend& declared : config::declared_backends(folders)) {
    // Without a cache: it is asked again each time.
    const bool is_asked = declared.problem.empty() && may_start(declared);
    list.push_back(is_asked ? ask(ExternalBackend(declared.name, declared.external), launcher)
                            : ListedBackend());
    list.back().name = declared.name;
    list.back().was_asked = is_asked;
    if (!declared.problem.empty()) list.back().problem = declared.problem;
    list.back().description = declared.description;
    list.back().declaration = declared.file;
  }
  return list;
}

}  // namespace forge::backends
