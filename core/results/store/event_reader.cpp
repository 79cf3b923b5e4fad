#include "core/results/store/event_reader.h"

#include <sys/stat.h>

#include "core/base/error.h"
#include "core/worker/messages.h"

namespace forge::store {

bool operator==(const FileStamp& a, const FileStamp& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

FileStamp stamp_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          static_cast<int64_t>(status.st_ino)};
}

ReadLine read_line(const std::string& line, int64_t offset) {
  ReadLine read;
  read.offset = offset;
  if (const auto train = worker::train_from_line(line)) {
    read.event = run::StoredEvent{train->time, train->attempt, "train", {}, train->metrics};
    return read;
  }
  try {
    run::StoredEvent stored = run::stored_event_from_line(line);
    // A worker's event that could not be read: parsed again for the reason.
    if (!stored.event && !stored.started && !stored.ended) worker::event_from_json(stored.json);
    read.event = std::move(stored);
  } catch (const Error& problem) {
    read.problem = problem.message();
  }
  return read;
}

EventBatch read_events(const std::filesystem::path& events_file, int64_t offset) {
  EventBatch batch;
  batch.stamp = stamp_of(events_file);
  batch.begin = offset;
  constexpr int64_t usual_line_bytes = 200;
  std::error_code missing;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(events_file, missing));
  if (!missing && size > offset)
    batch.lines.reserve(static_cast<size_t>((size - offset) / usual_line_bytes + 1));
  run::LineReader lines(events_file, offset);
  while (lines.next()) {
    if (lines.too_long()) {
      batch.lines.push_back({lines.line_offset(), std::nullopt, "the line is too long"});
    } else {
      batch.lines.push_back(read_line(lines.line(), lines.line_offset()));
    }
  }
  batch.end = lines.next_offset();
  return batch;
}

}  // namespace forge::store
