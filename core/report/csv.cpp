#include "core/report/csv.h"

#include "core/base/text.h"

namespace forge::report {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) { return join(fields, ",") + "\r\n"; }

}  // namespace forge::report
