#include "core/worker/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "core/base/error.h"

namespace forge::worker {
namespace {

/// The strings as execvpe takes them; they point into `strings`.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (added.count(text.substr(0, text.find('='))) == 0) variables.push_back(text);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

// Between fork and exec only functions are called that signal handlers may call, too: another
// thread may hold any lock.

void close_on_exec_from(int first) {
  // Marked and not closed: the pipe that reports a failing exec is among them.
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr int usual_limit = 4096;  // the kernel is older than 5.11
  for (int fd = first; fd < usual_limit; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// 0, or the error.
int set_up_descriptors(const SpawnOptions& options) {
  // Copied out of the way first, because they may have each other's numbers.
  constexpr int out_of_the_way = 10;
  std::array<int, 4> sources = {
      options.streams[0], options.streams[1], options.streams[2], options.inherited};
  for (int& source : sources) {
    if (source >= 0 && (source = ::fcntl(source, F_DUPFD_CLOEXEC, out_of_the_way)) < 0)
      return errno;
  }
  for (int target = 0; target < 4; ++target) {
    const int source = sources[static_cast<size_t>(target)];
    if (source >= 0 && ::dup2(source, target) < 0) return errno;
  }
  close_on_exec_from(inherited_descriptor + (options.inherited >= 0 ? 1 : 0));
  return 0;
}

/// A shell starts background programs with SIGINT ignored, nohup with SIGHUP: not this one.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// In the child. Returns the error of what failed.
int become(const SpawnOptions& options,
           const std::vector<char*>& arguments,
           const std::vector<char*>& environment,
           pid_t starter) {
  if (options.lifetime == Lifetime::own) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != starter) ::_exit(127);  // the starter died before prctl was in force
  }
  if (const int problem = set_up_descriptors(options)) return problem;
  reset_signals();
  if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0) return errno;
  ::execvpe(arguments[0], arguments.data(), environment.data());
  return errno;
}

}  // namespace

pid_t spawn(const SpawnOptions& options) {
  std::vector<std::string> words = options.arguments;
  std::vector<std::string> variables = environment_with(options.environment);
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(variables);
  const auto fail = [&](int problem) {
    return system_error("start '" + words.at(0) + "'", problem);
  };

  int ends[2];  // closed by a successful exec; until then the child writes its error here
  if (::pipe2(ends, O_CLOEXEC) != 0) throw fail(errno);
  const FileDescriptor report(ends[0]);
  FileDescriptor writer(::fcntl(ends[1], F_DUPFD_CLOEXEC, 20));  // no stream's number
  ::close(ends[1]);
  if (!writer) throw fail(errno);
  const pid_t starter = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw fail(errno);
  if (pid == 0) {
    const int problem = become(options, arguments, environment, starter);
    if (::write(writer.get(), &problem, sizeof problem) < 0) ::_exit(126);
    ::_exit(127);
  }
  writer.reset();
  int problem = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.get(), &problem, sizeof problem);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  throw fail(problem);
}

FileDescriptor open_file(const std::filesystem::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file) throw system_error("open '" + path.string() + "'", errno);
  return file;
}

}  // namespace forge::worker
