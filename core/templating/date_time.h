#pragma once

#include <ctime>
#include <string>

#include "core/templating/objects.h"

namespace forge::templating {

/// A naive date and time, as Python's datetime.now() and datetime.utcnow() give them.
class DateTime : public Object {
 public:
  static DateTime local(double unix_seconds);
  static DateTime utc(double unix_seconds);

  /// strftime of the C library; `%f` gives the microseconds.
  std::string format(const std::string& pattern) const;

  std::string type_name() const override { return "datetime.datetime"; }
  std::string repr() const override;
  std::string str() const override { return iso_format(" "); }
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override;

 private:
  DateTime(const std::tm& parts, int microsecond) : parts_(parts), microsecond_(microsecond) {}
  std::string iso_format(const std::string& separator) const;

  std::tm parts_;
  int microsecond_;
};

}  // namespace forge::templating
