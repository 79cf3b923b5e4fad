#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/worker/messages.h"

namespace forge::run {

/// The files that a worker reads by itself and for which a run's identity has a hash: those that an
/// external backend's command names, and prepared tokens. As they were when an attempt began.
class InputFiles {
 public:
  /// Throws Error for a file of the command that cannot be read; of tokens whoever checks them says
  /// what is wrong.
  InputFiles(const config::ExternalConfig& external, const worker::Request& request);

  /// Those that changed since, each by a short name, "net.py". One whose content is what it was,
  /// though somebody wrote to it, says so: it may have been another in between. A file that is gone
  /// is none of them, since nobody read another content in it; nor are tokens that forge made anew
  /// or that grew, as those of generated text do: these are other files of the name.
  std::vector<std::string> changed() const;

  /// The files' states by their paths, for an attempt after this one whose supervisor is killed.
  std::map<std::string, std::string> states() const;
  /// Those that were written to since such states, and hold what they held: whoever compares their
  /// content with the run's identity has found nothing.
  std::vector<std::string> changed_since(const std::map<std::string, std::string>& states) const;

 private:
  struct State {
    int64_t size = 0, inode = 0, written_ns = 0, changed_ns = 0;

    std::string text() const;
  };
  struct File {
    std::filesystem::path path;
    std::string name;
    std::optional<worker::TokenSource> source;  ///< of tokens
    State state;
    std::string content;  ///< its hash: of tokens tokens_hash
  };

  /// Whether the file may have held something else in between.
  static bool is_suspicious(const File& file, const State& before, const State& now);
  static bool read_state(const std::filesystem::path& path, State& state);
  std::string change_of(const File& file) const;
  void add(File file);
  std::string content_of(const File& file, bool checks_all) const;

  nlohmann::json experiment_;
  std::vector<File> files_;
};

/// The sentence about such files, which stand with commas between.
std::string changed_inputs_text(const std::string& files);

}  // namespace forge::run
