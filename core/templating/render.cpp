#include "core/templating/render.h"

#include <algorithm>

#include "core/templating/evaluator.h"
#include "core/templating/loader.h"

namespace forge::templating {
namespace {

/// Resolves the origin of each stretch of a text, line by line.
class OriginLines {
 public:
  explicit OriginLines(const TracedText& text) : text_(text.text()), runs_(text.runs()) {}

  std::vector<std::vector<OutputOrigin>> resolve() {
    begin_line();
    for (size_t i = 0; i < runs_.size(); ++i) {
      const size_t end = i + 1 < runs_.size() ? runs_[i + 1].begin : text_.size();
      add_run(runs_[i], end);
    }
    return std::move(lines_);
  }

 private:
  void begin_line() { lines_.emplace_back(); }

  void add_run(const TracedText::Run& run, size_t end) {
    size_t begin = run.begin;
    while (begin < end) {
      Place place = run.place;
      if (run.literal) place.position += static_cast<uint32_t>(begin - run.begin);
      OutputOrigin origin;
      origin.column = static_cast<int>(begin - line_begin_) + 1;
      origin.span = span_of(place);
      origin.verbatim = run.literal;
      lines_.back().push_back(std::move(origin));
      const size_t newline = text_.find('\n', begin);
      if (newline == std::string::npos || newline >= end) return;
      begin = newline + 1;
      line_begin_ = begin;
      begin_line();
    }
  }

  const std::string& text_;
  const std::vector<TracedText::Run>& runs_;
  std::vector<std::vector<OutputOrigin>> lines_;
  size_t line_begin_ = 0;
};

}  // namespace

SourceSpan RenderedText::origin(int line, int column) const {
  if (lines.empty() || line < 1) return {};
  // A place behind the end (of a line, of the text) belongs to what was written last.
  size_t index = std::min(static_cast<size_t>(line), lines.size()) - 1;
  while (index > 0 && lines[index].empty()) --index;
  const std::vector<OutputOrigin>& stretches = lines[index];
  if (stretches.empty()) return {};
  size_t found = stretches.size() - 1;
  if (index + 1 != static_cast<size_t>(line)) return stretches[found].span;
  while (found > 0 && stretches[found].column > column) --found;
  SourceSpan span = stretches[found].span;
  if (stretches[found].verbatim) span.column += std::max(0, column - stretches[found].column);
  return span;
}

RenderedText render(const RenderRequest& request) {
  Evaluator evaluator(request);
  const TracedText text = evaluator.render();
  RenderedText rendered;
  rendered.text = text.text();
  rendered.lines = OriginLines(text).resolve();
  rendered.templates = evaluator.loaded();
  return rendered;
}

}  // namespace forge::templating
