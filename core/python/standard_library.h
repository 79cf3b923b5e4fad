#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "core/python/objects.h"

namespace forge::python {

/// A naive date and time, as Python's datetime.now() and datetime.utcnow() give them.
class DateTime : public Object {
 public:
  static DateTime local(double unix_seconds) { return DateTime(unix_seconds, localtime_r); }
  static DateTime utc(double unix_seconds) { return DateTime(unix_seconds, gmtime_r); }

  /// strftime of the C library; `%f` gives the microseconds.
  std::string format(const std::string& pattern) const;

  std::string type_name() const override { return "datetime.datetime"; }
  std::string repr() const override;
  std::string str() const override { return iso_format(" "); }
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override;

 private:
  DateTime(double unix_seconds, std::tm* (*split)(const std::time_t* seconds, std::tm* parts));
  std::string iso_format(const std::string& separator) const;

  std::tm parts_{};
  int microsecond_;
};

/// Python's os.path on POSIX. Texts only: nothing is looked up on the disk.

/// An absolute part forgets those before it; nothing is normalised.
std::string join_path(const std::vector<std::string>& parts);
std::string normalize_path(const std::string& path);
std::string absolute_path(const std::string& path, const std::string& working_directory);
std::string relative_path(const std::string& path,
                          const std::string& start,
                          const std::string& working_directory);
std::string directory_name(const std::string& path);
std::string base_name(const std::string& path);
/// ("a/b", ".c") of "a/b.c"; leading dots of the file name begin no extension.
std::pair<std::string, std::string> split_extension(const std::string& path);

}  // namespace forge::python
