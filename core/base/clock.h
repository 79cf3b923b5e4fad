#pragma once

#include <string>

namespace forge {

/// Seconds since the Unix epoch, with fraction.
double unix_time();

/// UTC as "2026-11-21T03:40:12.345Z".
std::string utc_timestamp(double unix_seconds);
inline std::string utc_timestamp() { return utc_timestamp(unix_time()); }

/// Seconds of a clock that never jumps; only differences mean something.
double steady_seconds();

}  // namespace forge
