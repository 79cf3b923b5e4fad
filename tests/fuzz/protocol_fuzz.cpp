// libFuzzer target: whatever a worker writes, in pieces of whatever size, the reader of its lines
// gives events or refuses them with an Error, keeps no more than a line in memory, and what it
// gives can be written and read again.

#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace {

using namespace forge;

constexpr size_t small_limit = 512;  // of a line, so that inputs of a few kilobytes reach it

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_tame(const std::string& text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f) return false;
  }
  return true;
}

void read_event(const std::string& line) {
  try {
    const worker::Event event = worker::event_from_line(line);
    const std::string written = worker::to_line(event);
    require(written.find('\n') == std::string::npos);
    const worker::Event again = worker::event_from_line(written);
    require(worker::to_line(again) == written);
    if (const auto* progress = std::get_if<worker::Progress>(&event))
      require(progress->fraction >= 0 && progress->fraction <= 1 && is_tame(progress->phase));
    if (const auto* failed = std::get_if<worker::Failed>(&event)) require(is_tame(failed->message));
  } catch (const Error& error) {
    require(!error.message().empty());
  }
}

void read_request(const std::string& line) {
  try {
    const worker::Request request = worker::request_from_line(line);
    const std::string written = worker::to_line(request);
    require(worker::to_line(worker::request_from_line(written)) == written);
  } catch (const Error& error) {
    require(!error.message().empty());
  }
}

}  // namespace

/// The first byte is the size of the pieces; the rest is what the worker writes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const size_t piece = bytes[0] + size_t{1};
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  worker::LineBuffer lines(small_limit);
  size_t newlines = 0, taken = 0;
  for (size_t at = 0; at < text.size(); at += piece) {
    lines.feed(text.substr(at, piece));
    while (const auto line = lines.take()) {
      ++taken;
      require(line->size() <= small_limit + 1 && line->find('\n') == std::string::npos);
      read_event(*line);
      read_request(*line);
    }
  }
  for (const char letter : text) newlines += letter == '\n';
  require(taken == newlines);
  return 0;
}
