#include "core/run/start.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/run/supervisor.h"
#include "core/worker/spawn.h"

namespace forge::run {
namespace {

std::vector<std::string> arguments_of(const RunFolder& folder,
                                      const fs::path& program,
                                      const SupervisorStart& start) {
  std::vector<std::string> arguments = {
      program.string(), "supervise", fs::absolute(folder.path()).string()};
  if (!start.leases.empty()) {
    arguments.push_back("--lease");
    arguments.push_back(std::to_string(worker::inherited_descriptor));
  }
  if (!start.devices.empty()) {
    arguments.push_back("--device");
    arguments.push_back(join(start.devices, ","));
  }
  if (start.stop_after > 0) {
    arguments.push_back("--stop-after");
    arguments.push_back(std::to_string(start.stop_after));
  }
  return arguments;
}

pid_t spawn_supervisor(const RunFolder& folder,
                       const fs::path& program,
                       const SupervisorStart& start) {
  const FileDescriptor input = worker::open_file("/dev/null", O_RDONLY);
  const FileDescriptor log =
      open_own_file(folder.supervisor_log(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  worker::SpawnOptions options;
  options.arguments = arguments_of(folder, program, start);
  options.streams = {input.get(), log.get(), log.get()};
  options.inherited = start.leases;
  options.lifetime = worker::Lifetime::own;
  options.extends_environment = !start.environment;
  if (start.environment) options.environment = *start.environment;
  options.environment[host_name_variable] = host_name();
  options.settings = start.settings;
  options.working_folder = worker::folder_to_start_in(
      start.settings ? start.settings->folder : worker::own_settings().folder);
  try {
    return worker::spawn(options);
  } catch (const Error& problem) {
    throw NoProcess(problem.message(), problem.hint(), problem.exit_code());
  }
}

/// Whether it is known that a supervisor holds the run's lock.
bool is_seen_running(const RunFolder& folder) {
  try {
    return folder.is_running();
  } catch (const Error&) {
    return false;  // the next look may tell
  }
}

/// Whether the process has ended; it stays to be waited for.
bool has_ended(pid_t pid) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         ended.si_pid != 0;
}

}  // namespace

int start_supervisor(const RunFolder& folder,
                     const fs::path& program,
                     const SupervisorStart& start,
                     double timeout_seconds) {
  const std::string events_before = last_line(folder.events_file());
  const pid_t pid = spawn_supervisor(folder, program, start);
  const double deadline = steady_seconds() + timeout_seconds;
  while (!is_seen_running(folder)) {
    if (has_ended(pid)) {
      // A short run may be over before we look.
      if (last_line(folder.events_file()) != events_before) return pid;
      const std::optional<int> code = wait_for_supervisor(pid, 0);
      std::vector<std::string> words = last_lines(folder.supervisor_log(), 0, 10, 400);
      std::string reason;  // the run's record keeps it without the hint
      const std::string prefix = "error: ";
      // Half of a program that is being installed, or one that was killed, says nothing of a run.
      const bool is_programs = std::none_of(
          words.begin(), words.end(), [&](const auto& line) { return starts_with(line, prefix); });
      if (!words.empty()) {
        reason = ": " + (starts_with(words[0], prefix) ? words[0].substr(prefix.size()) : words[0]);
        words.erase(words.begin());
      }
      if (!words.empty() && starts_with(words[0], "hint: ")) words[0].erase(0, 6);
      throw Error("the supervisor of run '" + folder.id() + "' did not start" + reason,
                  join(words, "\n"),
                  code == supervised_storage ? ExitCode::storage : ExitCode::failed)
          .with_cause(code == supervised_refused || is_programs ? EAGAIN : 0);
    }
    if (steady_seconds() > deadline) {
      worker::signal_process(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      // The machine is slow, and would be so for every other run.
      throw NoProcess("the supervisor of run '" + folder.id() + "' did not take its lock within " +
                          human_duration(timeout_seconds),
                      "the machine may be short of memory, or the disk of " +
                          folder.path().string() + " be slow or without flock",
                      ExitCode::failed);
    }
    ::poll(nullptr, 0, 2);
  }
  return pid;
}

std::optional<int> wait_for_supervisor(int pid, double seconds) {
  const double deadline = steady_seconds() + seconds;
  while (!has_ended(pid)) {
    if (steady_seconds() > deadline) return std::nullopt;
    ::poll(nullptr, 0, 2);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw system_error("wait for the supervisor", errno);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace forge::run
