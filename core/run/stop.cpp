#include "core/run/stop.h"

#include <signal.h>
#include <time.h>

#include <array>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::run {
namespace {

// SIGUSR2 is what a cluster's scheduler can be told to send some time before its SIGTERM.
constexpr std::array<int, 4> stop_signals = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};

// A signal handler can reach nothing but globals.
volatile sig_atomic_t signals_received = 0;

/// A person's second Ctrl-C means more than the first. Other signals may well come in a row, the
/// last one while a checkpoint is being saved.
void count_signal(int signal) {
  if (signal == SIGINT || signals_received == 0) signals_received = signals_received + 1;
}

}  // namespace

struct StopWatch::Handlers {
  std::array<struct sigaction, stop_signals.size()> actions{};
};

StopWatch::StopWatch(fs::path stop_file)
    : stop_file_(std::move(stop_file)), before_(std::make_unique<Handlers>()) {
  signals_received = 0;
  struct sigaction action {};
  action.sa_handler = count_signal;  // without SA_RESTART: a signal ends a wait
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < stop_signals.size(); ++i) {
    ::sigaction(stop_signals[i], &action, &before_->actions[i]);
  }
}

StopWatch::~StopWatch() {
  for (size_t i = 0; i < stop_signals.size(); ++i) {
    ::sigaction(stop_signals[i], &before_->actions[i], nullptr);
  }
}

void wait_for_signal(double seconds) {
  struct timespec time {};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  ::nanosleep(&time, nullptr);
}

std::optional<Stop> StopWatch::asked() {
  if (asked_ == Stop::now) return asked_;
  const int signals = signals_received;
  if (signals > 0) asked_ = signals > 1 ? Stop::now : Stop::save;
  std::error_code missing;
  if (fs::exists(stop_file_, missing)) {
    // Whatever it says but "now", its presence asks for the gentle stop.
    const bool now = trim(read_file(stop_file_)) == "now";
    if (now || !asked_) asked_ = now ? Stop::now : Stop::save;
  }
  return asked_;
}

}  // namespace forge::run
