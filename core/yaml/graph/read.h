#pragma once

#include <string>

#include "core/yaml/graph/graph.h"
#include "core/yaml/yaml.h"

namespace forge::graph {

/// What a tag says: `!call:module:name@identity`.
struct Tag {
  enum class Kind { none, singleton, factory, partial, meta, variable, list, tuple, dict, dlist };
  Kind kind = Kind::none;
  std::string constructor;  ///< "module:name"
  std::string identity;     ///< behind the first '@'

  /// !call, !factory, !partial, !meta and their older names.
  bool is_call() const {
    return kind == Kind::singleton || kind == Kind::factory || kind == Kind::partial ||
           kind == Kind::meta;
  }
};

/// Takes a node's tag apart by Forgather's rule: behind the first word one character is dropped and
/// the rest is split at the first '@', so that `!singleton@x` names the constructor x and `!dict@x`
/// nothing. Throws Error for an unknown word and for a call without a constructor.
Tag parse_tag(const yaml::Node& node);

/// Reads a parsed document as a graph by Forgather's rules for tags and arguments; nothing is
/// imported or called. Aliases of one anchor become one node. Throws Error at the place of an
/// unknown tag, a call without constructor, a container of the wrong shape, a root key that is no
/// name, or an identity that two nodes have.
Graph read_graph(const yaml::NodePtr& document);

}  // namespace forge::graph
