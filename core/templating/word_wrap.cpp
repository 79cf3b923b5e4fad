#include "core/templating/word_wrap.h"

#include <algorithm>
#include <deque>

#include "core/templating/operation_error.h"
#include "core/templating/unicode.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

using Characters = std::u32string;

Characters characters_of(std::string_view text) {
  Characters characters;
  for (size_t i = 0; i < text.size();)
    characters += static_cast<char32_t>(next_code_point(text, i));
  return characters;
}

std::string text_of(const Characters& characters) {
  std::string text;
  for (const char32_t c : characters) append_code_point(text, static_cast<int32_t>(c));
  return text;
}

/// What textwrap takes as white space: ASCII alone.
bool is_blank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_only_blanks(const Characters& chunk) {
  return std::all_of(
      chunk.begin(), chunk.end(), [](char32_t c) { return is_space(static_cast<int32_t>(c)); });
}

/// Cuts a text into words, runs of blanks and dashes between words: what may begin a line.
class ChunkSplitter {
 public:
  ChunkSplitter(const Characters& text, bool at_hyphens) : text_(text), at_hyphens_(at_hyphens) {}

  std::deque<Characters> split() const {
    std::deque<Characters> chunks;
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = chunk_end(begin);
      charge_text(4 * (end - begin));
      chunks.push_back(text_.substr(begin, end - begin));
      begin = end;
    }
    return chunks;
  }

 private:
  size_t chunk_end(size_t begin) const {
    size_t end = begin;
    if (is_blank(text_[begin])) {
      while (end < text_.size() && is_blank(text_[end])) ++end;
      return end;
    }
    if (at_hyphens_ && is_dash(begin)) return dashes_end(begin);
    for (end = begin + 1; end < text_.size() && !is_blank(text_[end]); ++end) {
      if (!at_hyphens_) continue;
      if (is_hyphen_of_word(begin, end)) return end + 1;
      if (is_dash(end)) return end;
    }
    return end;
  }

  bool is_word_at(size_t at) const {
    return at < text_.size() && is_word(static_cast<int32_t>(text_[at]));
  }
  bool is_letter_at(size_t at) const {
    return is_word_at(at) && text_[at] != '_' && !is_decimal_digit(static_cast<int32_t>(text_[at]));
  }

  size_t dashes_end(size_t at) const {
    while (at < text_.size() && text_[at] == '-') ++at;
    return at;
  }

  /// Whether a dash of two or more hyphens stands here, between words.
  bool is_dash(size_t at) const {
    if (at == 0 || dashes_end(at) < at + 2 || !is_word_at(dashes_end(at))) return false;
    static const Characters punctuation = U"!\"'&.,?";
    return is_word_at(at - 1) || punctuation.find(text_[at - 1]) != Characters::npos;
  }

  /// Whether the hyphen here joins two parts of a word; a chunk begins with at least one character.
  bool is_hyphen_of_word(size_t begin, size_t at) const {
    if (text_[at] != '-' || at < begin + 1 || at < 2 || !is_letter_at(at - 1)) return false;
    const bool follows_letters =
        is_letter_at(at - 2) || (at >= 3 && text_[at - 2] == '-' && is_letter_at(at - 3));
    if (!follows_letters || !is_letter_at(at + 1)) return false;
    return is_letter_at(at + 2) ||
           (at + 2 < text_.size() && text_[at + 2] == '-' && is_letter_at(at + 3));
  }

  const Characters& text_;
  bool at_hyphens_;
};

/// Where a chunk longer than the room that is left is cut.
size_t cut_of(const Characters& chunk, size_t room, bool at_hyphens) {
  if (!at_hyphens || chunk.size() <= room || room == 0) return room;
  const size_t hyphen = chunk.rfind('-', room - 1);
  if (hyphen == Characters::npos || hyphen == 0) return room;
  return chunk.find_first_not_of('-') < hyphen ? hyphen + 1 : room;
}

/// Takes the chunks of the next line off the front.
Characters take_line(std::deque<Characters>& chunks, const WrapOptions& options) {
  const auto width = static_cast<size_t>(options.width);
  std::vector<Characters> line;
  size_t used = 0;
  while (!chunks.empty() && used + chunks.front().size() <= width) {
    used += chunks.front().size();
    line.push_back(std::move(chunks.front()));
    chunks.pop_front();
  }
  if (!chunks.empty() && chunks.front().size() > width) {
    if (options.break_long_words) {
      const size_t cut = cut_of(chunks.front(), width - used, options.break_on_hyphens);
      line.push_back(chunks.front().substr(0, cut));
      chunks.front().erase(0, cut);
    } else if (line.empty()) {
      line.push_back(std::move(chunks.front()));
      chunks.pop_front();
    }
  }
  if (!line.empty() && is_only_blanks(line.back())) line.pop_back();
  Characters joined;
  for (const Characters& chunk : line) joined += chunk;
  return joined;
}

}  // namespace

std::vector<std::string> wrap_words(std::string_view text, const WrapOptions& options) {
  if (options.width < 1) throw OperationError("the width of wrapped lines must be positive");
  std::deque<Characters> chunks =
      ChunkSplitter(characters_of(text), options.break_on_hyphens).split();
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    if (!lines.empty() && is_only_blanks(chunks.front())) chunks.pop_front();
    charge_walk(work_of_value);
    const Characters line = take_line(chunks, options);
    if (!line.empty()) lines.push_back(text_of(line));
  }
  return lines;
}

}  // namespace forge::templating
