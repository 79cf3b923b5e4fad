#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/jinja/ast.h"
#include "core/python/objects.h"
#include "core/python/value.h"

namespace forge::jinja {

class Evaluator;

using VariableMap = std::map<std::string, Value>;

/// Variables of one frame (a template's top level, a block, a loop's pass, a macro call …) and the
/// frame around it that it sees into.
struct Scope {
  VariableMap variables;
  std::shared_ptr<Scope> outer;
  const ast::UnassignedNames* unassigned = nullptr;

  struct Lookup {
    const Value* value = nullptr;
    bool is_unassigned = false;  ///< a frame will assign the name and has not yet
  };
  Lookup find(const std::string& name) const;
};
using ScopePtr = std::shared_ptr<Scope>;

/// A block as one template of an inheritance chain defines it.
struct BlockDefinition {
  const ast::Block* block;
  const TemplateUse* use;
};

/// What the templates of one inheritance chain share: their top-level variables and their blocks.
struct Context {
  VariableMap variables;
  std::set<std::string> exported;  ///< those that an import can read
  /// By name, the most derived definition first.
  std::map<std::string, std::vector<BlockDefinition>> blocks;
  /// Of an included template: what it sees of the one that includes it.
  ScopePtr outer_scope;
  std::shared_ptr<Context> outer;
  const VariableMap* base = nullptr;  ///< the globals, perhaps under the caller's variables

  const Value* find(const std::string& name) const;
};
using ContextPtr = std::shared_ptr<Context>;

/// The inheritance chain that a template's top level runs in.
struct TopLevelState {
  const TemplateUse* parent = nullptr;  ///< set by `extends`, after which nothing is printed
};

/// Where a statement runs.
struct Frame {
  const TemplateUse* use = nullptr;  ///< the template whose statement it is
  ContextPtr context;
  ScopePtr scope;
  TracedText* output = nullptr;
  TopLevelState* root = nullptr;  ///< null in blocks and macros, whose output is never discarded
  bool top_level = false;         ///< assignments reach the context

  /// A frame of its own within this one.
  Frame inner(const ast::UnassignedNames& unassigned) const;
  /// The same, printing into `text`.
  Frame inner(const ast::UnassignedNames& unassigned, TracedText& text) const;
  /// The value of a name, or null.
  const Value* find(const std::string& name) const;
  bool discards_output() const { return root && root->parent; }
};

/// What `namespace()` gives: attributes that `set ns.x = …` changes from anywhere.
class Namespace : public Object {
 public:
  std::string type_name() const override { return "jinja2.utils.Namespace"; }
  std::string shown_type() const override { return "this namespace"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override;
  void set(const std::string& name, Value value) {
    attributes_.set(Value::string(name), std::move(value));
  }
  void clear() { attributes_.clear(); }

 private:
  Dict attributes_;
};

/// One group of `groupby`: a pair (grouper, list) that prints as a plain tuple.
Value make_group(Value grouper, Value list);

/// What `cycler('a', 'b')` gives.
class Cycler : public Object {
 public:
  explicit Cycler(List items) : items_(std::make_shared<const List>(std::move(items))) {}
  std::string type_name() const override { return "jinja2.utils.Cycler"; }
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override { return {"current", "next", "reset"}; }

 private:
  // Shared with the functions that next and reset return.
  std::shared_ptr<const List> items_;
  std::shared_ptr<size_t> position_ = std::make_shared<size_t>(0);
};

/// What `joiner(', ')` gives: "" at the first call, then the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "jinja2.utils.Joiner"; }
  bool callable() const override { return true; }
  Value call(const Arguments& arguments) override;

 private:
  Value separator_;
  bool used_ = false;
};

// Objects that run template text: macros, blocks, loops, imported templates. The evaluator that
// made them outlives them.

class Macro : public Object {
 public:
  Macro(Evaluator& evaluator, const ast::Routine& routine, const Frame& frame)
      : evaluator_(evaluator), routine_(routine), frame_(frame) {}
  const ast::Routine& routine() const { return routine_; }
  /// Where the macro was defined; it sees the variables there.
  const Frame& frame() const { return frame_; }

  std::string type_name() const override { return "jinja2.runtime.Macro"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Value call(const Arguments& arguments) override;
  std::optional<Value> attribute(const std::string& name) override;

 private:
  Evaluator& evaluator_;
  const ast::Routine& routine_;
  Frame frame_;
};

/// `super`, or `self.name`: a block that can be called to get its text.
class BlockReference : public Object {
 public:
  BlockReference(Evaluator& evaluator, ContextPtr context, std::string name, size_t index)
      : evaluator_(evaluator),
        context_(std::move(context)),
        name_(std::move(name)),
        index_(index) {}
  std::string type_name() const override { return "jinja2.runtime.BlockReference"; }
  bool callable() const override { return true; }
  Value call(const Arguments& arguments) override;
  std::optional<Value> attribute(const std::string& name) override;

 private:
  Evaluator& evaluator_;
  ContextPtr context_;
  std::string name_;
  size_t index_;
};

/// The block at `index` of a chain (0 is the most derived), or an undefined value.
Value block_reference(Evaluator& evaluator,
                      const ContextPtr& context,
                      const std::string& name,
                      size_t index);

/// `self`: gives the template's blocks by name.
class TemplateReference : public Object {
 public:
  TemplateReference(Evaluator& evaluator, ContextPtr context)
      : evaluator_(evaluator), context_(std::move(context)) {}
  std::string type_name() const override { return "jinja2.runtime.TemplateReference"; }
  std::optional<Value> item(const Value& key) override;

 private:
  Evaluator& evaluator_;
  ContextPtr context_;
};

/// An imported template: its exported variables, and its text when printed.
class Module : public Object {
 public:
  Module(std::string name, VariableMap exported, TracedText text)
      : name_(std::move(name)), exported_(std::move(exported)), text_(std::move(text)) {}
  std::string type_name() const override { return "jinja2.environment.TemplateModule"; }
  std::string repr() const override { return "<TemplateModule '" + name_ + "'>"; }
  std::string str() const override { return text_.text(); }
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override;
  const TracedText& text() const { return text_; }

 private:
  std::string name_;
  VariableMap exported_;
  TracedText text_;
};

/// `loop`.
class LoopState : public Object, public std::enable_shared_from_this<LoopState> {
 public:
  LoopState(
      Evaluator& evaluator, const ast::For& loop, const Frame& frame, const List& items, int depth)
      : evaluator_(evaluator), loop_(loop), frame_(frame), items_(items), depth_(depth) {}
  void set_index(size_t index) { index_ = index; }

  std::string type_name() const override { return "jinja2.runtime.LoopContext"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  bool callable() const override { return true; }
  Value call(const Arguments& arguments) override;
  std::optional<size_t> length() const override { return items_.size(); }
  std::vector<std::string> attribute_names() const override;

 private:
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

  Evaluator& evaluator_;
  const ast::For& loop_;
  Frame frame_;  ///< around the loop
  List items_;
  int depth_;  ///< of recursion, 0 for the outermost
  size_t index_ = 0;
  std::optional<List> last_changed_;
};

}  // namespace forge::jinja
