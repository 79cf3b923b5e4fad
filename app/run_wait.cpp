#include "app/run_wait.h"

#include <chrono>
#include <iostream>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/files.h"

namespace forge::app {

RunWait::RunWait(const run::RunFolder& folder, std::string what)
    : folder_(folder), what_(std::move(what)), began_(steady_seconds()) {}

void RunWait::tell() {
  constexpr double patience = 3;  // seconds
  if (steady_seconds() - began_ < patience) return;
  const std::string stopped = folder_.stopped_processes().text();
  const std::string text = stopped.empty() ? what_ : what_ + "; " + stopped;
  if (text != said_) std::cerr << "waiting for " << text << "\n";
  said_ = text;
}

bool wait_until_stopped(const run::RunFolder& folder, const Interrupts* interrupts) {
  const auto is_stopping = [&] { return path_exists(folder.stop_file()) && folder.is_running(); };
  if (!is_stopping()) return false;
  std::cerr << tables::printable(folder.id()) << " is stopping; it is resumed after that\n";
  RunWait wait(folder, "run '" + folder.id() + "' to stop");
  while (is_stopping() && !(interrupts && interrupts->count() > 0)) {
    wait.tell();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace forge::app
