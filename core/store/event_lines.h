#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/fs.h"

namespace forge::store {

/// Reads the complete lines of a growing file from a byte offset on. What follows the last newline
/// is a line still being written and is left for the next time.
class EventLines {
 public:
  /// Longest line that is kept: the protocol's limit and room for what the supervisor adds.
  static constexpr size_t max_line_bytes = size_t{2} << 20;

  /// A file that does not exist has no lines. Throws Error where it cannot be read.
  EventLines(const std::filesystem::path& path, int64_t offset);

  /// Moves to the next complete line; false where there is none yet.
  bool next();

  const std::string& line() const { return line_; }     ///< without its newline
  bool too_long() const { return too_long_; }           ///< then line() is empty
  int64_t line_offset() const { return line_offset_; }  ///< of the line's first byte
  int64_t next_offset() const { return next_offset_; }  ///< of the byte after its newline

 private:
  bool fill();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::string buffer_;
  size_t position_ = 0;      ///< in buffer_ of the next unread byte
  int64_t read_offset_ = 0;  ///< in the file, of the byte after buffer_
  std::string line_;
  bool too_long_ = false;
  int64_t line_offset_ = 0;
  int64_t next_offset_ = 0;
};

}  // namespace forge::store
