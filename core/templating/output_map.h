#pragma once

#include <memory>
#include <vector>

#include "core/templating/loader.h"
#include "core/templating/render.h"
#include "core/templating/traced_text.h"

namespace forge::templating {

/// From places of a rendered text to places in templates. Immutable; any thread may ask.
class OutputMap {
 public:
  /// `units` are those that the text's places refer to.
  OutputMap(const TracedText& text, std::shared_ptr<const RenderedUnits> units);

  /// As RenderedText::origin.
  SourceSpan origin(int line, int column) const;
  /// As RenderedText::lines.
  std::vector<std::vector<OutputOrigin>> lines() const;

 private:
  size_t run_at(size_t offset) const;
  OutputOrigin stretch(size_t run, size_t line) const;

  std::shared_ptr<const RenderedUnits> units_;
  std::vector<TracedText::Run> runs_;
  std::vector<size_t> line_starts_;  ///< and the text's end
};

}  // namespace forge::templating
