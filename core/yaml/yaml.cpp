#include "core/yaml/yaml.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <yaml-cpp/exceptions.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/python/string_functions.h"
#include "core/yaml/node_builder.h"
#include "core/yaml/scalar_scan.h"
#include "core/yaml/section_cache.h"

namespace forge::yaml {

const Entry* Node::find_entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry ? entry->value.get() : nullptr;
}

std::string describe_kind(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::boolean: return "the boolean " + node.text;
    case Node::Kind::integer:
    case Node::Kind::real: return "the number " + node.text;
    case Node::Kind::string: return "the string '" + node.text + "'";
    case Node::Kind::sequence: return "a sequence";
    case Node::Kind::mapping: return "a mapping";
  }
  return "";
}

namespace {

/// Line and column of an offset.
SourceSpan place_of(size_t position, const std::string& text, const OriginMap& origin) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(position);
  const size_t line = position == 0 ? 0 : text.rfind('\n', position - 1) + 1;
  return origin(static_cast<int>(std::count(text.begin(), end, '\n')) + 1,
                static_cast<int>(position - line) + 1);
}

void refuse_invalid_tab(const std::string& text, const OriginMap& origin) {
  const std::optional<size_t> tab = find_invalid_tab(text);
  if (!tab) return;
  const size_t line = *tab == 0 ? 0 : text.rfind('\n', *tab - 1) + 1;
  const bool indents = text.find_first_not_of(" \t", line) > *tab;
  throw Error(indents ? "a tab cannot indent YAML" : "a tab cannot separate words in YAML",
              place_of(*tab, text, origin),
              "use blanks");
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

/// Control characters have no place in YAML; a file that holds them is most likely no text.
void refuse_control_characters(const std::string& text, const OriginMap& origin) {
  bool found = false;
  for (const char c : text) found |= is_control(c);  // a loop that the compiler can vectorise
  if (!found) return;
  const auto first = std::find_if(text.begin(), text.end(), is_control);
  throw Error("the YAML contains the control character " +
                  std::to_string(static_cast<unsigned char>(*first)),
              place_of(static_cast<size_t>(first - text.begin()), text, origin));
}

/// What a document with the value null may contain: an anchor, a tag, an empty string tagged null.
bool can_stand_for_null(std::string_view word) {
  if (word == "!" || word == "!!null" || word == "\"\"" || word == "''") return true;
  return starts_with(word, "&") && word.size() > 1 &&
         std::all_of(word.begin() + 1, word.end(), is_anchor_character);
}

/// yaml-cpp ignores some malformed text in a document without a value.
void require_nothing_else(const std::string& text, const OriginMap& origin) {
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    size_t begin = starts_with(line, "---") ? 3 : starts_with(line, "\xEF\xBB\xBF") ? 3 : 0;
    if (starts_with(line, "%")) continue;
    while ((begin = line.find_first_not_of(' ', begin)) != std::string::npos &&
           line[begin] != '#') {
      const size_t end = std::min(line.find(' ', begin), line.size());
      if (!can_stand_for_null(std::string_view(line).substr(begin, end - begin))) {
        throw Error("not valid YAML: expected a value",
                    origin(number, static_cast<int>(begin) + 1));
      }
      begin = end;
    }
  }
}

NodePtr parse_document(const std::string& text, const OriginMap& origin) {
  refuse_control_characters(text, origin);
  refuse_invalid_tab(text, origin);
  NodeBuilder builder(text, origin);
  parse_events(text, [&](const Event& event) { builder.add(event); });
  const NodePtr root = builder.root();
  if (!root || (root->is_null() && root->text.empty())) require_nothing_else(text, origin);
  if (root) return root;
  auto empty = std::make_shared<Node>();  // a text without a document is null
  empty->origin = origin(1, 1);
  return empty;
}

}  // namespace

NodePtr parse(const std::string& text, const OriginMap& origin) {
  if (text.find('\r') != std::string::npos) return parse(python::with_line_feeds(text), origin);
  try {
    return parse_document(text, origin);
  } catch (const YAML::Exception& error) {
    throw Error("not valid YAML: " + error.msg, origin(error.mark.line + 1, error.mark.column + 1));
  }
}

NodePtr parse(const std::string& text, const OriginMap& origin, SectionCache& sections) {
  if (text.find('\r') != std::string::npos) return parse(text, origin);
  refuse_control_characters(text, origin);
  refuse_invalid_tab(text, origin);
  try {
    NodeBuilder builder(text, origin);
    if (sections.build(text, builder)) return builder.root();
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

void require_no_repeated_keys(const Node& node) {
  for (const Entry& entry : node.entries) {
    if (entry.repeats > 0)
      throw Error("'" + entry.key + "' is given twice", entry.key_origin, "keep one of them");
    require_no_repeated_keys(*entry.value);
  }
  for (const NodePtr& item : node.items) require_no_repeated_keys(*item);
}

}  // namespace forge::yaml
