#include "core/base/tail.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace forge {
namespace {

constexpr int64_t longest_line = 4 << 20;  ///< twice the longest that any reader takes

struct Tail {
  std::string bytes;
  bool reaches_begin = true;
};

/// The last `length` bytes of the file, but none before `from`.
Tail read_tail(const std::filesystem::path& path, int64_t from, int64_t length) {
  const FileDescriptor file = open_if_exists(path);
  if (!file) return {};
  const int64_t size = file_bytes(file);
  const int64_t begin = std::max(from, size - length);
  if (begin >= size) return {};
  Tail tail{std::string(static_cast<size_t>(size - begin), '\0'), begin == from};
  const ssize_t got = ::pread(file.get(), tail.bytes.data(), tail.bytes.size(), begin);
  if (got < 0) throw system_error("read '" + path.string() + "'", errno);
  tail.bytes.resize(static_cast<size_t>(got));
  return tail;
}

}  // namespace

std::string last_line(const std::filesystem::path& file) {
  const std::vector<std::string> lines = last_whole_lines(file, 1);
  return lines.empty() ? "" : lines.back();
}

std::vector<std::string> last_whole_lines(const std::filesystem::path& file, size_t count) {
  for (int64_t length = 4096;; length *= 32) {
    Tail tail = read_tail(file, 0, length);
    if (tail.reaches_begin) tail.bytes.insert(0, "\n");
    std::vector<std::string> lines;  // the newest first
    size_t end = tail.bytes.rfind('\n');
    while (lines.size() < count && end != std::string::npos && end > 0) {
      const size_t before = tail.bytes.rfind('\n', end - 1);
      if (before == std::string::npos) break;
      lines.push_back(tail.bytes.substr(before + 1, end - before - 1));
      end = before;
    }
    const bool hopeless = length >= longest_line;
    if (lines.size() < count && !tail.reaches_begin) {
      if (!hopeless) continue;
      lines.push_back(tail.bytes.substr(0, end));  // no line of forge's, as whoever reads it sees
    }
    std::reverse(lines.begin(), lines.end());
    return lines;
  }
}

std::vector<std::string> last_lines(const std::filesystem::path& file,
                                    int64_t from,
                                    size_t count,
                                    size_t longest) {
  const Tail tail = read_tail(file, from, 64 * 1024);
  std::vector<std::string> lines = split(tail.bytes, '\n');
  if (!tail.reaches_begin) lines.erase(lines.begin());  // its beginning is missing
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(count));
  for (std::string& line : lines) line.resize(std::min(line.size(), longest));
  return lines;
}

}  // namespace forge
