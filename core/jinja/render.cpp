#include "core/jinja/render.h"

#include <algorithm>

#include "core/jinja/evaluator.h"

namespace forge::jinja {

/// From places of a rendered text to places in templates. Immutable; any thread may ask.
class SourceMap {
 public:
  /// `templates` are those that the text's places refer to.
  SourceMap(const TracedText& text, std::shared_ptr<const RenderedTemplates> templates)
      : templates_(std::move(templates)), runs_(text.runs()) {
    const std::string& written = text.text();
    line_starts_.push_back(0);
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i] == '\n') line_starts_.push_back(i + 1);
    }
    line_starts_.push_back(written.size());
  }

  /// As RenderedText::origin.
  SourceSpan origin(int line, int column) const {
    if (runs_.empty() || line < 1) return {};
    const size_t line_count = line_starts_.size() - 1;
    size_t index = std::min(static_cast<size_t>(line), line_count) - 1;
    // A place behind the end (of a line, of the text) belongs to what was written last.
    if (index > 0 && line_starts_[index] == line_starts_.back()) --index;
    const size_t begin = line_starts_[index], last = line_starts_[index + 1] - 1;
    if (index + 1 != static_cast<size_t>(line)) return segment(run_at(last), index).span;
    const size_t offset = begin + static_cast<size_t>(std::max(column, 1)) - 1;
    OutputSegment found = segment(run_at(std::min(offset, last)), index);
    if (found.verbatim) found.span.column += std::max(0, column - found.column);
    return found.span;
  }

  /// As RenderedText::lines.
  std::vector<std::vector<OutputSegment>> lines() const {
    std::vector<std::vector<OutputSegment>> lines(line_starts_.size() - 1);
    for (size_t line = 0; line < lines.size() && !runs_.empty(); ++line) {
      const size_t end = line_starts_[line + 1];
      if (line_starts_[line] == end) continue;
      for (size_t run = run_at(line_starts_[line]); run < runs_.size() && runs_[run].begin < end;
           ++run) {
        lines[line].push_back(segment(run, line));
      }
    }
    return lines;
  }

 private:
  /// Index of the run that wrote the character at the offset.
  size_t run_at(size_t offset) const {
    const auto begins_behind = [](size_t place, const TracedText::Run& run) {
      return place < run.begin;
    };
    const auto next = std::upper_bound(runs_.begin(), runs_.end(), offset, begins_behind);
    return static_cast<size_t>(std::max(next - runs_.begin(), std::ptrdiff_t{1})) - 1;
  }

  /// The part of a run that lies on the line of this index.
  OutputSegment segment(size_t run, size_t line) const {
    const TracedText::Run& written = runs_[run];
    const size_t begin = std::max(written.begin, line_starts_[line]);
    Place place = written.place;
    if (written.literal) place.position += static_cast<uint32_t>(begin - written.begin);
    const int column = static_cast<int>(begin - line_starts_[line]) + 1;
    return {column, span_of(place), written.literal};
  }

  std::shared_ptr<const RenderedTemplates> templates_;
  std::vector<TracedText::Run> runs_;
  std::vector<size_t> line_starts_;  ///< and the text's end
};

SourceSpan RenderedText::origin(int line, int column) const {
  return map ? map->origin(line, column) : SourceSpan{};
}

std::vector<std::vector<OutputSegment>> RenderedText::lines() const {
  return map ? map->lines() : std::vector<std::vector<OutputSegment>>();
}

RenderedText render(const RenderRequest& request) {
  TemplateCache cache;
  return render(request, cache);
}

RenderedText render(const RenderRequest& request, TemplateCache& cache) {
  const auto templates = std::make_shared<RenderedTemplates>();
  Evaluator evaluator(request, cache, *templates);
  TracedText text = evaluator.render();
  RenderedText rendered;
  rendered.templates = evaluator.loaded();
  rendered.map = std::make_shared<const SourceMap>(text, templates);
  rendered.text = std::move(text).take_text();
  return rendered;
}

}  // namespace forge::jinja
