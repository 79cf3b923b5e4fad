#include "core/yaml/parse.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/yaml/node_builder.h"
#include "core/yaml/section_cache.h"

namespace forge::yaml {
namespace {

/// YAML forbids tabs in indentation; yaml-cpp lets some of them pass.
void refuse_tab_indentation(const YAML::Mark& mark,
                            const std::string& text,
                            const OriginMap& origin) {
  if (mark.pos < 0) return;
  const size_t place = std::min(static_cast<size_t>(mark.pos), text.size());
  const size_t line = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
  const size_t tab = text.find('\t', line);
  if (tab >= text.find_first_not_of(" \t", line)) return;
  const int column = static_cast<int>(tab - line) + 1;
  throw Error("a tab cannot indent YAML", origin(mark.line + 1, column), "use blanks");
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

/// Control characters have no place in YAML; a file that holds them is most likely no text.
void refuse_control_characters(const std::string& text, const OriginMap& origin) {
  bool found = false;
  for (const char c : text) found |= is_control(c);  // a loop that the compiler can vectorise
  if (!found) return;
  int line = 1, column = 0;
  for (const char c : text) {
    ++column;
    if (is_control(c)) {
      const int code = static_cast<unsigned char>(c);
      throw Error("the YAML contains the control character " + std::to_string(code),
                  origin(line, column));
    }
    if (c != '\n') continue;
    ++line;
    column = 0;
  }
}

NodePtr parse_document(const std::string& text, const OriginMap& origin) {
  refuse_control_characters(text, origin);
  NodeBuilder builder(text, origin);
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(builder)) {
  }
  if (builder.root()) return builder.root();
  auto empty = std::make_shared<Node>();  // a text without a document is null
  empty->origin = origin(1, 1);
  return empty;
}

}  // namespace

NodePtr parse(const std::string& text, const OriginMap& origin) {
  try {
    return parse_document(text, origin);
  } catch (const YAML::Exception& error) {
    refuse_tab_indentation(error.mark, text, origin);
    throw Error("not valid YAML: " + error.msg, origin(error.mark.line + 1, error.mark.column + 1));
  }
}

NodePtr parse(const std::string& text, const OriginMap& origin, SectionCache& sections) {
  refuse_control_characters(text, origin);
  try {
    NodeBuilder builder(text, origin);
    if (sections.handle_document(text, builder)) return builder.root();
  } catch (const Error&) {
    // Of several errors the first counts, so the text is parsed from its beginning.
  }
  return parse(text, origin);
}

NodePtr parse_file(const std::string& path) {
  auto source = std::make_shared<SourceText>();
  source->name = shown_path(path);
  source->text = read_file(path);
  return parse(source->text,
               [source](int line, int column) { return make_span(source, line, column); });
}

}  // namespace forge::yaml
