#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/run/event_log.h"

namespace forge::store {

/// Changes when a file changes. All zero if there is no file.
struct FileStamp {
  int64_t size = 0;
  int64_t modified_ns = 0;
  int64_t inode = 0;
};
bool operator==(const FileStamp& a, const FileStamp& b);
inline bool operator!=(const FileStamp& a, const FileStamp& b) { return !(a == b); }
FileStamp stamp_of(const std::filesystem::path& file);

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
