#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/base/files.h"
#include "core/worker/process_settings.h"

namespace forge::worker {

/// How long a started process may live.
enum class Lifetime {
  of_starter,  ///< leads a process group; killed when the thread that started it ends
  own,         ///< leads a session: outlives its starter and the terminal
};

/// A program to be started.
struct SpawnOptions {
  std::vector<std::string> arguments;  ///< the first is the program: a path, or a name on the PATH
  std::map<std::string, std::string> environment;
  bool extends_environment = true;       ///< the starter's own variables are there as well
  std::filesystem::path working_folder;  ///< "": the starter's
  std::array<int, 3> streams = {};       ///< descriptors of stdin, stdout and stderr
  std::vector<int> inherited;            ///< descriptors that it has from `inherited_descriptor` on
  Lifetime lifetime = Lifetime::of_starter;
  /// Its limits, priority, cores and umask; none: the starter's. The folder is working_folder.
  std::optional<ProcessSettings> settings = {};
};

constexpr int inherited_descriptor = 3;

/// Starts a program by Boost.Process with no other descriptors than those named, with default
/// signal handlers and no signal blocked. Of the variables that say where code is loaded from,
/// PATH, LD_LIBRARY_PATH, PYTHONPATH and their like, it gets the absolute items of the starter's
/// alone: whichever folder it starts in, it loads nothing from there that nobody named. Returns its
/// process id when it runs; the caller waits for it. Throws Error (exit code `failed`) when it
/// cannot be started.
pid_t spawn(const SpawnOptions& options);

/// Sends a signal to a started process, or to the group that it leads. Sends none, and says false,
/// for a number that is no started process's: kill(2) takes 0 and -1 for the caller's own group and
/// for all processes.
bool signal_process(pid_t pid, int signal);
bool signal_group(pid_t leader, int signal);

/// open(2), closed when another program is started. Throws Error naming the file.
FileDescriptor open_file(const std::filesystem::path& path, int flags);

}  // namespace forge::worker
