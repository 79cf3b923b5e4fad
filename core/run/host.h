#pragma once

#include <string>

namespace forge::run {

/// Name of this machine.
std::string host_name();

}  // namespace forge::run
