#pragma once

#include <string>
#include <vector>

/// RFC 4180: comma-separated values.
namespace forge::report {

/// In quotes where it needs them.
std::string csv_field(const std::string& text);

/// Fields that are quoted already where they need it, as a line.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace forge::report
