#pragma once

#include <optional>
#include <string>

#include "core/protocol/messages.h"
#include "core/run/launcher.h"

namespace forge::run {

/// What a backend says of itself and of this machine.
struct BackendInfo {
  protocol::Hello hello;
  protocol::Environment environment;
  std::optional<protocol::Supports> supports = {};  ///< none: it did not say
};

/// A program that trains, seen from forge's side. Const; starts nothing but in `describe`.
class Backend {
 public:
  virtual ~Backend() = default;
  /// As the config's `backend` names it.
  virtual std::string name() const = 0;
  /// The worker's program and environment for a request. Throws Error when it is not installed.
  virtual WorkerCommand command(const protocol::Request& request) const = 0;
  /// Asks a worker what it is and would run on for `device` and `threads` of a request.
  virtual BackendInfo describe(Launcher& launcher,
                               const std::string& device,
                               int threads) const = 0;
};

}  // namespace forge::run
