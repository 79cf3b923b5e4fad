#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/templating/ast.h"
#include "core/templating/value.h"

namespace forge::templating {

using VariableMap = std::map<std::string, Value>;

/// Variables of one frame (a template's top level, a block, a loop's pass, a macro call …) and the
/// frame around it that it sees into.
struct Scope {
  VariableMap variables;
  std::shared_ptr<Scope> outer;
  const ast::UnsetNames* unset = nullptr;

  struct Lookup {
    const Value* value = nullptr;
    bool is_unset = false;  ///< a frame will assign the name and has not yet
  };
  Lookup find(const std::string& name) const;
};
using ScopePtr = std::shared_ptr<Scope>;

/// A block as one template of an inheritance chain defines it.
struct BlockDefinition {
  const ast::Block* block;
  const Usage* usage;
};

/// What the templates of one inheritance chain share: their top-level variables and their blocks.
struct Context {
  VariableMap variables;
  std::set<std::string> exported;  ///< those that an import gives away
  /// By name, the most derived definition first.
  std::map<std::string, std::vector<BlockDefinition>> blocks;
  /// Of an included template: what it sees of the one that includes it.
  ScopePtr outer_scope;
  std::shared_ptr<Context> outer;
  const VariableMap* base =
      nullptr;  ///< the caller's variables and the globals, or only the globals

  const Value* find(const std::string& name) const;
};
using ContextPtr = std::shared_ptr<Context>;

/// The inheritance chain that a template's top level runs in.
struct RootState {
  const Usage* parent = nullptr;  ///< set by `extends`: from then on the top level prints nothing
};

/// Where a statement runs.
struct Frame {
  const Usage* usage = nullptr;  ///< the template whose statement it is
  ContextPtr context;
  ScopePtr scope;
  TracedText* output = nullptr;
  RootState* root = nullptr;  ///< null where `extends` silences nothing: in blocks and macros
  bool top_level = false;     ///< assignments reach the context

  /// A frame of its own within this one.
  Frame inner(const ast::UnsetNames& unset) const;
  /// The same, printing into `text`.
  Frame inner(const ast::UnsetNames& unset, TracedText& text) const;
  /// The value of a name, or null.
  const Value* find(const std::string& name) const;
  bool is_silenced() const { return root && root->parent; }
};

}  // namespace forge::templating
