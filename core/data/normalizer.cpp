#include "core/data/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/base/error.h"

namespace forge::data {
namespace {

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

utf8proc_option_t options_of(UnicodeForm form) {
  const bool composes = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  const bool compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// Length of the well-formed UTF-8 that the text begins with.
size_t well_formed_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    utf8proc_int32_t code = 0;
    const std::string_view next = text.substr(length, 4);
    const utf8proc_ssize_t step =
        utf8proc_iterate(bytes_of(next), static_cast<utf8proc_ssize_t>(next.size()), &code);
    if (step <= 0) break;
    length += static_cast<size_t>(step);
  }
  return length;
}

void append_well_formed(std::string_view text, UnicodeForm form, std::string& result) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  if (size < 0) {
    throw Error(std::string("cannot normalise a text: ") + utf8proc_errmsg(size));
  }
  result.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

/// A region that is not ASCII but for its first character.
void append_region(std::string_view text, UnicodeForm form, std::string& result) {
  while (!text.empty()) {
    const size_t length = well_formed_length(text);
    append_well_formed(text.substr(0, length), form, result);
    text.remove_prefix(length);
    if (text.empty()) return;
    result += text.front();
    text.remove_prefix(1);
  }
}

}  // namespace

std::string normalized(std::string_view text, UnicodeForm form) {
  if (form == UnicodeForm::as_given || std::all_of(text.begin(), text.end(), is_ascii)) {
    return std::string(text);
  }
  // No ASCII character changes or joins what is before it, so only what is not ASCII, with the one
  // character before it, is looked at.
  std::string result;
  result.reserve(text.size());
  size_t done = 0;
  while (done < text.size()) {
    size_t begin = done;
    while (begin < text.size() && is_ascii(text[begin])) ++begin;
    if (begin > done && begin < text.size()) --begin;
    result.append(text.substr(done, begin - done));
    size_t end = std::min(begin + 1, text.size());
    while (end < text.size() && !is_ascii(text[end])) ++end;
    append_region(text.substr(begin, end - begin), form, result);
    done = end;
  }
  return result;
}

}  // namespace forge::data
