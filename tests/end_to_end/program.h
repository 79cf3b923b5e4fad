#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/weights/model_files.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {

/// How a program ended and what it printed.
struct Outcome {
  int exit_code = -1;  ///< 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

/// forge in a runs folder of its own, called from the source tree's root. Prepared data is shared
/// by all tests, in the build folder.
class Program {
 public:
  Program();
  /// Ends every supervisor and worker of the runs folder.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Outcome call(const std::vector<std::string>& arguments) const;
  /// Starts the program and returns its process id.
  int start(const std::vector<std::string>& arguments) const;
  static Outcome wait_for(int pid);

  std::filesystem::path runs_dir() const { return folder_ / "runs"; }
  /// The only run folder.
  std::filesystem::path only_run() const;
  /// Events of a run, in order; whole lines alone.
  std::vector<nlohmann::json> events(const std::filesystem::path& run) const;
  /// The last step that the only run has told of, 0 before.
  int64_t steps_done() const;
  /// Process id of the newest worker of the only run, 0 before.
  int worker_pid() const;
  /// What the newest program that was started has printed to stderr until now.
  std::string errors() const;

  std::filesystem::path binary;
  std::filesystem::path working_directory;
  std::map<std::string, std::string> environment;
  /// Calls it as a user whom the rights of files keep out, where the tests run as root.
  bool as_nobody = false;
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

/// Whether the backend pytorch has what it runs on. Where it has not, a test warns.
bool has_python_torch();

/// Options that make a training run last a second: a model of some thousand weights.
std::vector<std::string> tiny(std::vector<std::string> arguments, int steps = 12);

/// A copy of the shipped workspace whose models and quick profile are tiny, for runs that must need
/// no --set. Returns its folder.
std::filesystem::path make_tiny_workspace(const TemporaryFolder& folder);

/// Waits until something is true. The ten minutes after which it returns false are for a program
/// that hangs; no test may depend on how fast this machine is.
bool wait_until(const std::function<bool()>& condition);

/// A process that is stopped (SIGSTOP) for the life of this object, so that its run cannot end
/// while the test does something else with it.
class HeldProcess {
 public:
  explicit HeldProcess(int pid);
  ~HeldProcess();
  HeldProcess(const HeldProcess&) = delete;
  HeldProcess& operator=(const HeldProcess&) = delete;

 private:
  int pid_;
};

/// Makes every training worker of a forge wait before its first event, until it is opened.
class WorkerGate {
 public:
  explicit WorkerGate(Program& forge);
  void open() const;

 private:
  std::filesystem::path file_;
};

/// forge with one trained tiny run of a config.
class Trained {
 public:
  explicit Trained(const std::string& config) {
    const Outcome trained = forge.call(tiny({"run", config}, 4));
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    run = forge.only_run().filename().string();
  }
  nlohmann::json call(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Outcome outcome = forge.call(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return nlohmann::json::parse(outcome.out);
  }
  std::string path(const std::string& name) const { return (forge.folder() / name).string(); }
  std::string hash(const std::filesystem::path& folder) const {
    return weights::content_hash(weights::ModelFiles(folder).tensors());
  }
  Program forge;
  std::string run;
};

}  // namespace forge::tests
