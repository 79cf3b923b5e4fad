#include "core/run/follow.h"

#include <fstream>

#include "core/base/error.h"
#include "core/base/fs.h"

namespace forge::run {
namespace {

/// The whole lines of the file from byte `offset` on, with their newlines.
std::string whole_lines_from(const fs::path& path, int64_t offset) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const int64_t size = file ? static_cast<int64_t>(file.tellg()) : 0;
  if (size <= offset) return "";
  std::string bytes(static_cast<size_t>(size - offset), '\0');
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  bytes.resize(bytes.rfind('\n') + 1);  // npos + 1 is 0
  return bytes;
}

}  // namespace

void Follower::skip_to_end() {
  offset_ += static_cast<int64_t>(whole_lines_from(folder_.events_file(), offset_).size());
  new_progress();
}

Update Follower::poll() {
  Update update;
  // Asked first: what is written until the lock is let go is then seen below.
  update.over = !FileLock::is_held(folder_.lock_file());
  update.events = new_events();
  update.progress = new_progress();
  return update;
}

std::vector<StoredEvent> Follower::new_events() {
  std::vector<StoredEvent> events;
  const std::string bytes = whole_lines_from(folder_.events_file(), offset_);
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\n', begin);
    events.push_back(stored_event_from_line(bytes.substr(begin, end - begin)));
    offset_ += static_cast<int64_t>(end + 1 - begin);
    begin = end + 1;
  }
  return events;
}

std::optional<protocol::Progress> Follower::new_progress() {
  std::string line = whole_lines_from(folder_.progress_file(), 0);
  if (line.empty() || line == progress_line_) return std::nullopt;
  progress_line_ = std::move(line);
  const StoredEvent stored = stored_event_from_line(progress_line_);
  const auto* progress = stored.event ? std::get_if<protocol::Progress>(&*stored.event) : nullptr;
  return progress ? std::optional(*progress) : std::nullopt;
}

}  // namespace forge::run
