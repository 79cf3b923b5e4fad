#pragma once

namespace forge::app {

/// Counts Ctrl-C while it lives, instead of ending the program. SIGTERM, SIGHUP and SIGUSR2 count
/// as the first one.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int count() const;
};

}  // namespace forge::app
