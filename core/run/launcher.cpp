#include "core/run/launcher.h"

#include <cstring>

namespace forge::run {

std::string ExitStatus::describe() const {
  if (signal == 0) return "exit status " + std::to_string(code);
  return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

}  // namespace forge::run
