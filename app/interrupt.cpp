#include "app/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace forge::app {
namespace {

volatile std::sig_atomic_t interrupts = 0;

/// A second Ctrl-C means more than the first; other signals may come in a row and mean the same.
void on_signal(int signal) {
  if (signal == SIGINT || interrupts == 0) interrupts = interrupts + 1;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts() {
  interrupts = 0;
  set_handler(on_signal);
}

Interrupts::~Interrupts() { set_handler(SIG_DFL); }

int Interrupts::count() const { return interrupts; }

}  // namespace forge::app
