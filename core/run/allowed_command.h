#pragma once

#include <string>

#include "core/config/experiment.h"
#include "core/run/identity.h"

namespace forge::run {

/// A run folder may come from anybody: imported, copied, on a shared disk. Its config may name a
/// program, that of an external backend. forge starts such a program only where this user has asked
/// for it: by `forge run` with a config of their own, or in so many words. That is remembered in
/// the user's cache folder, never in the run folder itself, by the SHA-256 of all that decides what
/// would run: the whole identity, command, environment and working directory, and the code of
/// blocks.

/// Whether this user has allowed what the run would start. Always for a backend of forge's own.
bool is_command_allowed(const Identity& identity, const config::Experiment& experiment);

/// Remembers that this user allows it.
void allow_command(const Identity& identity, const config::Experiment& experiment);

/// Throws Error with the command where it is not allowed. `run` is the run's name in the message.
void require_allowed_command(const std::string& run,
                             const Identity& identity,
                             const config::Experiment& experiment);

}  // namespace forge::run
