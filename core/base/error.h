#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace forge {

/// A text that was read: a template file, one of its inline templates, a table file, a --set
/// argument. Shared by every span that points into it, so that an error can show the line.
struct SourceText {
  std::string name;         ///< what to show before the line number: a path, or "command line"
  std::string inline_name;  ///< name of the inline template within the file, "" for the file's own
  std::string text;         ///< as read, before any processing
  int first_line = 1;       ///< line of the file on which `text` begins
};

/// A place in a text and how it came to be used. Copied freely.
struct SourceSpan {
  std::shared_ptr<const SourceText> source;  ///< null: the place is unknown
  int line = 0;                              ///< 1-based line of the file, 0: unknown
  int column = 0;                            ///< 1-based, counted in bytes, 0: unknown
  std::shared_ptr<const SourceSpan> via;     ///< the extends or include that led here, or null

  explicit operator bool() const { return source != nullptr; }

  /// "file:line:column", with " (inline NAME)" for an inline template; "" when unknown.
  std::string describe() const;
  /// The text of the line, "" when unknown.
  std::string line_text() const;
};

/// A span at a place of a text that nothing led to.
SourceSpan make_span(std::shared_ptr<const SourceText> source, int line, int column);

/// Exit codes of the program.
enum class ExitCode : int {
  done = 0,
  failed = 1,    ///< a run failed, or the machine refused something (disk full, no permission)
  usage = 2,     ///< wrong usage or a wrong config: nothing was started
  storage = 4,   ///< the disk is full or fails; what was recorded before stays readable
  internal = 5,  ///< a fault of forge itself
};

/// The one exception of the project. Thrown with what is wrong, where, and what would be right.
/// main prints it. Other code catches it to add a name or a place, to clean up, to retry, or to
/// report it and continue with the next item.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message,
                 SourceSpan where = {},
                 std::string hint = "",
                 ExitCode exit_code = ExitCode::usage);
  /// Of no place in a file.
  Error(const std::string& message, std::string hint, ExitCode exit_code = ExitCode::usage)
      : Error(message, SourceSpan(), std::move(hint), exit_code) {}
  Error(const std::string& message, ExitCode exit_code) : Error(message, "", exit_code) {}

  const std::string& message() const { return message_; }
  const SourceSpan& where() const { return where_; }
  const std::string& hint() const { return hint_; }
  ExitCode exit_code() const { return exit_code_; }
  /// errno of the system call that failed; 0: none did.
  int cause() const { return cause_; }
  Error with_cause(int errno_value) const;

 private:
  std::string message_;
  SourceSpan where_;
  std::string hint_;
  ExitCode exit_code_;
  int cause_ = 0;
};

/// The whole message as lines of text without a final newline:
///
///     projects/canon/templates/configs/train_x.yaml:3:8: error: unknown key 'model.hiden_size'
///         hiden_size: 256
///         ^
///       included from projects/canon/templates/project.yaml:1:1
///     hint: did you mean 'hidden_size'?
std::string describe(const Error& error);
/// The same layout for any remark about a place: `headline` is what follows "file:line:col: ".
std::string describe_remark(const std::string& headline,
                            const SourceSpan& where,
                            const std::string& hint);

/// An Error for a failed system call: "cannot WHAT: reason of errno", exit code `storage` where the
/// disk is full or fails, else `failed`.
Error system_error(const std::string& what, int errno_value, std::string hint = "");

/// Whether the machine kept a file from being read (permissions, limits, a disk that fails), so
/// that nothing is known of what is in it; not where there is none.
bool is_unreadable(const Error& error);

/// Whether the machine refused something that it may give the next time, with nothing mended: a
/// network's folder is away for a moment, or memory, descriptors or processes have run out.
bool may_pass(const Error& error);

/// Whether a disk, or the quota of a user, was full.
bool has_no_room(const Error& error);

/// Any exception as an Error: an Error unchanged, what the machine refused (memory, a file) with
/// the exit code of system_error, everything else as an internal fault.
Error as_error(const std::exception& problem);

}  // namespace forge
