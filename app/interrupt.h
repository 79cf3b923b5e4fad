#pragma once

namespace forge::app {

/// Counts Ctrl-C (and SIGTERM, SIGHUP) while it lives, instead of ending the program.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int count() const;
};

}  // namespace forge::app
