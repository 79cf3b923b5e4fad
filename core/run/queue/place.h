#pragma once

#include <sys/types.h>

#include <string>

/// Where on a host a process works: in which mount namespace, and with which cache. A run's program
/// may be there in one of them alone, as of a container, and so may the word that allows it and the
/// environment that is kept for the run.
namespace forge::queue {

/// Of this process: a hash in eight hexadecimal digits.
std::string own_place();

/// Of a process of this user's; "" where it is gone or cannot be looked at.
std::string place_of(pid_t process);

}  // namespace forge::queue
