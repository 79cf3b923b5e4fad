#pragma once

#include "core/protocol/messages.h"

namespace forge::worker {

/// Writes protocol lines to a descriptor, each whole and at once.
class EventWriter {
 public:
  explicit EventWriter(int fd) : fd_(fd) {}
  void send(const protocol::Event& event) const;

 private:
  int fd_;
};

/// Moves this process's stdout aside and returns its descriptor; from here on whatever a library
/// prints to stdout goes to stderr and cannot break a protocol line.
int take_over_stdout();

}  // namespace forge::worker
