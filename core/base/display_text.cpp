#include "core/base/display_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

#include "core/base/text.h"

namespace forge::tables {
namespace {

struct Character {
  int32_t code_point = -1;  ///< -1: the byte is no UTF-8
  size_t bytes = 1;
};

Character first_character(std::string_view text) {
  utf8proc_int32_t code_point = -1;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()),
                       &code_point);
  if (bytes <= 0) return {};
  return {code_point, static_cast<size_t>(bytes)};
}

bool is_control(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  // Format characters too: they can turn the direction of what follows.
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

constexpr size_t longest_colour = 11;  ///< "\x1b[38;5;255m"

/// Bytes of a colour that forge itself uses at the beginning of the text, 0 for none. Others could
/// hide what follows.
size_t colour_length(std::string_view text) {
  static const std::set<std::string_view> styles = {
      "0", "1", "2", "31", "32", "33", "36", "1;31", "1;33", "1;36"};
  if (!starts_with(text, "\x1b[")) return 0;
  const size_t end = text.substr(0, longest_colour).find('m');
  if (end == std::string_view::npos) return 0;
  const std::string_view style = text.substr(2, end - 2);
  const bool of_palette = starts_with(style, "38;5;") && style.size() > 5 &&
                          style.find_first_not_of("0123456789", 5) == std::string_view::npos;
  return of_palette || styles.count(style) > 0 ? end + 1 : 0;
}

/// Characters that turn the direction of what follows (Unicode's "bidi controls").
bool turns_direction(int32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

struct Kept {
  bool lines = false;  ///< tabs and line breaks
  bool colours = false;
  bool joiners = false;  ///< invisible characters of emojis and scripts, which act on nothing else
};
constexpr Kept kept_in_output = {true, true, true};

bool is_kept(int32_t code_point, Kept kept) {
  if (!is_control(code_point)) return true;
  return kept.joiners && utf8proc_category(code_point) == UTF8PROC_CATEGORY_CF &&
         !turns_direction(code_point);
}

std::string cleaned(std::string_view text, Kept kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const char first = text.front();
    if (first >= ' ' && first <= '~') {
      result += first;
      text.remove_prefix(1);
      continue;
    }
    const Character character = first_character(text);
    size_t bytes = character.bytes;
    const bool is_break = first == '\n' || first == '\t' || starts_with(text, "\r\n");
    const size_t colour = kept.colours ? colour_length(text) : 0;
    if (colour > 0) {
      bytes = colour;
      result += text.substr(0, bytes);
    } else if (kept.lines && is_break) {
      result += first;
    } else if (is_break || first == '\r') {
      result += ' ';
    } else if (character.code_point < 0) {
      result += "\uFFFD";
    } else if (is_kept(character.code_point, kept)) {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

/// Where a character or colour begins whose end the text may lack, else the text's size.
size_t unfinished(std::string_view text) {
  const size_t escape = text.rfind('\x1b');
  if (escape != std::string_view::npos && text.size() - escape < longest_colour &&
      text.find_first_not_of("\x1b[0123456789;", escape) == std::string_view::npos)
    return escape;
  if (ends_with(text, "\r")) return text.size() - 1;
  const auto is_continuation = [](char c) { return (c & 0xc0) == 0x80; };
  size_t begin = text.size();
  while (begin > 0 && text.size() - begin < 3 && is_continuation(text[begin - 1])) --begin;
  if (begin == 0) return text.size();
  const auto lead = static_cast<unsigned char>(text[begin - 1]);
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return text.size() - (begin - 1) < bytes ? begin - 1 : text.size();
}

}  // namespace

int display_width(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return static_cast<int>(text.size());
  int width = 0;
  while (!text.empty()) {
    if (const size_t colour = colour_length(text)) {
      text.remove_prefix(colour);
      continue;
    }
    const Character character = first_character(text);
    width += character.code_point < 0 ? 1 : utf8proc_charwidth(character.code_point);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string printable(std::string_view text) { return cleaned(text, {}); }
std::string printable_cell(std::string_view text) { return cleaned(text, {false, true, false}); }
std::string printable_lines(std::string_view text) { return cleaned(text, {true, false, false}); }

std::string printable_json(std::string_view json) {
  std::string result;
  while (!json.empty()) {
    const Character character = first_character(json);
    const int32_t c = character.code_point;
    if (c > 0x7e && !is_kept(c, kept_in_output)) {
      char code[16];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      result += code;
    } else {
      result += json.substr(0, character.bytes);
    }
    json.remove_prefix(character.bytes);
  }
  return result;
}

namespace {

void put(std::streambuf* sink, std::string_view bytes) {
  sink->sputn(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Where a line is drawn now. A program has one terminal.
std::streambuf* drawn_on = nullptr;

void erase_drawn_line() {
  if (drawn_on) put(drawn_on, "\r\033[K");
  drawn_on = nullptr;
}

}  // namespace

PrintableOutput::PrintableOutput(std::ostream& stream)
    : stream_(stream), sink_(stream.rdbuf(this)) {}

PrintableOutput::~PrintableOutput() {
  put(sink_, cleaned(rest_, kept_in_output));
  stream_.rdbuf(sink_);
}

std::streambuf* PrintableOutput::sink_of(std::ostream& stream) {
  auto* filter = dynamic_cast<PrintableOutput*>(stream.rdbuf());
  return filter ? filter->sink_ : stream.rdbuf();
}

void PrintableOutput::write_raw(std::ostream& stream, std::string_view bytes) {
  const auto size = static_cast<std::streamsize>(bytes.size());
  if (sink_of(stream)->sputn(bytes.data(), size) != size) stream.setstate(std::ios::badbit);
}

void PrintableOutput::draw_line(std::ostream& stream, std::string_view line) {
  erase_drawn_line();
  if (stream.tie()) stream.tie()->flush();  // what was printed before stands above it
  if (line.empty()) return;
  drawn_on = sink_of(stream);
  put(drawn_on, line);
}

bool PrintableOutput::write(std::string_view text) {
  erase_drawn_line();
  rest_ += text;
  const size_t end = unfinished(rest_);
  const std::string whole = cleaned(std::string_view(rest_).substr(0, end), kept_in_output);
  rest_.erase(0, end);
  const auto size = static_cast<std::streamsize>(whole.size());
  return sink_->sputn(whole.data(), size) == size;
}

PrintableOutput::int_type PrintableOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof()))
    return traits_type::not_eof(character);
  const char c = traits_type::to_char_type(character);
  return write(std::string_view(&c, 1)) ? character : traits_type::eof();
}

std::streamsize PrintableOutput::xsputn(const char* text, std::streamsize size) {
  return write(std::string_view(text, static_cast<size_t>(size))) ? size : 0;
}

int PrintableOutput::sync() { return sink_->pubsync(); }

std::string pad_right(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + text;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines = {""};
  for (const std::string& word : split(text, ' ')) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_width(line) + 1 + display_width(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace forge::tables
