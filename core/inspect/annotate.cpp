#include "core/inspect/annotate.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/inspect/span_json.h"

namespace forge::inspect {

using json = nlohmann::ordered_json;

std::vector<AnnotatedLine> annotate(const templating::RenderedText& rendered,
                                    const fs::path& here) {
  std::vector<AnnotatedLine> lines;
  for (std::string& text : split(rendered.text, '\n')) {
    const size_t first = text.find_first_not_of(" \t");
    AnnotatedLine line{std::move(text), ""};
    if (first != std::string::npos) {
      const int number = static_cast<int>(lines.size()) + 1;
      line.place = line_of(rendered.origin(number, static_cast<int>(first) + 1), here);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

nlohmann::ordered_json lines_to_json(const templating::RenderedText& rendered) {
  const auto origins = rendered.lines();
  const std::vector<std::string> texts = split(rendered.text, '\n');
  json lines = json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    json stretches = json::array();
    if (i < origins.size()) {
      for (const templating::OutputOrigin& origin : origins[i]) {
        if (static_cast<size_t>(origin.column) > texts[i].size()) continue;  // the line's end
        json stretch = {{"at", origin.column}};
        if (origin.span) stretch.update(to_json(origin.span));
        stretches.push_back(std::move(stretch));
      }
    }
    lines.push_back({{"line", i + 1}, {"text", texts[i]}, {"origins", std::move(stretches)}});
  }
  return lines;
}

}  // namespace forge::inspect
