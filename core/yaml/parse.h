#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/yaml/node.h"

namespace forge::yaml {

/// Gives the origin of a 1-based (line, column) of the text that is parsed.
using OriginMap = std::function<SourceSpan(int line, int column)>;

/// Parses one YAML document. Duplicate keys override (first position, last value), `<<` merges,
/// keys that begin with '.' at the root are elided. Throws Error with the mapped place.
NodePtr parse(const std::string& text, const OriginMap& origin);

class SectionCache;

/// The same for one of many documents: what they have in common is read once for all that share
/// the cache, on any thread.
NodePtr parse(const std::string& text, const OriginMap& origin, SectionCache& sections);

/// Parses a file as it stands (no template stage); origins are the file's own lines.
NodePtr parse_file(const std::string& path);

}  // namespace forge::yaml
