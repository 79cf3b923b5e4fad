#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/jinja/ast.h"
#include "core/jinja/lexer.h"

namespace forge::jinja {

/// The names that a part of a template reads. Jinja defines some, such as `loop`, only where they
/// are read.
using NameUses = std::set<std::string>;

/// Parses expressions by Jinja's grammar (note: `**` is left-associative and binds tighter than
/// filters bind to what is left of it; `-2 ** 2` is 4).
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  /// A whole expression with inline `if`.
  ast::ExpressionPtr parse();
  /// An expression, or a tuple without parentheses; `end_name` (as "in") ends it too.
  ast::ExpressionPtr parse_tuple(bool with_conditional = true, std::string_view end_name = "");
  /// The filters `name(…) | name(…)` on a text that comes later.
  ast::ExpressionPtr parse_filter_chain();
  /// Adds the names that are read from here on to `uses`, up to end_tracking.
  void begin_tracking(NameUses* uses) { trackers_.push_back(uses); }
  void end_tracking() { trackers_.pop_back(); }
  /// Replaces all trackers, as a block's body needs, and returns the old ones.
  std::vector<NameUses*> swap_trackers(std::vector<NameUses*> trackers);
  void note_use(const std::string& name);

  /// Inside `if` an unknown filter is an error only when it runs.
  int conditional_depth = 0;

 private:
  using Ptr = ast::ExpressionPtr;
  template <typename Operator>
  using Operators = std::initializer_list<std::pair<std::string_view, Operator>>;
  class Nesting;

  Ptr parse_conditional();
  Ptr parse_items(bool with_conditional, std::string_view end_name);
  Ptr checked(Ptr expression);
  void note_unknown(const std::string& kind,
                    const std::string& name,
                    const std::vector<std::string>& known,
                    uint32_t position);
  Ptr parse_or();
  Ptr parse_and();
  Ptr parse_logical(bool is_and, Ptr (ExpressionParser::*operand)());
  Ptr parse_binary(Ptr (ExpressionParser::*operand)(), Operators<BinaryOperator> operators);
  Ptr parse_not();
  Ptr parse_comparison();
  Ptr parse_sum();
  Ptr parse_concatenation();
  Ptr parse_product();
  Ptr parse_power();
  Ptr parse_operand();
  Ptr parse_unary(bool with_filters);
  Ptr parse_primary();
  Ptr parse_name();
  Ptr parse_string();
  Ptr parse_number();
  Ptr parse_parentheses();
  Ptr parse_list();
  Ptr parse_dict();
  Ptr parse_postfix(Ptr expression);
  Ptr parse_filters_and_tests(Ptr expression);
  Ptr parse_attribute(Ptr object);
  Ptr parse_subscript(Ptr object);
  Ptr parse_call(Ptr callee);
  Ptr parse_filter(Ptr input);
  Ptr parse_test(Ptr input);
  std::string parse_dotted_name();
  template <typename ParseItem>
  void parse_until(std::string_view close, const ParseItem& parse_item);
  ast::CallArguments parse_arguments();
  void parse_argument(ast::CallArguments& arguments);
  bool at_tuple_end(std::string_view end_name) const;

  TokenStream& tokens_;
  std::vector<NameUses*> trackers_;
  /// An unknown filter or test outside of every condition met so far.
  std::optional<SyntaxError> unknown_;
  int nesting_ = 0;
};

}  // namespace forge::jinja
