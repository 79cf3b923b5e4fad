#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace forge::yaml {

struct Node;
/// Nodes are immutable once parsed and shared: an alias and its anchor are the same pointer.
using NodePtr = std::shared_ptr<const Node>;

/// One `key: value` of a mapping.
struct Entry {
  std::string key;            ///< as written, unquoted
  bool key_is_string = true;  ///< false: the plain key resolves to a number, bool or null
  SourceSpan key_origin;
  NodePtr value;
  std::vector<NodePtr>
      overridden;      ///< values this one replaced (duplicate keys, merges), nearest first
  size_t repeats = 0;  ///< how many of those, the nearest, are of the same key of this mapping
  size_t written = 0;  ///< place of the value in the text, where `entries` has that of the key
};

/// A YAML value that knows where it came from. Scalars are resolved by YAML 1.1 (PyYAML's
/// SafeLoader): a plain `1e-3` is a string here; typed readers accept it as a number.
struct Node {
  enum class Kind { null, boolean, integer, real, string, sequence, mapping };

  Kind kind = Kind::null;
  std::string tag;     ///< "" or as written with its suffix, e.g. "!call:module:name@identity"
  std::string anchor;  ///< name of the node's anchor, ""
  bool plain = true;   ///< a scalar written without quotes
  std::string text;    ///< scalar as written (unquoted), also where `kind` is a number
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::vector<NodePtr> items;  ///< of a sequence
  std::vector<Entry> entries;  ///< of a mapping, in order; unique keys
  SourceSpan origin;
  /// Of the project whose config it was taken from; "": of the one that is read.
  std::string project_folder = {};

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind != Kind::sequence && kind != Kind::mapping; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_mapping() const { return kind == Kind::mapping; }
  /// Value of a mapping's key, or null.
  const Node* find(std::string_view key) const;
  const Entry* find_entry(std::string_view key) const;
};

/// "a mapping", "the string 'abc'", "the number 3": for messages.
std::string describe_kind(const Node& node);

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

/// Throws Error where a mapping has a key twice, at any depth: YAML would drop the first one
/// without a word.
void require_no_repeated_keys(const Node& node);

}  // namespace forge::yaml
