#include "core/base/waiting.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace forge {
namespace {

Waiting& of_this_process() {
  static Waiting waiting;
  return waiting;
}

std::string this_host() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// The process of this host that a holder's line names, 0 where it names another host's.
int local_process(const std::string& line) {
  int pid = 0;
  int end = 0;
  if (std::sscanf(line.c_str(), "process %d on %n", &pid, &end) != 1 || end == 0) return 0;
  return line.substr(static_cast<size_t>(end)) == this_host() && pid > 0 ? pid : 0;
}

bool has_ended(int pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

std::string holder_of(const fs::path& file) {
  const std::string holder = FileLock::holder(file);
  const int pid = local_process(holder);
  // Who holds the lock of an ended process has not signed it.
  return holder.empty() || (pid > 0 && has_ended(pid)) ? "another process" : holder;
}

}  // namespace

void set_waiting(Waiting waiting) { of_this_process() = std::move(waiting); }

void say_waiting(const std::string& text) {
  if (of_this_process().say) of_this_process().say(text);
}

int interrupts_so_far() {
  return of_this_process().interrupts ? of_this_process().interrupts() : 0;
}

void require_uninterrupted(int before) {
  if (interrupts_so_far() > before) throw Error("interrupted", ExitCode::failed);
}

namespace {

/// False where `goes_on` ended it.
bool wait_for_room(double seconds, const std::function<bool()>& goes_on) {
  constexpr int pause = 20;  // milliseconds
  const double until = steady_seconds() + seconds;
  while (steady_seconds() < until) {
    if (goes_on && !goes_on()) return false;
    ::poll(nullptr, 0, pause);
  }
  return true;
}

}  // namespace

void call_patiently(const Patience& patience,
                    const std::function<bool()>& goes_on,
                    const std::function<void()>& action) {
  double wait = patience.first_wait;
  for (int again = 0; again < patience.tries_again; ++again, wait *= 2) {
    try {
      return action();
    } catch (const Error& error) {
      if (!has_no_room(error) && !may_pass(error)) throw;
      if (!wait_for_room(wait, goes_on)) throw;
    }
  }
  action();
}

std::optional<FileLock> try_lock_signed(const fs::path& file, double seconds) {
  constexpr int longest_pause = 20;  // milliseconds
  const double until = steady_seconds() + seconds;
  for (int pause = 1;; pause = std::min(2 * pause, longest_pause)) {
    std::optional<FileLock> lock = FileLock::try_acquire(file);
    if (lock) lock->sign(this_host());
    if (lock || steady_seconds() >= until) return lock;
    ::poll(nullptr, 0, pause);
  }
}

int local_holder(const fs::path& file) {
  const int pid = local_process(FileLock::holder(file));
  return pid > 0 && !has_ended(pid) ? pid : 0;
}

FileLock lock_signed(const fs::path& file, const std::function<void(const std::string&)>& waiting) {
  for (double patience = 1;; patience = 0.02) {  // seconds
    if (std::optional<FileLock> lock = try_lock_signed(file, patience)) return std::move(*lock);
    waiting(holder_of(file));
  }
}

FileLock lock_made_folder(const fs::path& folder,
                          const std::function<void(const std::string&)>& waiting) {
  while (true) {
    make_directories(folder);
    try {
      FileLock lock = lock_signed(folder / "lock", waiting);
      if (lock.is_at(folder / "lock")) return lock;  // else it is that of a folder that was removed
    } catch (const Error&) {
      if (path_exists(folder)) throw;
    }
  }
}

FileLock lock_signed(const fs::path& file, const std::string& what) {
  const int before = interrupts_so_far();
  std::string said;
  return lock_signed(file, [&](const std::string& holder) {
    require_uninterrupted(before);
    if (holder != said) say_waiting("waiting for " + what + ": " + holder + " holds it");
    said = holder;
  });
}

}  // namespace forge
