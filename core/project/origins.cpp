#include "core/project/origins.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::project {

using json = nlohmann::ordered_json;

namespace {

json place(const SourceSpan& span) {
  json object = {{"file", span.source->name}, {"line", span.line}, {"column", span.column}};
  if (!span.source->inline_name.empty()) object["inline"] = span.source->inline_name;
  return object;
}

}  // namespace

nlohmann::ordered_json to_json(const SourceSpan& span) {
  if (!span) return nullptr;
  json object = place(span);
  object["via"] = json::array();
  for (auto via = span.via; via && *via; via = via->via) object["via"].push_back(place(*via));
  return object;
}

std::string relative_file(const fs::path& file, const fs::path& here) {
  return fs::absolute(file).lexically_normal().lexically_relative(here).generic_string();
}

std::string line_of(const SourceSpan& span, const fs::path& here) {
  if (!span) return "";
  std::string place = relative_file(span.source->name, here);
  if (span.line > 0) place += ":" + std::to_string(span.line);
  if (!span.source->inline_name.empty()) place += " (inline " + span.source->inline_name + ")";
  return place;
}

std::vector<AnnotatedLine> annotate(const jinja::RenderedText& rendered, const fs::path& here) {
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

nlohmann::ordered_json lines_to_json(const jinja::RenderedText& rendered) {
  const auto origins = rendered.lines();
  const std::vector<std::string> texts = split(rendered.text, '\n');
  json lines = json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    json stretches = json::array();
    if (i < origins.size()) {
      for (const jinja::OutputSegment& origin : origins[i]) {
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

}  // namespace forge::project
