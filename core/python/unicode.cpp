#include "core/python/unicode.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <utf8proc.h>

#include "core/python/letter_tables.h"

namespace forge::python {
namespace {

constexpr int32_t replacement = 0xFFFD;

/// Decodes one code point; the number of bytes read, or 0 where they are not UTF-8.
size_t decode(std::string_view text, size_t position, int32_t& code_point) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position;
  const auto size = static_cast<utf8proc_ssize_t>(text.size() - position);
  const utf8proc_ssize_t used = utf8proc_iterate(bytes, size, &code_point);
  return used > 0 ? static_cast<size_t>(used) : 0;
}

}  // namespace

int32_t next_code_point(std::string_view text, size_t& position) {
  const unsigned char byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) {
    ++position;
    return byte;
  }
  int32_t code_point = replacement;
  const size_t used = decode(text, position, code_point);
  position += std::max<size_t>(used, 1);
  return used > 0 ? code_point : replacement;
}

size_t previous_code_point(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

void append_code_point(std::string& text, int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes);
  if (size <= 0) return append_code_point(text, replacement);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::u32string code_points(std::string_view text) {
  std::u32string points;
  for (size_t i = 0; i < text.size();) points += static_cast<char32_t>(next_code_point(text, i));
  return points;
}

bool is_ascii(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    uint64_t eight = 0;  // most texts are ASCII, and some have many gigabytes
    if (i + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    int32_t code_point = 0;
    const size_t used = decode(text, i, code_point);
    if (used == 0) return i;
    i += used;
  }
  return std::string_view::npos;
}

size_t length_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t byte_offset(std::string_view text, size_t index) {
  if (index >= text.size()) return text.size();  // never more code points than bytes
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) next_code_point(text, offset);
  return offset;
}

bool is_space(int32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  if (c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)) return true;
  return c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_letter(int32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(int32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_word(int32_t c) {
  if (c == '_' || is_letter(c) || is_decimal_digit(c)) return true;
  if (c < 0x80) return false;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_printable(int32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  const utf8proc_category_t category = utf8proc_category(c);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

size_t leading_space(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    size_t next = position;
    if (!is_space(next_code_point(text, next))) break;
    position = next;
  }
  return position;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t begin = previous_code_point(text, end);
    size_t next = begin;
    if (!is_space(next_code_point(text, next))) break;
    end = begin;
  }
  return text.size() - end;
}

namespace {

using letter_tables::LetterRange;

constexpr int32_t capital_sigma = 0x3A3;
constexpr int32_t capital_i_with_dot = 0x130;

template <size_t size>
bool is_among(const LetterRange (&ranges)[size], int32_t c) {
  const auto* found =
      std::lower_bound(ranges, ranges + size, c, [](const LetterRange& range, int32_t value) {
        return range.last < value;
      });
  return found != ranges + size && found->first <= c;
}

/// The letters that a letter's case folding has, which may be several: U+FB01 has "fi".
struct Folding {
  int32_t letters[4];
  int count;

  explicit Folding(int32_t c) {
    int boundary = 0;
    const auto size = utf8proc_decompose_char(c, letters, 4, UTF8PROC_CASEFOLD, &boundary);
    // The lower case of the capitals U+0130 and U+1E9E is longer than they are.
    count = utf8proc_category(c) == UTF8PROC_CATEGORY_LU ? 1 : static_cast<int>(size);
  }
};

/// SpecialCasing.txt: what folds to several letters has the upper case of each of them.
void append_upper(std::string& text, int32_t c) {
  const Folding folding(c);
  if (folding.count == 1) return append_code_point(text, utf8proc_toupper(c));
  for (int i = 0; i < folding.count; ++i) {
    append_code_point(text, utf8proc_toupper(folding.letters[i]));
  }
}

/// The same of title case: the first letter that has cases is a capital, a last iota is written
/// below the letter before it. Greek letters with an iota below have a title case of their own.
void append_title(std::string& text, int32_t c) {
  constexpr int32_t iota = 0x3B9, iota_below = 0x345;
  const Folding folding(c);
  const int32_t title = utf8proc_totitle(c);
  if (folding.count == 1 || utf8proc_category(title) == UTF8PROC_CATEGORY_LT) {
    return append_code_point(text, title);
  }
  bool has_capital = false;
  for (int i = 0; i < folding.count; ++i) {
    const int32_t letter = folding.letters[i];
    const int32_t capital = has_capital ? letter : utf8proc_toupper(letter);
    append_code_point(text, has_capital && letter == iota ? iota_below : capital);
    has_capital = has_capital || capital != letter;
  }
}

/// Unicode's Case_Ignorable: marks and punctuation within a word.
bool is_case_ignorable(int32_t c) {
  static const std::u32string_view marks =
      U"'.:^`\u00A8\u00AD\u00AF\u00B4\u00B7\u00B8\u2018\u2019\u2024\u2027";
  if (c < 0x80 || marks.find(static_cast<char32_t>(c)) != marks.npos)
    return marks.find(static_cast<char32_t>(c)) != marks.npos;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK;
}

/// Whether a sigma between these texts ends a word: it is written another way there.
bool ends_word(std::string_view before, std::string_view behind) {
  bool follows_letter = false;
  for (size_t end = before.size(); end > 0;) {
    const size_t begin = previous_code_point(before, end);
    size_t next = begin;
    const int32_t c = next_code_point(before, next);
    follows_letter = is_cased(c);
    if (!is_case_ignorable(c)) break;
    end = begin;
  }
  for (size_t i = 0; i < behind.size() && follows_letter;) {
    const int32_t c = next_code_point(behind, i);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return follows_letter;
}

/// Appends the lower case of the letter `c`, which lies between `begin` and `end` of the text.
void append_lower(std::string& result, std::string_view text, int32_t c, size_t begin, size_t end) {
  if (c == capital_sigma) {
    result += ends_word(text.substr(0, begin), text.substr(end)) ? "ς" : "σ";
  } else {
    append_code_point(result, utf8proc_tolower(c));
    if (c == capital_i_with_dot) append_code_point(result, 0x307);
  }
}

}  // namespace

bool is_upper(int32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LU ||
         is_among(letter_tables::other_upper_case, c);
}

bool is_lower(int32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LL ||
         is_among(letter_tables::other_lower_case, c);
}

bool is_title(int32_t c) { return c >= 0x80 && utf8proc_category(c) == UTF8PROC_CATEGORY_LT; }

bool is_cased(int32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

bool is_of_case(std::string_view text, bool upper) {
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    if ((upper ? is_lower(c) : is_upper(c)) || is_title(c)) return false;
    found = found || (upper ? is_upper(c) : is_lower(c));
  }
  return found;
}

bool is_digit(int32_t c) { return is_decimal_digit(c) || is_among(letter_tables::other_digits, c); }

bool is_numeric(int32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) ||
         is_among(letter_tables::numeric_letters, c);
}

bool is_part_of_identifier(int32_t c, bool first) {
  if (c == '_' || is_letter(c)) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  if (category == UTF8PROC_CATEGORY_NL) return true;
  return !first && (category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_MN ||
                    category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_PC);
}

std::string to_upper(std::string_view text) {
  std::string upper;
  upper.reserve(text.size());
  if (is_ascii(text)) {
    for (const char c : text) upper += is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
    return upper;
  }
  for (size_t i = 0; i < text.size();) append_upper(upper, next_code_point(text, i));
  return upper;
}

std::string to_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  if (is_ascii(text)) {
    for (const char c : text) lower += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  }
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const int32_t c = next_code_point(text, i);
    append_lower(lower, text, c, begin, i);
  }
  return lower;
}

std::string casefold(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()),
                                 &folded,
                                 UTF8PROC_CASEFOLD);
  if (size < 0) return to_lower(text);
  std::string result(reinterpret_cast<const char*>(folded), static_cast<size_t>(size));
  std::free(folded);
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const int32_t c = next_code_point(text, i);
    if (begin == 0) {
      append_title(result, c);
    } else {
      append_lower(result, text, c, begin, i);
    }
  }
  return result;
}

std::string title_case(std::string_view text) {
  std::string result;
  bool inside_word = false;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const int32_t c = next_code_point(text, i);
    if (inside_word) {
      append_lower(result, text, c, begin, i);
    } else {
      append_title(result, c);
    }
    inside_word = is_cased(c);
  }
  return result;
}

std::string swap_case(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const int32_t c = next_code_point(text, i);
    if (is_upper(c)) {
      append_lower(result, text, c, begin, i);
    } else if (is_lower(c)) {
      append_upper(result, c);
    } else {
      append_code_point(result, c);
    }
  }
  return result;
}

}  // namespace forge::python
