#pragma once

#include "core/worker/messages.h"

namespace forge::libtorch {

/// Writes protocol lines to a descriptor, each whole and at once. Of several processes of a run the
/// first one speaks; others say hello, and how they failed.
class EventWriter {
 public:
  explicit EventWriter(int fd, bool is_first = true) : fd_(fd), is_first_(is_first) {}
  void send(const worker::Event& event) const;

 private:
  int fd_;
  bool is_first_;
};

/// Moves this process's stdout aside and returns its descriptor; from here on whatever a library
/// prints to stdout goes to stderr and cannot break a protocol line.
int take_over_stdout();

/// From here on SIGTERM, SIGINT, SIGHUP and SIGUSR2 ask for a stop instead of ending the process,
/// and SIGUSR1 for a checkpoint.
void listen_for_stop();

/// Whether a stop was requested; checked between steps.
bool stop_requested();

/// Whether a checkpoint was requested since the last call; checked between steps.
bool take_save_request();

}  // namespace forge::libtorch
