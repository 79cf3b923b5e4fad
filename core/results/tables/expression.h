#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

/// Arithmetic over the metrics of a table, for its columns and claims (docs/TABLES.md):
///
///     100*(tokens_per_second/baseline.tokens_per_second - 1)
///     eval_loss[nope] - eval_loss[nope_canon] > eval_loss[rope] - eval_loss[rope_canon]
namespace forge::tables {

/// A metric of a row. `answer_accuracy.hop_8` is that of the row at hand, `baseline.eval_loss` the
/// baseline's, `eval_loss[copy/rope_1l_16d]` that of the row of a config.
struct Name {
  enum class Row { own, baseline, of_config };

  std::string metric;
  Row row = Row::own;
  std::string config = {};  ///< for `of_config`

  bool operator==(const Name& other) const {
    return metric == other.metric && row == other.row && config == other.config;
  }
};

/// As it is written in an expression.
std::string text_of(const Name& name);

enum class Operation {
  number,
  name,
  negate,
  add,
  subtract,
  multiply,
  divide,
  power,
  absolute,
  minimum,
  maximum,
  logarithm,
  exponential,
  square_root,
};

/// One operation on the values of those before it.
struct Step {
  Operation operation = Operation::number;
  double number = 0;     ///< for `number`
  Name name = {};        ///< for `name`
  size_t arguments = 0;  ///< how many values it takes
  size_t offset = 0;     ///< byte of the text at which it is written
};

/// A parsed expression in postfix order (reverse Polish notation): evaluating needs no recursion.
struct Expression {
  std::string text;  ///< the whole text that it was read from
  SourceSpan where;  ///< where that text begins
  std::vector<Step> steps;
};

enum class Relation { less, at_most, greater, at_least };
const char* text_of(Relation relation);  ///< "<", "<=", ">", ">="

/// Two expressions and what is claimed of them.
struct Comparison {
  Expression left;
  Relation relation = Relation::less;
  Expression right;
};

/// Longest text, deepest nesting and most operations that are taken: nobody writes more by hand.
constexpr size_t max_expression_bytes = 2000;
constexpr int max_expression_depth = 50;
constexpr size_t max_expression_steps = 500;

/// Numbers, names, + - * / ^ (which binds tightest, to the right), parentheses, and the functions
/// abs, min, max, log (natural), exp, sqrt. `where` is the place of the text in its file. Throws
/// Error at the column of what is wrong.
Expression parse_expression(const std::string& text, const SourceSpan& where = {});

/// The same with exactly one of < <= > >= between two expressions that name at least one metric.
Comparison parse_comparison(const std::string& text, const SourceSpan& where = {});

/// left − right: positive where the left side is the greater one.
Expression difference_of(const Comparison& comparison);

/// The names that are used, each once, in the order of the text.
std::vector<Name> names_of(const Expression& expression);

/// Throws Error at the first name whose metric is none of `metrics` or whose config none of
/// `configs`, with what it may have meant.
void check_names(const Expression& expression,
                 const std::vector<std::string>& metrics,
                 const std::vector<std::string>& configs);

using Lookup = std::function<std::optional<double>(const Name&)>;

/// None where a metric is missing, and where a result on the way is no finite number: a division by
/// zero, the logarithm of a negative number.
std::optional<double> evaluate(const Expression& expression, const Lookup& lookup);

/// An expression with its names numbered as names_of has them, for evaluating it at many points.
class NumberedExpression {
 public:
  explicit NumberedExpression(const Expression& expression);
  /// `values[i]`: what the i-th name stands for. None where evaluate has none.
  std::optional<double> at(const std::vector<double>& values) const;

 private:
  std::vector<Step> steps_;
  std::vector<size_t> numbers_;  ///< of each step's name
};

/// Whether it has one value whatever its names stand for, because they cancel as in `a - (a - 1)`
/// and `a/(2*a)`. Sums, products, quotients and whole powers are seen through.
bool is_constant(const Expression& expression);

/// An expression with its minima, maxima and absolute values pulled to the outside:
/// `min(a, b) - c` is the minimum of `a - c` and `b - c`. The pieces within are smooth, so that
/// chance can be told of each.
struct Pieces {
  enum class Kind {
    smooth,
    minimum,
    maximum,
    either,  ///< one of them, which one is not told by their order: `min(a, b)*c`
  };
  Kind kind = Kind::smooth;
  Expression smooth = {};
  std::vector<Pieces> parts = {};
};

/// How many smooth expressions there are in all.
size_t count_of(const Pieces& pieces);

/// How many of them chance may move: those that are not constant.
size_t count_of_moved(const Pieces& pieces);

/// More pieces than this are not told apart.
constexpr size_t max_pieces = 64;

/// None for an expression of more pieces.
std::optional<Pieces> pieces_of(const Expression& expression);

// Private to the expressions.

/// An Error at byte `offset` of an expression whose text begins at `where`. Where the file shows
/// the text as it is, the caret stands under the byte itself; else the message says the column.
Error expression_error(const std::string& message,
                       const std::string& text,
                       size_t offset,
                       const SourceSpan& where,
                       const std::string& hint);

}  // namespace forge::tables
