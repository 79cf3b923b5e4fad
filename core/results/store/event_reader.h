#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/run/event_log.h"

namespace forge::store {

/// Reads the complete lines of a growing file from a byte offset on. The text behind the last
/// newline is still being written and is not read.
class LineReader {
 public:
  /// Longest line that is kept: the protocol's limit and room for what the supervisor adds.
  static constexpr size_t max_line_bytes = size_t{2} << 20;

  /// A file that does not exist has no lines. Throws Error where it cannot be read.
  LineReader(const std::filesystem::path& path, int64_t offset);

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

/// Changes when a file changes. All zero if there is no file.
struct FileStamp {
  int64_t size = 0;
  int64_t modified_ns = 0;
  int64_t inode = 0;
};
bool operator==(const FileStamp& a, const FileStamp& b);
FileStamp stamp_of(const std::filesystem::path& file);
inline bool operator!=(const FileStamp& a, const FileStamp& b) { return !(a == b); }

/// A line of an events file: what it says, or why it cannot be read. Of a train event `json` is
/// empty.
struct ReadLine {
  int64_t offset = 0;  ///< of its first byte
  std::optional<run::StoredEvent> event;
  std::string problem;
};

/// Consecutive lines of an events file. Reading them needs no database, so several runs are read at
/// once, before the write lock is taken.
struct EventBatch {
  FileStamp stamp;    ///< of the file before it was read
  int64_t begin = 0;  ///< offset of the first byte
  int64_t end = 0;    ///< of the byte after the last whole line
  std::vector<ReadLine> lines;
};

/// A worker's event that cannot be read is a problem. Unknown events of the supervisor are not: an
/// other version of forge may have written them.
ReadLine read_line(const std::string& line, int64_t offset);

/// Every whole line from `offset` on. Throws Error where the file cannot be read.
EventBatch read_events(const std::filesystem::path& events_file, int64_t offset);

}  // namespace forge::store
