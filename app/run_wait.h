#pragma once

#include <string>

#include "app/terminal.h"
#include "core/run/run_folder.h"

namespace forge::app {

/// Says on stderr what a command waits for at a run, once it has waited for three seconds and when
/// that changes.
class RunWait {
 public:
  /// `what`: "the worker to start".
  RunWait(const run::RunFolder& folder, std::string what);

  /// To be called all along.
  void tell();

 private:
  const run::RunFolder& folder_;
  const std::string what_;
  const double began_;
  std::string said_;
};

/// Waits for the end of a run that is saving to stop, or for a Ctrl-C of `interrupts`, which may be
/// null. Returns whether it waited.
bool wait_until_stopped(const run::RunFolder& folder, const Interrupts* interrupts = nullptr);

}  // namespace forge::app
