#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

  std::filesystem::path binary;
  std::filesystem::path working_directory;
  std::map<std::string, std::string> environment;
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

/// Options that make a training run last a second: a model of some thousand weights.
std::vector<std::string> tiny(std::vector<std::string> arguments, int steps = 12);

/// A copy of the shipped workspace whose models and quick profile are tiny, for runs that must need
/// no --set. Returns its folder.
std::filesystem::path make_tiny_workspace(const TemporaryFolder& folder);

/// Waits, at most a minute, until something is true; false when it never was.
bool wait_until(const std::function<bool()>& condition);

}  // namespace forge::tests
