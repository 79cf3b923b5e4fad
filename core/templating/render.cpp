#include "core/templating/render.h"

#include "core/templating/evaluator.h"
#include "core/templating/output_map.h"
#include "core/templating/template_cache.h"

namespace forge::templating {

SourceSpan RenderedText::origin(int line, int column) const {
  return map ? map->origin(line, column) : SourceSpan{};
}

std::vector<std::vector<OutputOrigin>> RenderedText::lines() const {
  return map ? map->lines() : std::vector<std::vector<OutputOrigin>>();
}

RenderedText render(const RenderRequest& request) {
  TemplateCache cache;
  return render(request, cache);
}

RenderedText render(const RenderRequest& request, TemplateCache& cache) {
  const auto units = std::make_shared<RenderedUnits>();
  Evaluator evaluator(request, cache, *units);
  TracedText text = evaluator.render();
  RenderedText rendered;
  rendered.templates = evaluator.loaded();
  rendered.map = std::make_shared<const OutputMap>(text, units);
  rendered.text = std::move(text).take_text();
  return rendered;
}

}  // namespace forge::templating
