#include "core/store/event_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace forge::store {

EventLines::EventLines(const std::filesystem::path& path, int64_t offset)
    : path_(path), read_offset_(offset), line_offset_(offset), next_offset_(offset) {
  file_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_ && errno != ENOENT) throw system_error("read '" + path.string() + "'", errno);
}

bool EventLines::fill() {
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

bool EventLines::next() {
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

}  // namespace forge::store
