#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/protocol/messages.h"
#include "core/run/launcher.h"

/// Measured speed: how it is measured, what is kept of it, and where.
namespace forge::benchmark {

/// A worker to be measured, with a request of the job `bench`.
struct Subject {
  std::string name;
  run::WorkerCommand command;
  protocol::Request request;
};

/// What a worker said of itself, its windows, and the numbers it left with.
struct Measurement {
  protocol::Hello hello;
  protocol::Environment environment;
  protocol::Ready ready;
  std::vector<protocol::Window> windows;
  nlohmann::json result;
};

/// The part of all the work that is done, and what is being done.
using OnProgress = std::function<void(double fraction, const std::string& text)>;

/// Measures subjects in turns: all are started and warmed up one after the other; then each
/// measures one window, then each its second one, and so on, so that a machine that grows slower or
/// faster meanwhile does so for all of them; then each finishes. Only one works at a time. Throws
/// Error that names the subject which failed, as run::JobSession does, or which does not measure in
/// windows.
std::vector<Measurement> measure_in_turns(run::Launcher& launcher,
                                          const std::vector<Subject>& subjects,
                                          int windows,
                                          const OnProgress& on_progress);

}  // namespace forge::benchmark
