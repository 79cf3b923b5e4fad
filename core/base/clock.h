#pragma once

#include <optional>
#include <string>

namespace forge {

/// Seconds since the Unix epoch, with fraction.
double unix_time();

/// UTC as "2026-11-21T03:40:12.345Z".
std::string utc_timestamp(double unix_seconds);
inline std::string utc_timestamp() { return utc_timestamp(unix_time()); }

/// The same for a file's name: "20261121T034012Z".
std::string compact_timestamp(const std::string& utc_timestamp);

/// Seconds since the Unix epoch of "2026-11-21T03:40:12" (UTC, with or without a final Z), of a
/// date alone, or of such seconds themselves; none for anything else.
std::optional<double> time_from(const std::string& text);
/// The same. Throws Error for anything else.
double parse_time(const std::string& text);

/// Seconds of a clock that never jumps; only differences mean something.
double steady_seconds();

}  // namespace forge
