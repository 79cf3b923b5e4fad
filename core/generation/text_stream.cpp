#include "core/generation/text_stream.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/base/error.h"

namespace forge::generation {
namespace {

/// How many bytes at the end of the text are the beginning of a character that is not whole yet.
size_t unfinished_character_bytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte >= 0x80 && byte < 0xc0) continue;         // not the first byte of a character
    const bool begins = byte >= 0xc2 && byte <= 0xf4;  // several bytes; the others never do
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return begins && length > back ? back : 0;
  }
  return 0;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                         static_cast<utf8proc_ssize_t>(bytes.size()),
                         &code_point);
    text += length > 0 ? bytes.substr(0, static_cast<size_t>(length)) : "\xef\xbf\xbd";
    bytes.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
  }
  return text;
}

}  // namespace

void check_stop_texts(const std::vector<std::string>& texts) {
  if (std::find(texts.begin(), texts.end(), "") == texts.end()) return;
  throw Error("a stop text is empty", {}, "it would end every sample before its first token");
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return "";
  held_ += bytes;
  const size_t stop = find_stop_text();
  if (stop != std::string::npos) {
    stopped_ = true;
    held_.resize(stop);
    return finish();
  }
  const std::string_view certain(held_.data(), held_.size() - possible_stop_bytes());
  const size_t shown = certain.size() - unfinished_character_bytes(certain);
  std::string text = as_utf8(certain.substr(0, shown));
  held_.erase(0, shown);
  return text;
}

std::string TextStream::finish() {
  std::string text = as_utf8(held_);
  held_.clear();
  return text;
}

size_t TextStream::find_stop_text() const {
  // The one that is whole first, so that it does not matter how the bytes were cut into tokens.
  size_t first_begin = std::string::npos, first_end = std::string::npos;
  for (const std::string& stop : stop_texts_) {
    const size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end < first_end || (end == first_end && begin < first_begin)) {
      first_begin = begin;
      first_end = end;
    }
  }
  return first_begin;
}

size_t TextStream::possible_stop_bytes() const {
  size_t most = 0;
  for (const std::string& stop : stop_texts_) {
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > most; --size) {
      if (held_.compare(held_.size() - size, size, stop, 0, size) == 0) most = size;
    }
  }
  return most;
}

}  // namespace forge::generation
