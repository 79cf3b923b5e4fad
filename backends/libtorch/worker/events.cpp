#include "backends/libtorch/worker/events.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "core/base/threads.h"

namespace forge::libtorch {

void EventWriter::send(const worker::Event& event) const {
  const bool is_of_all =
      std::holds_alternative<worker::Hello>(event) || std::holds_alternative<worker::Failed>(event);
  if (!is_first_ && !is_of_all) return;
  const std::string line = worker::to_line(event) + "\n";
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

namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
std::atomic<bool> stop_flag{false};
std::atomic<bool> save_flag{false};

void on_signal(int signal) { (signal == SIGUSR1 ? save_flag : stop_flag) = true; }

}  // namespace

void listen_for_stop() {
  // oneDNN's generated matrix products use the stack pointer as one more register. A handler that
  // interrupts them writes its frame into the heap, so no thread that computes may run one: this
  // thread and those that it starts block the signals, and one thread waits for them.
  sigset_t signals;
  ::sigemptyset(&signals);
  struct sigaction action {};
  action.sa_handler = on_signal;  // for threads that libraries started before main
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    ::sigaddset(&signals, signal);
    ::sigaction(signal, &action, nullptr);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  start_thread([signals] {
    int signal = 0;
    while (true) {
      if (::sigwait(&signals, &signal) == 0) on_signal(signal);
    }
  }).detach();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond its limit is an error, as a full disk is
}

bool stop_requested() { return stop_flag; }

bool take_save_request() { return save_flag.exchange(false); }

}  // namespace forge::libtorch
