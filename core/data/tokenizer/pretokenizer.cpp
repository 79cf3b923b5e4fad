#include "core/data/tokenizer/pretokenizer.h"

#include <algorithm>
#include <array>
#include <memory>

#include <utf8proc.h>

#include "core/base/error.h"

namespace forge::data {

namespace {

enum class CharacterKind : uint8_t { letter, number, space, other };

struct Character {
  CharacterKind kind;
  uint8_t length;  ///< in bytes
};

struct CodePoint {
  utf8proc_int32_t code;
  size_t length;  ///< 0: not well-formed
};

CodePoint code_point_at(std::string_view text, size_t position) {
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - position, 4)),
                       &code);
  return {code, length <= 0 ? 0 : static_cast<size_t>(length)};
}

bool is_white_space(utf8proc_int32_t code) {  // PropList.txt, White_Space
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

CharacterKind kind_of(utf8proc_int32_t code) {
  if (is_white_space(code)) return CharacterKind::space;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterKind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterKind::number;
    default: return CharacterKind::other;
  }
}

/// Kind and length of the character at `position` (< text.size()): one Unicode scalar value, or a
/// byte that is not part of well-formed UTF-8, which is of the kind `other`.
Character character_at(std::string_view text, size_t position) {
  static const std::array<CharacterKind, 128> ascii_kinds = [] {
    std::array<CharacterKind, 128> kinds{};
    for (int code = 0; code < 128; ++code) kinds[code] = kind_of(code);
    return kinds;
  }();
  const uint8_t first = static_cast<uint8_t>(text[position]);
  if (first < 0x80) return {ascii_kinds[first], 1};
  const CodePoint next = code_point_at(text, position);
  if (next.length == 0) return {CharacterKind::other, 1};
  return {kind_of(next.code), static_cast<uint8_t>(next.length)};
}

/// Length in bytes of the character that ends at `position` (> 0). The text need not be read from
/// its start: every byte that does not continue a character begins one.
size_t length_before(std::string_view text, size_t position) {
  size_t begin = position - 1;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  while (begin > 0 && position - begin < 4 && continues(begin)) --begin;
  const size_t length = code_point_at(text, begin).length;
  return length == position - begin ? length : 1;
}

/// Where the run of characters of `kind` that begins at `position` ends.
size_t run_end(std::string_view text, size_t position, CharacterKind kind) {
  while (position < text.size()) {
    const Character next = character_at(text, position);
    if (next.kind != kind) break;
    position += next.length;
  }
  return position;
}

/// Whether a character is part of a word in the sense of \w: a letter, mark, digit, letter number
/// or connecting punctuation.
bool is_word_character(std::string_view text, size_t position) {
  if (character_at(text, position).kind == CharacterKind::letter) return true;
  const CodePoint point = code_point_at(text, position);
  if (point.length == 0) return false;
  switch (utf8proc_category(point.code)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

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
    const size_t step = code_point_at(text, length).length;
    if (step == 0) break;
    length += step;
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

std::string_view name_of(UnicodeForm form) {
  constexpr std::string_view names[] = {"", "NFC", "NFD", "NFKC", "NFKD"};
  return names[static_cast<size_t>(form)];
}

std::string normalized(std::string_view text, UnicodeForm form) {
  if (form == UnicodeForm::none || std::all_of(text.begin(), text.end(), is_ascii)) {
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

namespace {

bool is_newline(char byte) { return byte == '\r' || byte == '\n'; }

/// Length of 's, 't, 're, 've, 'm, 'll or 'd at a place where there is an apostrophe; 0: none.
size_t contraction_length(std::string_view text, size_t position) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.compare(position, ending.size(), ending) == 0) return ending.size();
  }
  return 0;
}

/// The same in either case. U+017F, the long s, is an s then by Unicode's case folding.
size_t contraction_length_in_any_case(std::string_view text, size_t position) {
  if (text.compare(position + 1, 2, "\u017f") == 0) return 3;
  std::string lower(text.substr(position, 3));
  for (char& byte : lower) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return contraction_length(lower, 0);
}

/// Length of white space: all of it at the end of the text; before something else all but its last
/// character, which belongs to what follows or is a piece of its own.
size_t white_space_length(std::string_view text, size_t position) {
  size_t end = position;
  size_t last = position;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != CharacterKind::space) break;
    last = end;
    end += next.length;
  }
  if (end == text.size() || last == position) return end - position;
  return last - position;
}

size_t gpt2_length(std::string_view text, size_t position) {
  if (text[position] == '\'') {
    if (const size_t length = contraction_length(text, position)) return length;
  }
  size_t begin = position;
  if (text[position] == ' ' && position + 1 < text.size()) ++begin;
  const Character first = character_at(text, begin);
  if (first.kind == CharacterKind::space) return white_space_length(text, position);
  return run_end(text, begin + first.length, first.kind) - position;
}

size_t digits_length(std::string_view text, size_t position, int most) {
  size_t end = position;
  for (int count = 0; count < most && end < text.size(); ++count) {
    const Character next = character_at(text, end);
    if (next.kind != CharacterKind::number) break;
    end += next.length;
  }
  return end - position;
}

/// White space up to the last newline in it; 0: there is none.
size_t length_to_newline(std::string_view text, size_t position) {
  const size_t end = run_end(text, position, CharacterKind::space);
  for (size_t last = end; last > position; --last) {
    if (is_newline(text[last - 1])) return last - position;
  }
  return 0;
}

/// What is neither white, letter nor number, from `begin` on, and newlines behind it.
size_t other_end(std::string_view text, size_t begin) {
  size_t end = run_end(text, begin, CharacterKind::other);
  while (end < text.size() && is_newline(text[end])) ++end;
  return end;
}

size_t llama3_length(std::string_view text, size_t position, int most_digits) {
  if (text[position] == '\'') {
    if (const size_t length = contraction_length_in_any_case(text, position)) return length;
  }
  const Character first = character_at(text, position);
  if (first.kind == CharacterKind::letter)
    return run_end(text, position, CharacterKind::letter) - position;
  if (first.kind == CharacterKind::number) return digits_length(text, position, most_digits);
  const size_t second = position + first.length;
  if (second < text.size() && !is_newline(text[position]) &&
      character_at(text, second).kind == CharacterKind::letter) {
    return run_end(text, second, CharacterKind::letter) - position;
  }
  if (first.kind == CharacterKind::other) return other_end(text, position) - position;
  if (text[position] == ' ' && second < text.size() &&
      character_at(text, second).kind == CharacterKind::other) {
    return other_end(text, second) - position;
  }
  if (const size_t length = length_to_newline(text, position)) return length;
  return white_space_length(text, position);
}

}  // namespace

std::string_view pattern_of(TextSplit split) {
  switch (split) {
    case TextSplit::gpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case TextSplit::llama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case TextSplit::qwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case TextSplit::spaces:
    case TextSplit::space_runs:
    case TextSplit::whole: break;
  }
  return "";
}

size_t piece_length(TextSplit split, std::string_view text, size_t position) {
  switch (split) {
    case TextSplit::gpt2: return gpt2_length(text, position);
    case TextSplit::llama3: return llama3_length(text, position, 3);
    case TextSplit::qwen2: return llama3_length(text, position, 1);
    case TextSplit::spaces: return std::min(text.find(' ', position + 1), text.size()) - position;
    case TextSplit::space_runs: {
      const size_t word = std::min(text.find_first_not_of(' ', position), text.size());
      return std::min(text.find(' ', word), text.size()) - position;
    }
    case TextSplit::whole: break;
  }
  return text.size() - position;
}

size_t next_safe_cut(TextSplit split, std::string_view text, size_t from) {
  if (split == TextSplit::whole) return text.size();
  // White space but spaces may belong to the piece before it in some splits.
  const bool only_spaces = split != TextSplit::gpt2;
  for (size_t i = from < 1 ? 1 : from; i < text.size(); ++i) {
    const char here = text[i];
    const bool white = here == ' ' || (!only_spaces && here >= '\t' && here <= '\r');
    if (white && character_at(text, i - length_before(text, i)).kind != CharacterKind::space)
      return i;
  }
  return text.size();
}

size_t leading_white_space(std::string_view text) { return run_end(text, 0, CharacterKind::space); }

size_t trailing_white_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t length = length_before(text, begin);
    if (character_at(text, begin - length).kind != CharacterKind::space) break;
    begin -= length;
  }
  return text.size() - begin;
}

bool begins_with_word(std::string_view text) { return !text.empty() && is_word_character(text, 0); }

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(text, text.size() - length_before(text, text.size()));
}

}  // namespace forge::data
