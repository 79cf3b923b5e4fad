#include "core/results/store/event_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include "core/base/error.h"
#include "core/worker/messages.h"

namespace forge::store {

LineReader::LineReader(const std::filesystem::path& path, int64_t offset)
    : path_(path), read_offset_(offset), line_offset_(offset), next_offset_(offset) {
  file_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_ && errno != ENOENT) throw system_error("read '" + path.string() + "'", errno);
}

bool LineReader::fill() {
  if (!file_) return false;
  buffer_.resize(256 << 10);
  ssize_t got = 0;
  do {
    got = ::pread(file_.get(), buffer_.data(), buffer_.size(), read_offset_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw system_error("read '" + path_.string() + "'", errno);
  buffer_.resize(static_cast<size_t>(got));
  read_offset_ += got;
  position_ = 0;
  return got > 0;
}

bool LineReader::next() {
  line_.clear();
  too_long_ = false;
  line_offset_ = next_offset_;
  while (true) {
    if (position_ == buffer_.size() && !fill()) return false;
    const size_t newline = buffer_.find('\n', position_);
    const size_t end = newline == std::string::npos ? buffer_.size() : newline;
    if (line_.size() + (end - position_) > max_line_bytes) {
      too_long_ = true;
      line_.clear();
    }
    if (!too_long_) line_.append(buffer_, position_, end - position_);
    position_ = end;
    if (newline == std::string::npos) continue;
    ++position_;
    next_offset_ = read_offset_ - static_cast<int64_t>(buffer_.size() - position_);
    return true;
  }
}

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
    const bool of_supervisor = stored.name == "attempt" || stored.name == "ended";
    // A worker's event that could not be read: parsed again for the reason.
    if (!stored.event && !of_supervisor) worker::event_from_json(stored.json);
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
  LineReader lines(events_file, offset);
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
