#include "backends/libtorch/worker/event_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace forge::worker {

void EventWriter::send(const protocol::Event& event) const {
  const std::string line = protocol::to_line(event) + "\n";
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t written = ::write(fd_, line.data() + sent, line.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      // Nobody listens any more: the supervisor is gone, and with it the reason to go on.
      std::perror("forge-worker-libtorch: cannot write an event");
      std::_Exit(1);
    }
    sent += static_cast<size_t>(written);
  }
}

int take_over_stdout() {
  const int protocol_fd = ::dup(STDOUT_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return protocol_fd;
}

}  // namespace forge::worker
