#pragma once

#include <filesystem>
#include <string>

#include "core/conformance/transcript.h"

/// What a worker's words must be like. Each function throws Error that says what is not, with a
/// hint what would be right.
namespace forge::conformance {

/// Throws it.
[[noreturn]] void complain(const std::string& text, const std::string& hint = "");

/// It said hello and environment first, every line was an event, and it ended by itself.
void require_opening(const Transcript& transcript);

/// It ended with that exit status.
void require_exit(const Transcript& transcript, int code);

/// The events of a training run from `first_step` to its end or its stop: their order, their
/// numbers, and the checkpoints that they name below the run folder.
void require_training(const Transcript& transcript,
                      const protocol::Request& request,
                      int64_t first_step);

/// It ended with `failed` and the exit status of a wrong request.
void require_refusal(const Transcript& transcript, const std::string& of_what);

}  // namespace forge::conformance
