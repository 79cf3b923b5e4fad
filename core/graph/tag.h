#pragma once

#include <string>

#include "core/yaml/node.h"

namespace forge::graph {

/// What a tag says: `!call:module:name@identity`.
struct Tag {
  enum class Word { none, singleton, factory, partial, meta, variable, list, tuple, dict, dlist };
  Word word = Word::none;
  std::string constructor;  ///< "module:name"
  std::string identity;     ///< behind the first '@'

  /// !call, !factory, !partial, !meta and their older names.
  bool is_call() const {
    return word == Word::singleton || word == Word::factory || word == Word::partial ||
           word == Word::meta;
  }
};

/// Takes a node's tag apart by Forgather's rule: behind the word one character is dropped and the
/// rest is split at the first '@', so that `!singleton@x` names the constructor x and `!dict@x`
/// nothing. Throws Error for an unknown word and for a call without a constructor.
Tag parse_tag(const yaml::Node& node);

}  // namespace forge::graph
