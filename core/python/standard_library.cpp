#include "core/python/standard_library.h"

#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/python/operation.h"
#include "core/python/string_functions.h"

namespace forge::python {
namespace {

std::string padded(int number, size_t width) {
  return pad(std::to_string(number), '>', width, "0");
}

}  // namespace

DateTime::DateTime(double unix_seconds, std::tm* (*split)(const std::time_t*, std::tm*)) {
  constexpr double latest = 253402300799.0;  // the end of the year 9999
  if (!(unix_seconds >= 0)) unix_seconds = 0;
  const long long microseconds = std::llround(std::min(unix_seconds, latest) * 1e6);
  const auto seconds = static_cast<std::time_t>(microseconds / 1'000'000);
  microsecond_ = static_cast<int>(microseconds % 1'000'000);
  split(&seconds, &parts_);
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
    return make_function(
        name, [day = (parts_.tm_wday + 6) % 7](const Arguments&) { return Value::integer(day); });
  }
  if (name == "strftime") {
    return make_function(name, [time = *this](const Arguments& arguments) {
      return Value::string(time.format(Parameters("strftime()", arguments, {"format"}, 1).text(0)));
    });
  }
  if (name == "isoformat") {
    return make_function(name, [time = *this](const Arguments& arguments) {
      return Value::string(
          time.iso_format(Parameters("isoformat()", arguments, {"sep"}).text(0, "T")));
    });
  }
  return std::nullopt;
}

std::string join_path(const std::vector<std::string>& parts) {
  std::string path = parts.empty() ? "" : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (starts_with(parts[i], "/")) {
      path = parts[i];
    } else if (path.empty() || ends_with(path, "/")) {
      path += parts[i];
    } else {
      path += "/" + parts[i];
    }
  }
  return path;
}

std::string normalize_path(const std::string& path) {
  if (path.empty()) return ".";
  // POSIX leaves it open what exactly two leading slashes mean, so they stay.
  const bool two_slashes = starts_with(path, "//") && !starts_with(path, "///");
  const std::string root = two_slashes ? "//" : starts_with(path, "/") ? "/" : "";
  std::vector<std::string> kept;
  for (std::string& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != ".." || (root.empty() && kept.empty()) || (!kept.empty() && kept.back() == "..")) {
      kept.push_back(std::move(part));
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  const std::string normalized = root + join(kept, "/");
  return normalized.empty() ? "." : normalized;
}

std::string absolute_path(const std::string& path, const std::string& working_directory) {
  return normalize_path(join_path({working_directory, path}));
}

std::string relative_path(const std::string& path,
                          const std::string& start,
                          const std::string& working_directory) {
  const auto parts_of = [&](const std::string& text) {
    std::vector<std::string> parts;
    for (std::string& part : split(absolute_path(text, working_directory), '/')) {
      if (!part.empty()) parts.push_back(std::move(part));
    }
    return parts;
  };
  const std::vector<std::string> from = parts_of(start), to = parts_of(path);
  size_t common = 0;
  while (common < from.size() && common < to.size() && from[common] == to[common]) ++common;
  std::vector<std::string> parts(from.size() - common, "..");
  parts.insert(parts.end(), to.begin() + static_cast<std::ptrdiff_t>(common), to.end());
  return parts.empty() ? "." : join(parts, "/");
}

std::string directory_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  std::string head = path.substr(0, slash + 1);
  const size_t last = head.find_last_not_of('/');
  if (last != std::string::npos) head.resize(last + 1);
  return head;
}

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::pair<std::string, std::string> split_extension(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = path.rfind('.');
  const bool has_dot = dot != std::string::npos && dot >= name;
  const size_t first = path.find_first_not_of('.', name);
  if (!has_dot || first == std::string::npos || first > dot) return {path, ""};
  return {path.substr(0, dot), path.substr(dot)};
}

}  // namespace forge::python
