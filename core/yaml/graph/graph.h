#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace forge::graph {

struct Node;
/// Nodes are immutable. One that several others refer to is one object: the same pointer.
using NodePtr = std::shared_ptr<const Node>;

/// A key of a mapping or a keyword argument of a call, with its value.
struct Entry {
  std::string key;            ///< as written, unquoted
  bool key_is_string = true;  ///< false: a number, bool or null, which only a plain mapping has
  SourceSpan key_origin;
  NodePtr value;
};

/// A value, a container or a call that a config describes. It is not constructed yet.
struct Node {
  enum class Kind { null, boolean, integer, real, string, list, tuple, mapping, variable, call };
  enum class CallKind {
    singleton,  ///< called once; all references share the result
    factory,    ///< called anew for each reference
    partial,    ///< not called; passed on with its arguments bound
    meta,       ///< called once, with the arguments as nodes
  };

  Kind kind = Kind::null;
  std::string text;  ///< a string's text, a variable's name, a call's constructor
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;

  std::vector<NodePtr> items;  ///< of a list or tuple; positional arguments of a call
  std::vector<Entry> entries;  ///< of a mapping; keyword arguments of a call
  bool is_object = false;      ///< a container tagged !list, !dlist, !tuple or !dict
  CallKind call_kind = CallKind::singleton;
  NodePtr submodule_searchpath;  ///< of a call: where its module is looked for, or null
  NodePtr latent_args;           ///< of a call: keyword arguments added when it is made, or null
  NodePtr default_value;         ///< of a variable, or null where it has none

  std::string identity;  ///< the name behind '@', ""
  std::string anchor;    ///< its name in the text, ""
  SourceSpan origin;

  bool is_scalar() const;
  /// Value of a mapping's key or of a call's keyword argument, or null.
  const Node* find(std::string_view key) const;
};

/// All nodes of a config.
struct Graph {
  NodePtr root;

  /// Whether the root is a plain mapping, whose keys are the targets.
  bool has_targets() const;
  /// The target of that name. Throws Error with near misses.
  const Entry& target(const std::string& name) const;
  /// The same graph less all other targets.
  Graph only(const std::string& name) const;
};

/// "a list", "the string 'abc'", "a call of 'torch.optim:AdamW'": for messages.
std::string describe_kind(const Node& node);

/// The word of the tag that makes such a call: "singleton", "factory", "partial", "meta".
const char* name_of(Node::CallKind call_kind);

/// What !var looks up.
using Bindings = std::map<std::string, NodePtr>;

/// The node with every variable replaced by its binding, else by its default, and !list, !dlist,
/// !tuple and !dict by plain containers. Calls stay as they are, with evaluated arguments. Throws
/// Error where a variable has neither binding nor default.
NodePtr evaluate(const NodePtr& node, const Bindings& bindings = {});

}  // namespace forge::graph
