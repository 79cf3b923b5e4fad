#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace forge::data {

/// Told how far a piece of work is: `fraction` from 0 to 1 within the phase that `phase` names.
/// Called from the thread that started the work; what it throws ends the work. May be empty.
using Progress = std::function<void(double fraction, const std::string& phase)>;

/// Which of the two endless sequences of what is generated.
enum class Split { training, evaluation };

/// A target that is not scored.
constexpr int32_t unscored_target = -100;

}  // namespace forge::data
