#include "core/yaml/sections.h"

#include <algorithm>

#include "core/base/text.h"

namespace forge::yaml {
namespace {

bool begins_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

bool is_comment_or_empty(std::string_view line) {
  return line.find_first_not_of(' ') == std::string_view::npos || line[0] == '#';
}

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool contains(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

std::optional<Leaf> quoted_leaf(std::string_view line) {
  const size_t quote = line.find('"');
  if (quote == 0 || line[quote - 1] != ' ' || quote + 1 == line.size()) return std::nullopt;
  const std::string_view text = line.substr(quote + 1, line.size() - quote - 2);
  const bool has_blank_end = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (has_blank_end || contains(text, '"') || contains(text, '\\') || !is_plain_ascii(text))
    return std::nullopt;
  return Leaf{0, static_cast<int>(quote) + 1, text};
}

/// A number or bool right behind `: ` or `- `.
std::optional<Leaf> plain_leaf(std::string_view line) {
  const size_t blank = line.rfind(' ');
  if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
  if (line[blank - 1] != ':' && line[blank - 1] != '-') return std::nullopt;
  const std::string_view text = line.substr(blank + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_part_of_number = [&](char c) {
    return is_digit(c) || c == '.' || c == 'e' || c == '-' || c == '+';
  };
  const bool is_number = !text.empty() && is_digit(text[0]) &&
                         std::all_of(text.begin(), text.end(), is_part_of_number);
  if (!is_number && text != "True" && text != "False") return std::nullopt;
  return Leaf{0, static_cast<int>(blank) + 1, text};
}

/// A tag without its '!'.
std::optional<Leaf> tag_leaf(std::string_view line) {
  const size_t sign = line.rfind(" !");
  if (sign == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(sign + 2);
  const auto is_part_of_tag = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c == ':' || c == '/' || c == '@';
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_part_of_tag)) return std::nullopt;
  return Leaf{0, static_cast<int>(sign) + 2, text};
}

/// The leaf that ends a line, if there is one.
std::optional<Leaf> leaf_of(std::string_view line) {
  const bool is_quoted = line.size() > 2 && line.back() == '"';
  auto leaf = is_quoted ? quoted_leaf(line) : plain_leaf(line);
  if (!leaf && !is_quoted) leaf = tag_leaf(line);
  if (!leaf) return std::nullopt;
  return contains(line.substr(0, static_cast<size_t>(leaf->column)), '#') ? std::nullopt : leaf;
}

/// Collects the lines of one document.
class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  std::optional<SectionedText> run() {
    if (contains(text_, '\r')) return std::nullopt;
    for (size_t begin = 0; begin < text_.size();) {
      const size_t newline = text_.find('\n', begin);
      const size_t end = std::min(newline, text_.size());
      if (!add_line(text_.substr(begin, end - begin))) return std::nullopt;
      result_.line_starts.push_back(begin);
      begin = end + 1;
    }
    result_.size = text_.size();
    if (result_.sections.size() < 2) return std::nullopt;
    result_.sections.front().position = Section::Position::first;
    result_.sections.back().position = Section::Position::last;
    // What a last section ends with matters (a final newline in a block scalar does).
    flush_empty_lines();
    if (text_.back() == '\n') {
      result_.line_starts.push_back(text_.size());
    } else {
      result_.sections.back().outline.pop_back();
    }
    return std::move(result_);
  }

 private:
  bool add_line(std::string_view line) {
    const bool is_mark = starts_with(line, "---") || starts_with(line, "...");
    if (is_mark || starts_with(line, "%")) return false;
    std::vector<Section>& sections = result_.sections;
    if (!line.empty() && begins_key(line[0])) {
      // In a block scalar empty lines at the end count.
      if (may_be_block_scalar_) flush_empty_lines();
      empty_lines_.clear();
      may_be_block_scalar_ = false;
      sections.emplace_back().line = static_cast<int>(result_.line_starts.size());
    }
    if (is_comment_or_empty(line)) {
      empty_lines_.push_back(line);
      return true;
    }
    if (sections.empty()) return false;
    flush_empty_lines();
    add_content(line);
    return true;
  }

  void add_content(std::string_view line) {
    Section& section = result_.sections.back();
    may_be_block_scalar_ = may_be_block_scalar_ || contains(line, '|') || contains(line, '>');
    const size_t content = line.find_first_not_of(' ');
    std::optional<Leaf> leaf;
    if (may_be_block_scalar_) {
      section.outline.append(line) += '\n';
    } else if (line[content] == '#') {
      section.outline.append(line.substr(0, content)).append(comment_stand_in) += '\n';
    } else if (leaf = leaf_of(line); leaf) {
      leaf->line = static_cast<int>(result_.line_starts.size()) - section.line;
      section.outline.append(line.substr(0, static_cast<size_t>(leaf->column)));
      // A leaf that says 0 is left out, too, so no other line has this outline.
      section.outline += line.back() == '"' ? "\"\n" : "0\n";
      section.leaves.push_back(*leaf);
    } else {
      section.outline.append(line) += '\n';
    }
  }

  /// Comments and empty lines belong to the section where something follows in it.
  void flush_empty_lines() {
    if (result_.sections.empty()) return empty_lines_.clear();
    std::string& outline = result_.sections.back().outline;
    for (const std::string_view line : empty_lines_) {
      const bool is_comment = !may_be_block_scalar_ && !line.empty() && line[0] == '#';
      outline.append(is_comment ? comment_stand_in : line) += '\n';
    }
    empty_lines_.clear();
  }

  std::string_view text_;
  SectionedText result_;
  std::vector<std::string_view> empty_lines_;  ///< comments and empty lines since the last other
  bool may_be_block_scalar_ = false;           ///< in the section: it holds a '|' or '>'
};

}  // namespace

std::optional<SectionedText> cut_sections(std::string_view text) { return Cutter(text).run(); }

}  // namespace forge::yaml
