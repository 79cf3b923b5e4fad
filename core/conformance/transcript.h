#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/protocol/messages.h"
#include "core/run/launcher.h"

namespace forge::conformance {

/// All that a worker said from its start to its end.
struct Transcript {
  std::vector<protocol::Event> events;
  std::string wrong_line;      ///< what is wrong with the first line that is no event, ""
  std::string wrong_hint;      ///< and what would be right
  double longest_silence = 0;  ///< seconds without a word that was new, before its last one
  bool was_killed = false;     ///< it did not end by itself
  run::ExitStatus exit;

  template <class Event>
  const Event* last() const {
    const Event* found = nullptr;
    for (const protocol::Event& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found = one;
    }
    return found;
  }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const protocol::Event& event : events) {
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
};

/// Starts the worker and listens until it ends, says something that is no event, says nothing new
/// for `patience_seconds` or talks for `longest_seconds`; then it is killed. Throws Error where it
/// cannot be started.
Transcript listen(
    run::Launcher& launcher,
    const run::Launch& launch,
    double patience_seconds,
    double longest_seconds,
    const std::function<void(const protocol::Event&, run::RunningWorker&)>& on_event = {});

}  // namespace forge::conformance
