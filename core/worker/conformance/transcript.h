#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::conformance {

/// All that a worker said from its start to its end.
struct Transcript {
  std::vector<worker::Event> events;
  std::string wrong_line;      ///< what is wrong with the first line that is no event, ""
  std::string wrong_hint;      ///< and what would be right
  double longest_silence = 0;  ///< seconds without a word that was new, before its last one
  bool was_killed = false;     ///< it did not end by itself
  worker::ExitStatus exit;

  template <class Event>
  const Event* last() const {
    const Event* found = nullptr;
    for (const worker::Event& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found = one;
    }
    return found;
  }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const worker::Event& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
};

/// Starts the worker and listens until it ends, says something that is no event, says nothing new
/// for `patience_seconds` or talks for `longest_seconds`; then it is killed. Throws Error where it
/// cannot be started.
Transcript run_worker(
    worker::Launcher& launcher,
    const worker::Launch& launch,
    double patience_seconds,
    double longest_seconds,
    const std::function<void(const worker::Event&, worker::RunningWorker&)>& on_event = {});

// What a worker's words must be like. Each function throws Error that says what is not, with a
// hint what would be right.

/// It said hello and environment first, every line was an event, and it ended by itself.
void require_opening(const Transcript& transcript);

/// It did not say `failed`, and ended with exit status 0.
void require_success(const Transcript& transcript);

/// It ended with that exit status.
void require_exit(const Transcript& transcript, int code);

/// The events of a training run from `first_step` to its end or its stop: their order, their
/// numbers, and the checkpoints that they name below the run folder.
void require_training(const Transcript& transcript,
                      const worker::Request& request,
                      int64_t first_step);

/// It ended with `failed` and the exit status of a wrong request.
void require_refusal(const Transcript& transcript, const std::string& of_what);

}  // namespace forge::conformance
