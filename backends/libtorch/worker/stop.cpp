#include "backends/libtorch/worker/stop.h"

#include <csignal>

namespace forge::worker {
namespace {

volatile std::sig_atomic_t stop_flag = 0;

void on_signal(int) { stop_flag = 1; }

}  // namespace

void listen_for_stop() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return stop_flag != 0; }

}  // namespace forge::worker
