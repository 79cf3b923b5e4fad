#pragma once

#include <memory>
#include <string>

#include "core/templating/context.h"
#include "core/templating/objects.h"

namespace forge::templating {

/// Objects that run template text: macros, blocks, loops, imported templates.

class Macro : public Object {
 public:
  Macro(const ast::Routine& routine, const Frame& frame) : routine_(routine), frame_(frame) {}
  const ast::Routine& routine() const { return routine_; }
  /// Where the macro was defined; it sees the variables there.
  const Frame& frame() const { return frame_; }

  std::string type_name() const override { return "jinja2.runtime.Macro"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Value call(Evaluator& evaluator, const Arguments& arguments) override;
  std::optional<Value> attribute(const std::string& name) override;

 private:
  const ast::Routine& routine_;
  Frame frame_;
};

/// `super`, or `self.name`: a block that can be called to get its text.
class BlockReference : public Object {
 public:
  BlockReference(ContextPtr context, std::string name, size_t index)
      : context_(std::move(context)), name_(std::move(name)), index_(index) {}
  std::string type_name() const override { return "jinja2.runtime.BlockReference"; }
  bool callable() const override { return true; }
  Value call(Evaluator& evaluator, const Arguments& arguments) override;
  std::optional<Value> attribute(const std::string& name) override;

 private:
  ContextPtr context_;
  std::string name_;
  size_t index_;
};

/// The block at `index` of a chain (0 is the most derived), or an undefined value.
Value block_reference(const ContextPtr& context, const std::string& name, size_t index);

/// `self`: gives the template's blocks by name.
class TemplateReference : public Object {
 public:
  explicit TemplateReference(ContextPtr context) : context_(std::move(context)) {}
  std::string type_name() const override { return "jinja2.runtime.TemplateReference"; }
  std::optional<Value> item(const Value& key) override;

 private:
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
  LoopState(const ast::For& loop, const Frame& frame, const List& items, int depth)
      : loop_(loop), frame_(frame), items_(items), depth_(depth) {}
  void advance_to(size_t index) { index_ = index; }

  std::string type_name() const override { return "jinja2.runtime.LoopContext"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  bool callable() const override { return true; }
  Value call(Evaluator& evaluator, const Arguments& arguments) override;
  std::optional<size_t> length() const override { return items_.size(); }
  std::vector<std::string> attribute_names() const override;

 private:
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

  const ast::For& loop_;
  Frame frame_;  ///< around the loop
  List items_;
  int depth_;  ///< of recursion, 0 for the outermost
  size_t index_ = 0;
  std::optional<List> last_changed_;
};

}  // namespace forge::templating
