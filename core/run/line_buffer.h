#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace forge::run {

/// Cuts a stream of bytes into lines. Holds at most `limit` + 1 bytes of an unfinished line: what
/// goes beyond is dropped, so that endless output without a newline cannot fill the memory.
class LineBuffer {
 public:
  explicit LineBuffer(size_t limit) : limit_(limit) {}
  void feed(std::string_view bytes);
  /// The oldest whole line without its newline, or nothing.
  std::optional<std::string> take();

 private:
  void extend(std::string_view bytes);

  size_t limit_;
  std::string unfinished_;
  std::deque<std::string> lines_;
};

}  // namespace forge::run
