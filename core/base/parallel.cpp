#include "core/base/parallel.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace forge {
namespace {

/// The calls of one parallel_for. Indices are handed out in order, so each call before one that
/// fails has been started, and its exception, if any, will be seen.
class Calls {
 public:
  Calls(size_t count, const std::function<void(size_t)>& action, const CountProgress& progress)
      : count_(count), end_(count), action_(action), progress_(progress) {}

  void work() {
    for (size_t index = next_++; index < end_; index = next_++) {
      try {
        action_(index);
        if (progress_) report();
      } catch (...) {
        fail(index);
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void report() {
    const std::lock_guard lock(mutex_);
    progress_(++done_, count_);
  }

  void fail(size_t index) {
    const std::lock_guard lock(mutex_);
    end_ = 0;
    if (failure_ && failed_ < index) return;
    failed_ = index;
    failure_ = std::current_exception();
  }

  const size_t count_;
  std::atomic<size_t> next_ = 0, end_;
  const std::function<void(size_t)>& action_;
  const CountProgress& progress_;
  std::mutex mutex_;  ///< of what follows
  std::exception_ptr failure_;
  size_t failed_ = 0;
  size_t done_ = 0;
};

/// None where the machine does not say.
cpu_set_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

}  // namespace

int usable_cores() {
  const cpu_set_t set = allowed_cores();
  return std::max(1, CPU_COUNT(&set));
}

std::vector<int> own_cores() {
  const cpu_set_t set = allowed_cores();
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  const bool are_all = static_cast<long>(cores.size()) >= ::sysconf(_SC_NPROCESSORS_ONLN);
  return are_all ? std::vector<int>() : cores;
}

void parallel_for(size_t count,
                  const std::function<void(size_t)>& action,
                  const CountProgress& progress) {
  Calls calls(count, action, progress);
  const auto cores = static_cast<size_t>(usable_cores());
  std::vector<std::thread> helpers;
  try {
    for (size_t i = 1; i < std::min(cores, count); ++i) helpers.emplace_back([&] { calls.work(); });
  } catch (const std::system_error&) {
    // No more threads for this process: those that it has do the work.
  }
  calls.work();
  for (std::thread& helper : helpers) helper.join();
  calls.rethrow();
}

}  // namespace forge
