#include "core/base/error.h"

#include <cerrno>
#include <cstring>

namespace forge {

Error::Error(const std::string& message, SourceSpan where, std::string hint, ExitCode exit_code)
    : std::runtime_error(message),
      message_(message),
      where_(std::move(where)),
      hint_(std::move(hint)),
      exit_code_(exit_code) {}

namespace {

/// The source line and a caret under the column, each indented; "" when the line is unknown.
std::string caret_lines(const SourceSpan& where) {
  const std::string line = where.line_text();
  if (line.find_first_not_of(" \t") == std::string::npos) return "";
  std::string lines = "\n    " + line;
  if (where.column < 1 || where.column > static_cast<int>(line.size()) + 1) return lines;
  std::string pad;
  for (int i = 0; i < where.column - 1; ++i) pad += line[i] == '\t' ? '\t' : ' ';
  return lines + "\n    " + pad + "^";
}

}  // namespace

std::string describe(const Error& error) {
  return describe_remark("error: " + error.message(), error.where(), error.hint());
}

std::string describe_remark(const std::string& headline,
                            const SourceSpan& where,
                            const std::string& hint) {
  const std::string place = where.describe();
  std::string text = place.empty() ? "" : place + ": ";
  text += headline;
  text += caret_lines(where);
  for (auto via = where.via; via; via = via->via) text += "\n  used from " + via->describe();
  if (!hint.empty()) text += "\nhint: " + hint;
  return text;
}

namespace {

bool is_of_storage(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EROFS: return true;
    default: return false;
  }
}

}  // namespace

Error system_error(const std::string& what, int errno_value, std::string hint) {
  return Error("cannot " + what + ": " + std::strerror(errno_value),
               {},
               std::move(hint),
               is_of_storage(errno_value) ? ExitCode::storage : ExitCode::failed);
}

}  // namespace forge
