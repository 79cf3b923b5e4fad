#include "core/base/line_diff.h"

#include <algorithm>
#include <cstdint>

#include "core/base/text.h"

namespace forge {
namespace {

/// Beyond it, comparing each line with each takes too much memory.
constexpr size_t most_lines = 4000;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// Lines from `begin` up to `end`.
struct Lines {
  const std::vector<std::string>& all;
  size_t begin = 0, end = all.size();

  size_t count() const { return end - begin; }
  const std::string& operator[](size_t i) const { return all[begin + i]; }
};

/// What both begin and end with is no change.
void cut_common(Lines& a, Lines& b) {
  while (a.count() > 0 && b.count() > 0 && a[0] == b[0]) ++a.begin, ++b.begin;
  while (a.count() > 0 && b.count() > 0 && a.all[a.end - 1] == b.all[b.end - 1]) --a.end, --b.end;
}

/// At [i * (b.count() + 1) + j] the length of the longest common subsequence of `a` from i on and
/// `b` from j on; empty for texts that are too long.
std::vector<uint16_t> common_lengths(const Lines& a, const Lines& b) {
  const size_t width = b.count() + 1;
  if (a.count() > most_lines || b.count() > most_lines) return {};
  std::vector<uint16_t> common((a.count() + 1) * width, 0);
  for (size_t i = a.count(); i-- > 0;) {
    for (size_t j = b.count(); j-- > 0;) {
      const uint16_t kept = static_cast<uint16_t>(common[(i + 1) * width + j + 1] + 1);
      const uint16_t dropped = std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
      common[i * width + j] = a[i] == b[j] ? kept : dropped;
    }
  }
  return common;
}

}  // namespace

std::vector<LineChange> line_changes(const std::string& left, const std::string& right) {
  const std::vector<std::string> of_left = lines_of(left), of_right = lines_of(right);
  Lines a{of_left}, b{of_right};
  cut_common(a, b);
  const std::vector<uint16_t> common = common_lengths(a, b);
  const size_t width = b.count() + 1;
  std::vector<LineChange> changes;
  size_t i = 0, j = 0;
  while (i < a.count() || j < b.count()) {
    const bool are_compared = !common.empty() && i < a.count() && j < b.count();
    const bool is_both = are_compared && a[i] == b[j];
    const bool is_left = i < a.count() && (!are_compared || common[(i + 1) * width + j] >=
                                                                common[i * width + j + 1]);
    if (is_both) {
      ++i, ++j;
    } else if (is_left) {
      changes.push_back({true, a.begin + i + 1, a[i]});
      ++i;
    } else {
      changes.push_back({false, b.begin + j + 1, b[j]});
      ++j;
    }
  }
  return changes;
}

}  // namespace forge
