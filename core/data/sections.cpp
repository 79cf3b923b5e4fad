#include "core/data/sections.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::data {

std::vector<Section> read_sections(std::string_view text) {
  std::vector<Section> sections;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[' && line.back() == ']') {
      sections.push_back({line.substr(1, line.size() - 2), {}});
      continue;
    }
    if (sections.empty()) throw Error("the line '" + line + "' has no section");
    std::vector<std::string>& items = sections.back().items;
    if (line[0] == '-') {
      items.emplace_back(trim(std::string_view(line).substr(1)));
    } else if (starts_with(line, "  ") && !items.empty()) {
      items.back().append(" ").append(trim(line));
    } else {
      for (const std::string& item : split(line, ',')) {
        if (!trim(item).empty()) items.emplace_back(trim(item));
      }
    }
  }
  return sections;
}

}  // namespace forge::data
