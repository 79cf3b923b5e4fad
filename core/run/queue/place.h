#pragma once

#include <string>

#include "core/run/queue/environment.h"

/// Where on a host a process works: with which program of forge, in which mount namespace, with
/// which cache, and in which job of a scheduler. A run's program may be there in one place alone,
/// as of a container, and so may the word that allows it, the environment that is kept for the run,
/// and its GPU.
namespace forge::queue {

/// Of this process: a hash in eight hexadecimal digits.
std::string own_place();

/// Whether its program is still where it was: without it the process can start no supervisor.
bool is_own_program_there();

/// Of a process that this one starts with such variables.
std::string place_with(const Environment& variables);

}  // namespace forge::queue
