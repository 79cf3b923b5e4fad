#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "core/base/clock.h"

namespace forge::tests {

/// Waits until the condition holds; false after half a minute.
inline bool until(const std::function<bool()>& condition) {
  const double deadline = steady_seconds() + 30;
  while (!condition()) {
    if (steady_seconds() > deadline) return false;
    ::usleep(1000);
  }
  return true;
}

/// Whether a process runs no more; one that only waits to be reaped by its parent counts as gone.
inline bool gone(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return true;
  const size_t state = stat.rfind(')') + 2;
  return state >= stat.size() || stat[state] == 'Z' || stat[state] == 'X';
}

}  // namespace forge::tests
