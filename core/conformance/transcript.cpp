#include "core/conformance/transcript.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace forge::conformance {
namespace {

constexpr double poll_seconds = 0.2;

/// Repeating the same progress is no sign of life.
bool is_new(const std::vector<protocol::Event>& events, const protocol::Event& event) {
  const auto* progress = std::get_if<protocol::Progress>(&event);
  if (!progress) return true;
  for (auto before = events.rbegin(); before != events.rend(); ++before) {
    const auto* other = std::get_if<protocol::Progress>(&*before);
    if (!other) continue;
    return other->step != progress->step || other->phase != progress->phase ||
           other->fraction != progress->fraction;
  }
  return true;
}

}  // namespace

Transcript listen(
    run::Launcher& launcher,
    const run::Launch& launch,
    double patience_seconds,
    double longest_seconds,
    const std::function<void(const protocol::Event&, run::RunningWorker&)>& on_event) {
  Transcript transcript;
  const auto worker = launcher.start(launch);
  const double began = steady_seconds();
  double heard = began;
  while (true) {
    const run::Output output = worker->next(poll_seconds);
    const double now = steady_seconds();
    if (const auto* exit = std::get_if<run::ExitStatus>(&output)) {
      transcript.exit = *exit;
      return transcript;
    }
    if (const auto* line = std::get_if<run::OutputLine>(&output); line && !transcript.was_killed) {
      try {
        protocol::Event event = protocol::event_from_line(line->text);
        if (is_new(transcript.events, event)) {
          transcript.longest_silence = std::max(transcript.longest_silence, now - heard);
          heard = now;
        }
        transcript.events.push_back(event);
        if (on_event) on_event(event, *worker);
      } catch (const Error& problem) {
        transcript.wrong_line = problem.message();
        transcript.wrong_hint = problem.hint();
      }
    }
    const bool gives_up = !transcript.wrong_line.empty() || now - heard > patience_seconds ||
                          now - began > longest_seconds;
    if (!gives_up || transcript.was_killed) continue;
    worker->kill();
    transcript.was_killed = true;
  }
}

}  // namespace forge::conformance
