#include "core/templating/date_time.h"

#include <array>
#include <cmath>

#include "core/templating/operation_error.h"
#include "core/templating/parameters.h"
#include "core/templating/string_functions.h"

namespace forge::templating {
namespace {

/// Whole microseconds, split into seconds and the rest.
std::pair<std::time_t, int> split_time(double unix_seconds) {
  constexpr double latest = 253402300799.0;  // the end of the year 9999
  if (!(unix_seconds >= 0)) unix_seconds = 0;
  const long long microseconds = std::llround(std::min(unix_seconds, latest) * 1e6);
  return {static_cast<std::time_t>(microseconds / 1'000'000),
          static_cast<int>(microseconds % 1'000'000)};
}

std::string padded(int number, size_t width) {
  return pad(std::to_string(number), '>', width, "0");
}

}  // namespace

DateTime DateTime::local(double unix_seconds) {
  const auto [seconds, microsecond] = split_time(unix_seconds);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return DateTime(parts, microsecond);
}

DateTime DateTime::utc(double unix_seconds) {
  const auto [seconds, microsecond] = split_time(unix_seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return DateTime(parts, microsecond);
}

std::string DateTime::format(const std::string& pattern) const {
  if (pattern.empty()) return "";
  std::string expanded;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%') {
      expanded += pattern[i];
      continue;
    }
    ++i;
    if (next == 'f') {
      expanded += padded(microsecond_, 6);
    } else if (next != 'z' && next != 'Z') {  // a naive time has no zone
      expanded += '%';
      if (next) expanded += next;
    }
  }
  if (expanded.size() > 1000) throw OperationError("the date format is too long");
  std::array<char, 32768> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), expanded.c_str(), &parts_);
  return std::string(buffer.data(), size);
}

std::string DateTime::iso_format(const std::string& separator) const {
  const std::string text = format("%Y-%m-%d") + separator + format("%H:%M:%S");
  return microsecond_ == 0 ? text : text + "." + padded(microsecond_, 6);
}

std::string DateTime::repr() const {
  std::string text = "datetime.datetime(" + std::to_string(parts_.tm_year + 1900) + ", " +
                     std::to_string(parts_.tm_mon + 1) + ", " + std::to_string(parts_.tm_mday) +
                     ", " + std::to_string(parts_.tm_hour) + ", " + std::to_string(parts_.tm_min);
  if (parts_.tm_sec != 0 || microsecond_ != 0) text += ", " + std::to_string(parts_.tm_sec);
  if (microsecond_ != 0) text += ", " + std::to_string(microsecond_);
  return text + ")";
}

std::vector<std::string> DateTime::attribute_names() const {
  return {"year",
          "month",
          "day",
          "hour",
          "minute",
          "second",
          "microsecond",
          "strftime",
          "isoformat",
          "weekday"};
}

std::optional<Value> DateTime::attribute(const std::string& name) {
  if (name == "year") return Value::integer(parts_.tm_year + 1900);
  if (name == "month") return Value::integer(parts_.tm_mon + 1);
  if (name == "day") return Value::integer(parts_.tm_mday);
  if (name == "hour") return Value::integer(parts_.tm_hour);
  if (name == "minute") return Value::integer(parts_.tm_min);
  if (name == "second") return Value::integer(parts_.tm_sec);
  if (name == "microsecond") return Value::integer(microsecond_);
  if (name == "weekday") {
    return make_function(name, [day = (parts_.tm_wday + 6) % 7](Evaluator&, const Arguments&) {
      return Value::integer(day);
    });
  }
  if (name == "strftime") {
    return make_function(name, [time = *this](Evaluator&, const Arguments& arguments) {
      return Value::string(time.format(Parameters("strftime()", arguments, {"format"}, 1).text(0)));
    });
  }
  if (name == "isoformat") {
    return make_function(name, [time = *this](Evaluator&, const Arguments& arguments) {
      return Value::string(
          time.iso_format(Parameters("isoformat()", arguments, {"sep"}).text(0, "T")));
    });
  }
  return std::nullopt;
}

}  // namespace forge::templating
