#include "core/base/clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "core/base/error.h"

namespace forge {

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_timestamp(double unix_seconds) {
  constexpr double year_9999 = 253402300799;  // a file may say anything
  const long long milliseconds = std::llround(std::clamp(unix_seconds, 0.0, year_9999) * 1000);
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(milliseconds % 1000));
  return text;
}

std::string compact_timestamp(const std::string& utc_timestamp) {
  std::string compact;
  for (const char c : utc_timestamp.substr(0, utc_timestamp.find('.'))) {
    if (c != '-' && c != ':' && c != 'Z') compact += c;
  }
  return compact + "Z";
}

std::optional<double> time_from(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 12 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) return std::stod(text);
  for (const char* form : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"}) {
    std::tm utc{};
    const char* end = strptime(text.c_str(), form, &utc);
    if (!end || *end != '\0') continue;
    const std::tm read = utc;
    const std::time_t seconds = timegm(&utc);  // of 30 February it makes a day in March
    if (utc.tm_mday == read.tm_mday && utc.tm_mon == read.tm_mon)
      return static_cast<double>(seconds);
  }
  return std::nullopt;
}

double parse_time(const std::string& text) {
  if (const std::optional<double> time = time_from(text)) return *time;
  throw Error("'" + text + "' is no time",
              "write 2026-01-31T12:00:00 (UTC), or whole seconds since 1970");
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace forge
