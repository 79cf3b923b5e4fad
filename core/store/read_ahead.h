#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/event_log.h"

namespace forge::store {

/// What tells that a file has changed. All zero where there is no file.
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

/// Consecutive lines of an events file, read without the database: several runs' at once, and
/// before anybody has to wait for the writer.
struct ReadAhead {
  FileStamp stamp;    ///< of the file before it was read: what came later is news
  int64_t begin = 0;  ///< offset of the first byte
  int64_t end = 0;    ///< of the byte after the last whole line
  std::vector<ReadLine> lines;
};

/// A worker's event that cannot be read is a problem, one of another version of the supervisor is
/// none.
ReadLine read_line(const std::string& line, int64_t offset);

/// Every whole line from `offset` on. Throws Error where the file cannot be read.
ReadAhead read_ahead(const std::filesystem::path& events_file, int64_t offset);

}  // namespace forge::store
