#include "core/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/base/display_text.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"

namespace forge {

std::string SourceSpan::describe() const {
  if (!source) return "";
  std::string place = source->name;
  if (line > 0) place += ":" + std::to_string(line);
  if (line > 0 && column > 0) place += ":" + std::to_string(column);
  if (!source->inline_name.empty()) place += " (inline " + source->inline_name + ")";
  return place;
}

std::string SourceSpan::line_text() const {
  if (!source || line < source->first_line) return "";
  std::string_view rest = source->text;
  for (int skipped = source->first_line; skipped < line; ++skipped) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  return std::string(rest.substr(0, rest.find('\n')));
}

SourceSpan make_span(std::shared_ptr<const SourceText> source, int line, int column) {
  return {std::move(source), line, column, nullptr};
}

Error::Error(const std::string& message, SourceSpan where, std::string hint, ExitCode exit_code)
    : std::runtime_error(message),
      message_(without_pins(message)),
      where_(std::move(where)),
      hint_(without_pins(std::move(hint))),
      exit_code_(exit_code) {}

namespace {

/// The place of the next character at or after a byte of the text.
size_t character_at(std::string_view text, size_t byte) {
  const auto is_within = [&] { return byte < text.size() && (text[byte] & 0xC0) == 0x80; };
  for (int rest = 3; rest > 0 && is_within(); --rest) ++byte;
  return std::min(byte, text.size());
}

/// The source line and a caret under the column, each indented; "" when the line is unknown. Of a
/// long line it is the part around the column.
std::string caret_lines(const SourceSpan& where) {
  constexpr size_t most = 200, most_before = 100;  // bytes
  const std::string line = where.line_text();
  if (line.find_first_not_of(" \t") == std::string::npos) return "";
  const bool is_known = where.column >= 1 && static_cast<size_t>(where.column) <= line.size() + 1;
  const size_t column = is_known ? static_cast<size_t>(where.column) - 1 : 0;
  const bool is_long = line.size() > most;
  const size_t begin =
      is_long && column > most_before ? character_at(line, column - most_before) : 0;
  const size_t end = is_long ? character_at(line, begin + most) : line.size();
  const std::string lines = std::string("\n    ") + (begin > 0 ? "…" : "") +
                            line.substr(begin, end - begin) + (end < line.size() ? "…" : "");
  if (!is_known) return lines;
  std::string pad = begin > 0 ? " " : "";
  for (size_t i = begin; i < column; ++i) pad += line[i] == '\t' ? '\t' : ' ';
  return lines + "\n    " + pad + "^";
}

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

std::string describe(const Error& error) {
  return describe_remark(
      "error: " + tables::printable(error.message()), error.where(), error.hint());
}

std::string describe_remark(const std::string& headline,
                            const SourceSpan& where,
                            const std::string& hint) {
  using tables::printable, tables::printable_lines;
  const std::string place = where.describe();
  std::string text = place.empty() ? "" : printable(place) + ": ";
  text += tables::printable_cell(headline);
  text += printable_lines(caret_lines(where));
  for (auto via = where.via; via; via = via->via)
    text += "\n  used from " + printable(via->describe());
  // Further lines are indented: no name with a line break in it can look like a message of forge.
  const std::string lines = join(split(printable_lines(hint), '\n'), "\n      ");
  if (!hint.empty()) text += "\nhint: " + lines;
  return text;
}

Error system_error(const std::string& what, int errno_value, std::string hint) {
  if (hint.empty() && (errno_value == EACCES || errno_value == EPERM))
    hint = "the permissions there do not let you: name another place, or ask its owner";
  return Error("cannot " + what + ": " + std::strerror(errno_value),
               std::move(hint),
               is_of_storage(errno_value) ? ExitCode::storage : ExitCode::failed)
      .with_cause(errno_value);
}

Error Error::with_cause(int errno_value) const {
  Error error = *this;
  error.cause_ = errno_value;
  return error;
}

bool may_pass(const Error& error) {
  switch (error.cause()) {
    case EAGAIN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EINTR:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENODEV:
    case ENOLCK:
    case ENOMEM:
    case ENOTCONN:  // of a file system in user space whose process is gone
    case EREMOTEIO:
    case ESTALE:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

bool has_no_room(const Error& error) { return error.cause() == ENOSPC || error.cause() == EDQUOT; }

bool is_unreadable(const Error& error) {
  switch (error.cause()) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case ELOOP: return false;  // a link is not followed
    default: return true;
  }
}

Error as_error(const std::exception& problem) {
  if (const auto* error = dynamic_cast<const Error*>(&problem)) return *error;
  if (const auto* refused = dynamic_cast<const std::system_error*>(&problem)) {
    const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(refused);
    if (file && !file->path1().empty())
      return system_error("use '" + file->path1().string() + "'", file->code().value());
    if (file && std::string(file->what()).find("current path") != std::string::npos)
      return system_error("find the current folder",
                          file->code().value(),
                          "it was moved or removed: go to another one with cd");
    if (file) return system_error("use a file or folder", file->code().value());
    if (refused->code() == std::errc::resource_unavailable_try_again)
      return Error("could not start a thread or a process: a limit is reached",
                   "'ulimit -v' (memory) and 'ulimit -u' (processes) show those of this shell; a "
                   "container has limits, too",
                   ExitCode::failed);
    const bool storage = is_of_storage(refused->code().value());
    return Error(refused->what(), storage ? ExitCode::storage : ExitCode::failed);
  }
  if (dynamic_cast<const std::bad_alloc*>(&problem))
    return Error("out of memory", ExitCode::failed);
  return Error(problem.what(),
               "this is a fault of forge: please report it with the command line",
               ExitCode::internal);
}

}  // namespace forge
