#pragma once

#include <functional>

#include "core/base/error.h"

namespace forge::config {

/// A mistake in a config that does not hide the others.
struct Problem {
  enum class Kind {
    unknown_key,
    wrong_value,   ///< of a wrong type, or out of its limits
    missing_key,   ///< one that the schema asks for
    disagreement,  ///< keys that do not go together
    missing_file,  ///< that a key names
    unsupported,   ///< known by name alone: forge has nothing that could do it
  };
  Kind kind;
  Error error;

  /// Whether the config can be looked at all the same: what is missing is missing on this machine.
  bool only_hinders_running() const {
    return kind == Kind::missing_file || kind == Kind::unsupported;
  }
};

/// Told of each mistake; reading goes on. Where there is none to tell, the first one is thrown.
using ProblemSink = std::function<void(const Problem&)>;

/// Runs `action`; what it throws goes to the sink, where there is one. Returns whether it
/// succeeded.
template <class Action>
bool attempt(const ProblemSink& sink, Problem::Kind kind, Action action) {
  if (!sink) {
    action();
    return true;
  }
  try {
    action();
    return true;
  } catch (const Error& error) {
    sink({kind, error});
    return false;
  }
}

}  // namespace forge::config
