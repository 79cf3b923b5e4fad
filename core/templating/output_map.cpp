#include "core/templating/output_map.h"

#include <algorithm>

namespace forge::templating {

OutputMap::OutputMap(const TracedText& text, std::shared_ptr<const RenderedUnits> units)
    : units_(std::move(units)), runs_(text.runs()) {
  const std::string& written = text.text();
  line_starts_.push_back(0);
  for (size_t newline = written.find('\n'); newline != std::string::npos;
       newline = written.find('\n', newline + 1)) {
    line_starts_.push_back(newline + 1);
  }
  line_starts_.push_back(written.size());
}

/// Index of the run that wrote the character at the offset.
size_t OutputMap::run_at(size_t offset) const {
  const auto begins_behind = [](size_t place, const TracedText::Run& run) {
    return place < run.begin;
  };
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), offset, begins_behind);
  return static_cast<size_t>(std::max(next - runs_.begin(), std::ptrdiff_t{1})) - 1;
}

/// What the run wrote of a line (its index), at which it begins or goes on.
OutputOrigin OutputMap::stretch(size_t run, size_t line) const {
  const TracedText::Run& written = runs_[run];
  const size_t begin = std::max(written.begin, line_starts_[line]);
  Place place = written.place;
  if (written.literal) place.position += static_cast<uint32_t>(begin - written.begin);
  OutputOrigin origin;
  origin.column = static_cast<int>(begin - line_starts_[line]) + 1;
  origin.span = span_of(place);
  origin.verbatim = written.literal;
  return origin;
}

SourceSpan OutputMap::origin(int line, int column) const {
  if (runs_.empty() || line < 1) return {};
  const size_t line_count = line_starts_.size() - 1;
  size_t index = std::min(static_cast<size_t>(line), line_count) - 1;
  // A place behind the end (of a line, of the text) belongs to what was written last.
  if (index > 0 && line_starts_[index] == line_starts_.back()) --index;
  const size_t begin = line_starts_[index], last = line_starts_[index + 1] - 1;
  if (index + 1 != static_cast<size_t>(line)) return stretch(run_at(last), index).span;
  const size_t offset = begin + static_cast<size_t>(std::max(column, 1)) - 1;
  OutputOrigin found = stretch(run_at(std::min(offset, last)), index);
  if (found.verbatim) found.span.column += std::max(0, column - found.column);
  return found.span;
}

std::vector<std::vector<OutputOrigin>> OutputMap::lines() const {
  std::vector<std::vector<OutputOrigin>> lines(line_starts_.size() - 1);
  for (size_t line = 0; line < lines.size() && !runs_.empty(); ++line) {
    const size_t end = line_starts_[line + 1];
    if (line_starts_[line] == end) continue;
    for (size_t run = run_at(line_starts_[line]); run < runs_.size() && runs_[run].begin < end;
         ++run) {
      lines[line].push_back(stretch(run, line));
    }
  }
  return lines;
}

}  // namespace forge::templating
