#pragma once

#include <functional>
#include <string>

namespace forge::data {

/// Told how far a piece of work is: `fraction` from 0 to 1 within the phase that `phase` names.
/// Called from the thread that started the work; what it throws ends the work. May be empty.
using Progress = std::function<void(double fraction, const std::string& phase)>;

}  // namespace forge::data
