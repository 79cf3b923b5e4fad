#pragma once

#include <cstdint>

namespace forge::data {

/// A target that is not scored.
constexpr int32_t unscored_target = -100;

}  // namespace forge::data
