#include "core/yaml/sections.h"

#include "core/base/text.h"

namespace forge::yaml {
namespace {

bool begins_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

bool is_comment_or_empty(std::string_view line) {
  return line.find_first_not_of(' ') == std::string_view::npos || line[0] == '#';
}

/// Takes comments and empty lines off the end of a section. In a block scalar (`|`, `>`) empty
/// lines count, so where there may be one all is kept.
std::string_view without_end(std::string_view section) {
  if (section.find_first_of("|>") != std::string_view::npos) return section;
  while (!section.empty()) {
    const size_t newline = section.rfind('\n', section.size() - 2);
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = section.substr(begin, section.size() - 1 - begin);
    if (!is_comment_or_empty(line)) break;
    section = section.substr(0, begin);
  }
  return section;
}

}  // namespace

std::optional<std::vector<Section>> cut_sections(std::string_view text) {
  if (text.find('\r') != std::string_view::npos) return std::nullopt;
  std::vector<Section> sections;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size(); ++line_number) {
    const size_t newline = text.find('\n', begin);
    const size_t end = newline == std::string_view::npos ? text.size() : newline;
    const std::string_view line = text.substr(begin, end - begin);
    const bool is_mark = starts_with(line, "---") || starts_with(line, "...");
    if (is_mark || starts_with(line, "%")) return std::nullopt;
    if (!line.empty() && begins_key(line[0])) {
      sections.push_back({begin, line_number, {}});
    } else if (sections.empty() && !is_comment_or_empty(line)) {
      return std::nullopt;
    }
    begin = end + 1;
  }
  if (sections.size() < 2) return std::nullopt;
  for (size_t i = 0; i + 1 < sections.size(); ++i) {
    const size_t size = sections[i + 1].begin - sections[i].begin;
    sections[i].text = without_end(text.substr(sections[i].begin, size));
  }
  sections.back().text = text.substr(sections.back().begin);
  sections.front().position = Section::Position::first;
  sections.back().position = Section::Position::last;
  return sections;
}

}  // namespace forge::yaml
