#include "tests/end_to_end/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/files.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

std::filesystem::path output_file(const std::filesystem::path& folder, const char* name) {
  return folder / name;
}

/// In the child: streams to files, environment, folder, then the program.
[[noreturn]] void become(const Program& program, const std::vector<std::string>& arguments) {
  const auto redirect = [&](const char* name, int flags, int fd) {
    const int opened = ::open(output_file(program.folder().path(), name).c_str(), flags, 0666);
    ::dup2(opened, fd);
    ::close(opened);
  };
  redirect("in", O_CREAT | O_TRUNC | O_RDONLY, STDIN_FILENO);
  redirect("out", O_CREAT | O_TRUNC | O_WRONLY, STDOUT_FILENO);
  redirect("err", O_CREAT | O_TRUNC | O_WRONLY, STDERR_FILENO);
  for (const auto& [name, value] : program.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (::chdir(program.working_directory.c_str()) != 0) ::_exit(127);
  constexpr uid_t nobody = 65534;
  if (program.as_nobody && ::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(127);
  std::vector<char*> argv = {const_cast<char*>(program.binary.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

Program::Program()
    : binary(std::filesystem::path(FORGE_BUILD_DIR) / "forge"),
      working_directory(tests_dir().parent_path()) {
  environment["FORGE_RUNS_DIR"] = runs_dir().string();
  environment["FORGE_RETRY_WAITS"] = "0,0,0";
  environment["FORGE_CACHE_DIR"] = (std::filesystem::path(FORGE_BUILD_DIR) / "test-cache").string();
  environment["NO_COLOR"] = "1";
}

Program::~Program() {
  std::error_code missing;
  for (const auto& run : std::filesystem::directory_iterator(runs_dir(), missing)) {
    if (!FileLock::is_held(run.path() / "lock")) continue;
    std::ofstream(run.path() / "stop") << "now";
    wait_until([&] { return !FileLock::is_held(run.path() / "lock"); });
  }
}

int Program::start(const std::vector<std::string>& arguments) const {
  const int pid = ::fork();
  if (pid == 0) become(*this, arguments);
  return pid;
}

Outcome Program::wait_for(int pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

Outcome Program::call(const std::vector<std::string>& arguments) const {
  Outcome outcome = wait_for(start(arguments));
  outcome.out = read_file(output_file(folder_.path(), "out"));
  outcome.err = read_file(output_file(folder_.path(), "err"));
  return outcome;
}

std::filesystem::path Program::only_run() const {
  std::filesystem::path found;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(runs_dir(), missing)) {
    if (std::filesystem::exists(entry.path() / "run.json")) found = entry.path();
  }
  return found;
}

std::vector<nlohmann::json> Program::events(const std::filesystem::path& run) const {
  std::vector<nlohmann::json> events;
  std::ifstream file(run / "events.jsonl");
  for (std::string line; std::getline(file, line) && !file.eof();)
    events.push_back(nlohmann::json::parse(line));
  return events;
}

int64_t Program::steps_done() const {
  const std::filesystem::path run = only_run();
  int64_t step = 0;
  if (run.empty()) return step;
  for (const nlohmann::json& event : events(run)) {
    if (event.at("event") == "train") step = event.at("step");
  }
  return step;
}

int Program::worker_pid() const {
  int pid = 0;
  for (const nlohmann::json& event : events(only_run())) {
    if (event.at("event") == "attempt") pid = event.at("pid");
  }
  return pid;
}

std::string Program::errors() const { return read_file(output_file(folder_.path(), "err")); }

HeldProcess::HeldProcess(int pid) : pid_(pid) {
  if (pid_ <= 0 || ::kill(pid_, SIGSTOP) != 0)
    throw std::runtime_error("there is no process " + std::to_string(pid_) + " to hold");
}

HeldProcess::~HeldProcess() { ::kill(pid_, SIGCONT); }

WorkerGate::WorkerGate(Program& forge) : file_(forge.folder() / "open-gate") {
  const std::filesystem::path script = forge.folder().write(
      "gated-worker",
      "#!/bin/sh\n"
      "read -r request\n"
      "case \"$request\" in *'\"job\":\"train\"'*)\n"
      "  while [ ! -e '" +
          file_.string() +
          "' ]; do sleep 0.02; done;;\n"
          "esac\n"
          "exec '" +
          (std::filesystem::path(FORGE_BUILD_DIR) / "forge-worker-libtorch").string() +
          "' <<REQUEST\n$request\nREQUEST\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  forge.environment["FORGE_WORKER_LIBTORCH"] = script.string();
}

void WorkerGate::open() const { write_file_atomic(file_, ""); }

bool has_python_torch() {
  static const bool has = std::system("/usr/bin/python3 -c 'import torch, numpy' 2>&-") == 0;
  if (!has) WARN("no python3-torch here: the backend pytorch is not tested");
  return has;
}

std::vector<std::string> tiny(std::vector<std::string> arguments, int steps) {
  for (const std::string setting : {"model.hidden_size=16",
                                    "model.mlp.intermediate_size=24",
                                    "model.num_layers=1",
                                    "model.attention.num_heads=2",
                                    "model.vocab_size=300",
                                    "tokenizer.vocab_size=300",
                                    "train.batch_size=2",
                                    "train.seq_len=16",
                                    "train.eval_rows=4",
                                    "train.eval_batch_size=4",
                                    "train.log_every=2",
                                    "train.eval_every=4"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  arguments.insert(arguments.end(),
                   {"--set", "train.max_steps=" + std::to_string(steps), "--threads", "1"});
  return arguments;
}

std::filesystem::path make_tiny_workspace(const TemporaryFolder& folder) {
  const std::filesystem::path workspace = folder / "workspace";
  for (const char* part : {"forge_workspace", "projects", "templates"}) {
    std::filesystem::create_directories(workspace);
    std::filesystem::copy(tests_dir().parent_path() / part,
                          workspace / part,
                          std::filesystem::copy_options::recursive);
  }
  const auto edit = [&](const std::string& file, const std::map<std::string, std::string>& lines) {
    std::string text = read_file(workspace / "templates" / file);
    for (const auto& [line, instead] : lines) {
      const size_t at = text.find(line);
      if (at == std::string::npos) throw std::runtime_error(file + " has no '" + line + "'");
      text.replace(at, line.size(), instead);
    }
    write_file_atomic(workspace / "templates" / file, text);
  };
  edit("models/llama_4M.yaml",
       {{"vocab_size: 2000", "vocab_size: 300"},
        {"hidden_size: 256", "hidden_size: 16"},
        {"num_layers: 4", "num_layers: 1"},
        {"num_heads: 4", "num_heads: 2"},
        {"intermediate_size: 768", "intermediate_size: 24"}});
  edit("data/byte_level_bpe_2k.yaml", {{"vocab_size: 2000", "vocab_size: 300"}});
  edit("train/tiny.yaml",
       {{"batch_size: 8", "batch_size: 2"},
        {"seq_len: 128", "seq_len: 16"},
        {"max_steps: 300", "max_steps: 12"},
        {"eval_rows: 64", "eval_rows: 4"}});
  return workspace;
}

bool wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace forge::tests
