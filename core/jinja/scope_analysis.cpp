#include "core/jinja/parser.h"

#include <map>
#include <set>
#include <string>

namespace forge::jinja {
namespace {

/// What one frame does with names, in the order of the text.
class Symbols {
 public:
  explicit Symbols(const Symbols* outer) : outer_(outer) {}

  void load(const std::string& name) {
    if (!is_known(name)) known_.insert(name);
  }
  void store(const std::string& name) {
    stored_.insert(name);
    if (known_.count(name)) return;
    if (!outer_ || !outer_->is_known(name)) unassigned_.insert(name);
    known_.insert(name);
  }
  void declare(const std::string& name) {
    stored_.insert(name);
    known_.insert(name);
    unassigned_.erase(name);
  }
  /// Takes over what the branches of an `if` did. A name that not all of them assign may still be
  /// looked for outside afterwards.
  void join_branches(const std::vector<Symbols>& branches) {
    std::map<std::string, size_t> counts;
    for (const Symbols& branch : branches) {
      for (const std::string& name : branch.stored_) {
        if (!stored_.count(name)) ++counts[name];
      }
    }
    for (const Symbols& branch : branches) {
      for (const std::string& name : branch.known_) {
        known_.insert(name);
        if (branch.unassigned_.count(name)) {
          unassigned_.insert(name);
        } else {
          unassigned_.erase(name);
        }
      }
      stored_.insert(branch.stored_.begin(), branch.stored_.end());
    }
    for (const auto& [name, count] : counts) {
      if (count < branches.size()) unassigned_.erase(name);
    }
  }
  ast::UnassignedNames unassigned() const { return {unassigned_.begin(), unassigned_.end()}; }

 private:
  bool is_known(const std::string& name) const {
    for (const Symbols* symbols = this; symbols; symbols = symbols->outer_) {
      if (symbols->known_.count(name)) return true;
    }
    return false;
  }

  const Symbols* outer_;
  std::set<std::string> known_, stored_, unassigned_;
};

/// Notes the names that expressions and statements of one frame use. Bodies with a frame of their
/// own are left out; `analyze_frames` visits them afterwards.
class Visitor {
 public:
  explicit Visitor(Symbols& symbols) : symbols_(&symbols) {}

  void visit(const ast::Body& body) {
    for (const ast::Statement& statement : body) {
      std::visit([this](const auto& node) { visit(node); }, statement.node);
    }
  }

  void visit(const ast::ExpressionPtr& expression) {
    if (!expression) return;
    if (const auto* name = std::get_if<ast::Name>(&expression->node)) symbols_->load(name->name);
    ast::for_each_operand(*expression,
                          [this](const ast::ExpressionPtr& operand) { visit(operand); });
  }

  void declare(const std::string& name) { symbols_->declare(name); }

  void declare(const ast::Target& target) {
    if (target.is_tuple) {
      for (const ast::Target& part : target.parts) declare(part);
    } else {
      symbols_->declare(target.name);
    }
  }

 private:
  // Statements.
  void visit(const ast::Target& target) {
    if (target.is_tuple) {
      for (const ast::Target& part : target.parts) visit(part);
    } else if (target.attribute.empty()) {
      symbols_->store(target.name);
    } else {
      symbols_->load(target.name);
    }
  }
  void visit(const ast::Literal&) {}
  void visit(const ast::Print& node) { visit(node.value); }
  void visit(const ast::If& node) {
    visit(node.branches[0].first);
    std::vector<Symbols> branches;
    branches.push_back(branch([&] { visit(node.branches[0].second); }));
    branches.push_back(branch([&] {
      for (size_t i = 1; i < node.branches.size(); ++i)
        visit_elif(node.branches[i].first, node.branches[i].second);
    }));
    branches.push_back(branch([&] { visit(node.otherwise); }));
    symbols_->join_branches(branches);
  }
  /// Jinja sees an `elif` as an `if` of its own without `else`.
  void visit_elif(const ast::ExpressionPtr& test, const ast::Body& body) {
    visit(test);
    const Symbols none = *symbols_;
    symbols_->join_branches({branch([&] { visit(body); }), none, none});
  }
  template <typename Action>
  Symbols branch(Action action) {
    Symbols copy = *symbols_;
    Symbols* const original = std::exchange(symbols_, &copy);
    action();
    symbols_ = original;
    return copy;
  }
  void visit(const ast::For& node) { visit(node.iterable); }
  void visit(const ast::Set& node) {
    visit(node.value);
    visit(node.target);
  }
  void visit(const ast::SetBlock& node) { visit(node.target); }
  void visit(const ast::FilterBlock& node) { visit(node.filter); }
  void visit(const ast::With& node) {
    for (const auto& [target, value] : node.assignments) visit(value);
  }
  void visit(const ast::MacroDefinition& node) { symbols_->store(node.routine.name); }
  void visit(const ast::CallBlock& node) { visit(node.call); }
  void visit(const ast::BlockUse&) {}
  void visit(const ast::Extends& node) { visit(node.parent); }
  void visit(const ast::Include& node) { visit(node.name); }
  void visit(const ast::Import& node) {
    visit(node.name);
    symbols_->store(node.target);
  }
  void visit(const ast::FromImport& node) {
    visit(node.name);
    for (const auto& [name, local] : node.names) symbols_->store(local);
  }

  Symbols* symbols_;
};

void analyze_frames(ast::Body& body, const Symbols& symbols);

/// Analyses one frame and then the frames within its body. `begin` declares the names that the
/// frame has before its body; `filter`, which may be null, reads names after it.
template <typename Begin>
ast::UnassignedNames analyze_frame(ast::Body& body,
                                   const Symbols* outer,
                                   const Begin& begin,
                                   const ast::ExpressionPtr& filter = nullptr) {
  Symbols symbols(outer);
  Visitor visitor(symbols);
  begin(visitor);
  visitor.visit(body);
  visitor.visit(filter);
  analyze_frames(body, symbols);
  return symbols.unassigned();
}

void declare_nothing(Visitor&) {}

void analyze_routine(ast::Routine& routine, const Symbols& outer) {
  routine.unassigned = analyze_frame(routine.body, &outer, [&](Visitor& frame) {
    if (routine.uses_caller) frame.declare("caller");
    if (routine.uses_named) frame.declare("kwargs");
    if (routine.uses_positional) frame.declare("varargs");
    for (const std::string& parameter : routine.parameters) frame.declare(parameter);
    for (const ast::ExpressionPtr& value : routine.defaults) frame.visit(value);
  });
}

/// Visits the frames within the statements of a frame.
class FrameFinder {
 public:
  explicit FrameFinder(const Symbols& symbols) : symbols_(symbols) {}

  template <typename Node>
  void operator()(Node&) {}  // most statements hold no frame
  void operator()(ast::If& node) {
    for (auto& [test, body] : node.branches) analyze_frames(body, symbols_);
    analyze_frames(node.otherwise, symbols_);
  }
  void operator()(ast::For& node) {
    node.body_unassigned = analyze_frame(node.body, &symbols_, [&](Visitor& frame) {
      if (node.uses_loop) frame.declare("loop");
      frame.declare(node.target);
    });
    node.otherwise_unassigned = analyze_frame(node.otherwise, &symbols_, declare_nothing);
  }
  void operator()(ast::SetBlock& node) {
    node.unassigned = analyze_frame(node.body, &symbols_, declare_nothing);
  }
  void operator()(ast::FilterBlock& node) {
    node.unassigned = analyze_frame(node.body, &symbols_, declare_nothing, node.filter);
  }
  void operator()(ast::With& node) {
    node.unassigned = analyze_frame(node.body, &symbols_, [&](Visitor& frame) {
      for (const auto& [target, value] : node.assignments) frame.declare(target);
    });
  }
  void operator()(ast::MacroDefinition& node) { analyze_routine(node.routine, symbols_); }
  void operator()(ast::CallBlock& node) { analyze_routine(node.routine, symbols_); }

 private:
  const Symbols& symbols_;
};

void analyze_frames(ast::Body& body, const Symbols& symbols) {
  for (ast::Statement& statement : body) std::visit(FrameFinder(symbols), statement.node);
}

}  // namespace

void find_unassigned_names(ast::Template& tree) {
  tree.unassigned = analyze_frame(tree.body, nullptr, [&](Visitor& frame) {
    if (tree.uses_self) frame.declare("self");
  });
  for (auto& [name, block] : tree.blocks) {
    block->unassigned = analyze_frame(block->body, nullptr, [&block = block](Visitor& frame) {
      if (block->uses_self) frame.declare("self");
      if (block->uses_super) frame.declare("super");
    });
  }
}

}  // namespace forge::jinja
