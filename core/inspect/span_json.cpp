#include "core/inspect/span_json.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"

namespace forge::inspect {
namespace {

using json = nlohmann::ordered_json;

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

std::string relative_file(const SourceText& source, const fs::path& here) {
  return fs::absolute(source.name).lexically_normal().lexically_relative(here).generic_string();
}

std::string line_of(const SourceSpan& span, const fs::path& here) {
  if (!span) return "";
  std::string place = relative_file(*span.source, here);
  if (span.line > 0) place += ":" + std::to_string(span.line);
  if (!span.source->inline_name.empty()) place += " (inline " + span.source->inline_name + ")";
  return place;
}

}  // namespace forge::inspect
