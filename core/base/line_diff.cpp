#include "core/base/line_diff.h"

#include <algorithm>
#include <cstdint>

#include "core/base/text.h"

namespace forge {
namespace {

constexpr size_t most_lines = 4000;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > most_lines) lines.resize(most_lines);
  return lines;
}

}  // namespace

std::vector<LineChange> line_changes(const std::string& left, const std::string& right) {
  const std::vector<std::string> a = lines_of(left), b = lines_of(right);
  // common[i][j]: length of the longest common subsequence of a from i on and b from j on.
  const size_t width = b.size() + 1;
  std::vector<uint16_t> common((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint16_t kept = static_cast<uint16_t>(common[(i + 1) * width + j + 1] + 1);
      const uint16_t dropped = std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
      common[i * width + j] = a[i] == b[j] ? kept : dropped;
    }
  }
  std::vector<LineChange> changes;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool is_both = i < a.size() && j < b.size() && a[i] == b[j];
    const bool is_left =
        i < a.size() && (j == b.size() || common[(i + 1) * width + j] >= common[i * width + j + 1]);
    if (is_both) {
      ++i, ++j;
    } else if (is_left) {
      changes.push_back({true, i + 1, a[i]});
      ++i;
    } else {
      changes.push_back({false, j + 1, b[j]});
      ++j;
    }
  }
  return changes;
}

}  // namespace forge
