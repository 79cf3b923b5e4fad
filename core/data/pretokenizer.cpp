#include "core/data/pretokenizer.h"

#include <algorithm>
#include <string>

#include "core/data/characters.h"

namespace forge::data {
namespace {

using Kind = CharacterKind;

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
    if (next.kind != Kind::space) break;
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
  if (first.kind == Kind::space) return white_space_length(text, position);
  return run_end(text, begin + first.length, first.kind) - position;
}

size_t digits_length(std::string_view text, size_t position, int most) {
  size_t end = position;
  for (int count = 0; count < most && end < text.size(); ++count) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::number) break;
    end += next.length;
  }
  return end - position;
}

/// White space up to the last newline in it; 0: there is none.
size_t length_to_newline(std::string_view text, size_t position) {
  const size_t end = run_end(text, position, Kind::space);
  for (size_t last = end; last > position; --last) {
    if (is_newline(text[last - 1])) return last - position;
  }
  return 0;
}

/// What is neither white, letter nor number, from `begin` on, and newlines behind it.
size_t other_end(std::string_view text, size_t begin) {
  size_t end = run_end(text, begin, Kind::other);
  while (end < text.size() && is_newline(text[end])) ++end;
  return end;
}

size_t llama3_length(std::string_view text, size_t position, int most_digits) {
  if (text[position] == '\'') {
    if (const size_t length = contraction_length_in_any_case(text, position)) return length;
  }
  const Character first = character_at(text, position);
  if (first.kind == Kind::letter) return run_end(text, position, Kind::letter) - position;
  if (first.kind == Kind::number) return digits_length(text, position, most_digits);
  const size_t second = position + first.length;
  if (second < text.size() && !is_newline(text[position]) &&
      character_at(text, second).kind == Kind::letter) {
    return run_end(text, second, Kind::letter) - position;
  }
  if (first.kind == Kind::other) return other_end(text, position) - position;
  if (text[position] == ' ' && second < text.size() &&
      character_at(text, second).kind == Kind::other) {
    return other_end(text, second) - position;
  }
  if (const size_t length = length_to_newline(text, position)) return length;
  return white_space_length(text, position);
}

}  // namespace

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
    if (white && character_at(text, i - length_before(text, i)).kind != Kind::space) return i;
  }
  return text.size();
}

size_t leading_white_space(std::string_view text) { return run_end(text, 0, Kind::space); }

size_t trailing_white_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t length = length_before(text, begin);
    if (character_at(text, begin - length).kind != Kind::space) break;
    begin -= length;
  }
  return text.size() - begin;
}

bool begins_with_word(std::string_view text) { return !text.empty() && is_word_character(text, 0); }

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(text, text.size() - length_before(text, text.size()));
}

}  // namespace forge::data
