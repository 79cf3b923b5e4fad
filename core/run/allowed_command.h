#pragma once

#include <string>

#include "core/config/experiment.h"

namespace forge::run {

/// A run folder may come from anybody: imported, copied, on a shared disk. Its config may name a
/// program, that of an external backend. forge starts such a program only where this user has asked
/// for it: by `forge run` with a config of their own, or in so many words. That is remembered in
/// the user's cache folder, per run, command, environment and working directory, and never in the
/// run folder itself.

/// Whether this user has allowed what the run would start. Always for a backend of forge's own.
bool is_command_allowed(const std::string& run_key, const config::Experiment& experiment);

/// Remembers that this user allows it.
void allow_command(const std::string& run_key, const config::Experiment& experiment);

/// Throws Error with the command where it is not allowed. `run` is the run's name in the message.
void require_allowed_command(const std::string& run,
                             const std::string& run_key,
                             const config::Experiment& experiment);

}  // namespace forge::run
