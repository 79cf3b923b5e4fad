#include "core/run/line_buffer.h"

#include <algorithm>
#include <utility>

namespace forge::run {

void LineBuffer::feed(std::string_view bytes) {
  while (true) {
    const size_t end = bytes.find('\n');
    extend(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    lines_.push_back(std::exchange(unfinished_, {}));
    bytes.remove_prefix(end + 1);
  }
}

void LineBuffer::extend(std::string_view bytes) {
  const size_t room = limit_ + 1 - unfinished_.size();
  unfinished_.append(bytes.substr(0, std::min(room, bytes.size())));
}

std::optional<std::string> LineBuffer::take() {
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

}  // namespace forge::run
