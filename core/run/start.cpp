#include "core/run/start.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/supervisor.h"
#include "core/run/tail.h"

namespace forge::run {
namespace {

constexpr int inherited_lease = 3;  ///< its descriptor in the supervisor

std::vector<std::string> arguments_of(const RunFolder& folder,
                                      const fs::path& program,
                                      const Inheritance& inheritance) {
  std::vector<std::string> arguments = {program.string(), "supervise", folder.path().string()};
  if (inheritance.lease >= 0) {
    arguments.push_back("--lease");
    arguments.push_back(std::to_string(inherited_lease));
  }
  if (!inheritance.device.empty()) {
    arguments.push_back("--device");
    arguments.push_back(inheritance.device);
  }
  return arguments;
}

/// What posix_spawn needs to know, freed at the end of the scope.
class SpawnSetup {
 public:
  SpawnSetup(const fs::path& log, int lease) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(
        &files_, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    ::posix_spawn_file_actions_adddup2(&files_, 1, 2);
    if (lease >= 0) ::posix_spawn_file_actions_adddup2(&files_, lease, inherited_lease);
    // A pipe of our caller that the supervisor held open would keep that caller waiting for days.
    ::posix_spawn_file_actions_addclosefrom_np(&files_, inherited_lease + (lease >= 0 ? 1 : 0));
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  pid_t spawn(std::vector<std::string> arguments) const {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    const int failure =
        ::posix_spawn(&pid, pointers[0], &files_, &attributes_, pointers.data(), environ);
    if (failure != 0) throw system_error("start '" + arguments[0] + "'", failure);
    return pid;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// Whether the process has ended; it stays to be waited for.
bool has_ended(pid_t pid) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         ended.si_pid != 0;
}

}  // namespace

int start_supervisor(const RunFolder& folder,
                     const fs::path& program,
                     const Inheritance& inheritance,
                     double timeout_seconds) {
  const std::string events_before = last_line(folder.events_file());
  const pid_t pid = SpawnSetup(folder.supervisor_log(), inheritance.lease)
                        .spawn(arguments_of(folder, program, inheritance));
  const double deadline = steady_seconds() + timeout_seconds;
  while (!FileLock::is_held(folder.lock_file())) {
    if (has_ended(pid)) {
      // A short run may be over before we look.
      if (last_line(folder.events_file()) != events_before) return pid;
      const bool storage = wait_for_supervisor(pid) == supervised_storage;
      throw Error("the supervisor of run '" + folder.id() + "' did not start",
                  {},
                  join(last_lines(folder.supervisor_log(), 0, 10, 400), "\n"),
                  storage ? ExitCode::storage : ExitCode::failed);
    }
    if (steady_seconds() > deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      throw Error("the supervisor of run '" + folder.id() + "' did not take its lock within " +
                      human_duration(timeout_seconds),
                  {},
                  "is " + folder.path().string() + " on a file system without flock?",
                  ExitCode::failed);
    }
    ::poll(nullptr, 0, 2);
  }
  return pid;
}

int wait_for_supervisor(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw system_error("wait for the supervisor", errno);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace forge::run
