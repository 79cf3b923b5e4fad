#include "core/worker/plausible.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::worker {

void require_not_negative(const std::string& name, double value) {
  if (!(value < 0)) return;
  throw Error("'" + name + "' is negative: " + shortest(value), ExitCode::failed);
}

void require_duration(const std::string& name, double seconds) {
  require_not_negative(name, seconds);
  if (std::isfinite(seconds)) return;
  throw Error("'" + name + "' is no number of seconds: " + shortest(seconds), ExitCode::failed);
}

void require_speed(double tokens_per_second) {
  constexpr double fastest = 1e15;  // a token takes a millionth of a nanosecond
  require_not_negative("tokens_per_second", tokens_per_second);
  if (!(tokens_per_second > fastest)) return;
  throw Error("'tokens_per_second' is impossible: " + shortest(tokens_per_second),
              ExitCode::failed);
}

void require_pace(int64_t tokens, double seconds) {
  require_duration("seconds", seconds);
  if (tokens > 0) require_speed(static_cast<double>(tokens) / seconds);
}

}  // namespace forge::worker
