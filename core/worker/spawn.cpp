#include "core/worker/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"

// Version 1 of Boost.Process has a folder of its own in newer releases of Boost. No other file
// includes Boost.Process: its headers take seconds to compile.
#if __has_include(<boost/process/v1/extend.hpp>)
#include <boost/process/v1.hpp>
#include <boost/process/v1/extend.hpp>
namespace bp = boost::process::v1;
#else
#include <boost/process.hpp>
#include <boost/process/extend.hpp>
namespace bp = boost::process;
#endif

namespace forge::worker {
namespace {

std::string limit_hint(int cause) {
  if (cause == EMFILE) return "'ulimit -n' raises the number of files that a process may open";
  if (cause == EAGAIN) return "'ulimit -u' raises the number of processes that a user may have";
  return "";
}

// Between fork and exec only functions are called that signal handlers may call, too: another
// thread may hold any lock.

void close_on_exec_from(int first) {
  // Marked and not closed, as bp::limit_handles would: Boost reports a failing exec through a pipe.
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr int usual_limit = 4096;  // the kernel is older than 5.11
  for (int fd = first; fd < usual_limit; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// A shell starts background programs with SIGINT ignored, nohup with SIGHUP: not this one.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// What Boost.Process calls around fork and exec.
class ChildSetup : public bp::extend::handler {
 public:
  /// Throws Error where a stream cannot be copied.
  explicit ChildSetup(const SpawnOptions& options)
      : options_(&options),
        first_free_(inherited_descriptor + static_cast<int>(options.inherited.size()) + 1) {
    std::vector<int> named(options.streams.begin(), options.streams.end());
    named.insert(named.end(), options.inherited.begin(), options.inherited.end());
    for (const int descriptor : named) sources_.push_back(copy_from(descriptor, first_free_));
    // The child's numbers are taken here, so that Boost's pipe for errors has none of them.
    do {
      reserved_.push_back(copy_from(named[0], 0));
    } while (reserved_.back().get() < first_free_);
  }

  template <class Executor>
  void on_exec_setup(Executor& executor) const {
    if (options_->lifetime == Lifetime::own) {
      ::setsid();
    } else {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != starter_) ::_exit(127);  // the starter died before prctl was in force
    }
    for (size_t target = 0; target < sources_.size(); ++target)
      ::dup2(sources_[target].get(), static_cast<int>(target));
    close_on_exec_from(static_cast<int>(sources_.size()));
    reset_signals();
    const fs::path& folder = options_->working_folder;  // bp::start_dir would ignore an error
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(127);
    // Last: the limits are those of the program.
    if (!options_->settings) return;
    if (const int problem = take_settings(*options_->settings)) {
      executor.set_error(std::error_code(problem, std::system_category()), "settings");
      ::_exit(127);
    }
  }

  /// Boost leaves a child whose exec failed to be waited for.
  template <class Executor>
  void on_error(Executor& executor, const std::error_code&) const {
    if (executor.pid > 0) ::waitpid(executor.pid, nullptr, 0);
  }

 private:
  static FileDescriptor copy_from(int descriptor, int lowest) {
    FileDescriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, lowest));
    if (copy) return copy;
    // The number that is asked for may lie beyond the limit itself.
    const int cause = errno == EINVAL ? EMFILE : errno;
    throw system_error("copy a stream of a program", cause, limit_hint(cause));
  }

  const SpawnOptions* options_;
  int first_free_;                       ///< above all numbers that the child uses
  std::vector<FileDescriptor> sources_;  ///< by the child's number
  std::vector<FileDescriptor> reserved_;
  pid_t starter_ = ::getpid();
};

/// Lists of what a program loads code from. An item that is not absolute means a place below the
/// folder that the program starts in, and an empty one that folder itself, as in
/// `/opt/lib:$LD_LIBRARY_PATH` where the variable was not set. Others may have put files there.
constexpr const char* code_paths[] = {"PATH",
                                      "LD_LIBRARY_PATH",
                                      "LD_PRELOAD",
                                      "LD_AUDIT",
                                      "GCONV_PATH",
                                      "OPENSSL_ENGINES",
                                      "OPENSSL_MODULES",
                                      "PYTHONPATH",
                                      "PYTHONHOME",
                                      "PERL5LIB",
                                      "NODE_PATH",
                                      "COMPILER_PATH",  // torch.compile starts a compiler
                                      "LIBRARY_PATH",
                                      "CPATH",
                                      "C_INCLUDE_PATH",
                                      "CPLUS_INCLUDE_PATH"};

/// The items that mean the same in every folder. `LD_PRELOAD=libtcmalloc.so` is looked for where
/// libraries lie, and its items may be parted by spaces.
std::string absolute_items(const std::string& name, std::string list) {
  const bool names_libraries = name == "LD_PRELOAD" || name == "LD_AUDIT";
  if (names_libraries) std::replace(list.begin(), list.end(), ' ', ':');
  if (name == "LD_LIBRARY_PATH") std::replace(list.begin(), list.end(), ';', ':');
  std::vector<std::string> items = split(list, ':');
  const auto depends_on_folder = [&](const std::string& item) {
    const bool is_library = names_libraries && !item.empty() && item.find('/') == std::string::npos;
    const bool is_beside_program = starts_with(item, "$ORIGIN") || starts_with(item, "${ORIGIN}");
    return !is_library && !is_beside_program && !fs::path(item).is_absolute();
  };
  items.erase(std::remove_if(items.begin(), items.end(), depends_on_folder), items.end());
  return join(items, ":");
}

/// What the program finds set. What is set for it alone stays as it is.
std::map<std::string, std::string> environment_of(const SpawnOptions& options) {
  std::map<std::string, std::string> result;
  if (options.extends_environment) {
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      const size_t equals = text.find('=');
      if (equals != std::string::npos)
        result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  } else {
    result = options.environment;
  }
  for (const char* name : code_paths) {
    const auto found = result.find(name);
    if (found == result.end()) continue;
    found->second = absolute_items(name, found->second);
    if (found->second.empty()) result.erase(found);  // an empty PATH would be the folder itself
  }
  if (options.extends_environment)
    for (const auto& [name, value] : options.environment) result[name] = value;
  return result;
}

/// A name without a slash is looked for on the PATH. Boost's own search makes the locale that the
/// environment names and throws where it is not installed, as that of an ssh client often is.
std::string path_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(absolute_items("PATH", path ? path : ""), ':')) {
    const fs::path candidate = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate.string();
  }
  throw system_error("start '" + name + "'", ENOENT);
}

}  // namespace

pid_t spawn(const SpawnOptions& options) {
  const std::string& program = options.arguments.at(0);
  const fs::path& folder = options.working_folder;
  if (!folder.empty() && ::access((folder / "").c_str(), X_OK) != 0)
    throw system_error("start '" + program + "' in '" + folder.string() + "'", errno);
  bp::environment environment;
  // Not by [], which compares beyond the end of variables that are shorter than the name.
  for (const auto& [name, value] : environment_of(options)) environment.set(name, value);
  ChildSetup setup(options);
  std::error_code failure;
  errno = 0;
  bp::child child(
      bp::exe = path_of_program(program),
      bp::args = std::vector<std::string>(options.arguments.begin() + 1, options.arguments.end()),
      environment,
      setup,
      failure);
  const int cause = failure ? failure.value() : errno;
  const pid_t pid = child.id();
  child.detach();  // the caller waits for it: a child that goes out of scope would be killed
  // Where Boost could not make its pipe it reports no failure, and a child without a number.
  if (failure || pid <= 1) throw system_error("start '" + program + "'", cause, limit_hint(cause));
  return pid;
}

FileDescriptor open_file(const std::filesystem::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file) throw system_error("open '" + path.string() + "'", errno);
  return file;
}

bool signal_process(pid_t pid, int signal) { return pid > 1 && ::kill(pid, signal) == 0; }

bool signal_group(pid_t leader, int signal) { return leader > 1 && ::kill(-leader, signal) == 0; }

}  // namespace forge::worker
