#include "core/results/tables/expression.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::tables {
namespace {

/// The place in a text that no file is known of.
SourceSpan place_in(const std::string& text, size_t offset) {
  auto source = std::make_shared<SourceText>();
  source->name = "expression";
  source->text = text;
  const std::string before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return make_span(source, static_cast<int>(line), static_cast<int>(offset - line_start) + 1);
}

}  // namespace

Error expression_error(const std::string& message,
                       const std::string& text,
                       size_t offset,
                       const SourceSpan& where,
                       const std::string& hint) {
  if (!where) return Error(message, place_in(text, offset), hint);
  const std::string line = where.line_text();
  for (const size_t quote : {0, 1}) {
    const size_t begin = static_cast<size_t>(std::max(where.column, 1)) - 1 + quote;
    if (begin > line.size() || line.compare(begin, text.size(), text) != 0) continue;
    SourceSpan exact = where;
    exact.column = static_cast<int>(begin + offset) + 1;
    return Error(message, exact, hint);
  }
  return Error(
      message + " (column " + std::to_string(offset + 1) + " of '" + text + "')", where, hint);
}

namespace {

double result_of(const Step& step, const double* values) {
  const double* end = values + step.arguments;
  switch (step.operation) {
    case Operation::negate: return -values[0];
    case Operation::add: return values[0] + values[1];
    case Operation::subtract: return values[0] - values[1];
    case Operation::multiply: return values[0] * values[1];
    case Operation::divide: return values[0] / values[1];
    case Operation::power: return std::pow(values[0], values[1]);
    case Operation::absolute: return std::fabs(values[0]);
    case Operation::minimum: return *std::min_element(values, end);
    case Operation::maximum: return *std::max_element(values, end);
    case Operation::logarithm: return std::log(values[0]);
    case Operation::exponential: return std::exp(values[0]);
    case Operation::square_root: return std::sqrt(values[0]);
    case Operation::number:
    case Operation::name: break;
  }
  return step.number;
}

bool is_among(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string text_of(const Name& name) {
  switch (name.row) {
    case Name::Row::own: break;
    case Name::Row::baseline: return "baseline." + name.metric;
    case Name::Row::of_config: return name.metric + "[" + name.config + "]";
  }
  return name.metric;
}

const char* text_of(Relation relation) {
  constexpr const char* texts[] = {"<", "<=", ">", ">="};
  return texts[static_cast<size_t>(relation)];
}

Expression difference_of(const Comparison& comparison) {
  Expression difference = comparison.left;
  difference.steps.insert(
      difference.steps.end(), comparison.right.steps.begin(), comparison.right.steps.end());
  Step subtract;
  subtract.operation = Operation::subtract;
  subtract.arguments = 2;
  difference.steps.push_back(subtract);
  return difference;
}

std::vector<Name> names_of(const Expression& expression) {
  std::vector<Name> names;
  for (const Step& step : expression.steps) {
    if (step.operation == Operation::name &&
        std::find(names.begin(), names.end(), step.name) == names.end())
      names.push_back(step.name);
  }
  return names;
}

void check_names(const Expression& expression,
                 const std::vector<std::string>& metrics,
                 const std::vector<std::string>& configs) {
  for (const Step& step : expression.steps) {
    if (step.operation != Operation::name) continue;
    const Name& name = step.name;
    if (!is_among(name.metric, metrics)) {
      throw expression_error(
          "there is no metric '" + name.metric + "'",
          expression.text,
          step.offset,
          expression.where,
          did_you_mean(name.metric, metrics, "metrics are " + join(metrics, ", ")));
    }
    if (name.row == Name::Row::of_config && !is_among(name.config, configs)) {
      throw expression_error("'" + name.config + "' has no row in this table",
                             expression.text,
                             step.offset,
                             expression.where,
                             did_you_mean(name.config, configs, "rows are " + join(configs, ", ")));
    }
  }
}

namespace {

using Product = std::map<std::string, double>;  ///< the powers of its factors, none of them 0
using Sum = std::map<Product, double>;          ///< the numbers before its products, the same

std::string terms_text(const Sum& sum) {
  std::string text;
  for (const auto& [product, number] : sum) {
    text += " + " + shortest(number);
    for (const auto& [factor, power] : product) text += "*" + factor + "^" + shortest(power);
  }
  return "(" + text + ")";
}

bool is_number(const Sum& sum) {
  return sum.empty() || (sum.size() == 1 && sum.begin()->first.empty());
}

/// What is not seen through: equal where its text is.
Sum closed(const std::string& text, double power = 1) { return {{{{text, power}}, 1}}; }

/// What is left where terms cancel is their rounding.
template <class Key>
void add_to(std::map<Key, double>& terms, const Key& key, double number) {
  const double before = terms[key];
  const double after = terms[key] += number;
  if (std::fabs(after) <= 1e-12 * std::max(std::fabs(before), std::fabs(number))) terms.erase(key);
}

Sum sum_of(Sum a, const Sum& b, double times) {
  for (const auto& [product, number] : b) add_to(a, product, times * number);
  return a;
}

Sum product_of(const Sum& a, const Sum& b) {
  if (a.size() * b.size() > max_pieces) return closed(terms_text(a) + "*" + terms_text(b));
  Sum result;
  for (const auto& [left, number] : a) {
    for (const auto& [right, times] : b) {
      Product both = left;
      for (const auto& [factor, power] : right) add_to(both, factor, power);
      add_to(result, both, number * times);
    }
  }
  return result;
}

/// A whole power of a product; of a sum it is one factor.
Sum power_of(const Sum& base, double power) {
  if (power == 0) return {{{}, 1}};
  if (base.size() != 1) return closed(terms_text(base), power);
  const auto& [product, number] = *base.begin();
  Product raised;
  for (const auto& [factor, own] : product) raised[factor] = own * power;
  return {{raised, std::pow(number, power)}};
}

Sum sum_of_products(const Step& step, const std::vector<Sum>& arguments) {
  switch (step.operation) {
    case Operation::number: return sum_of({}, {{{}, step.number}}, 1);
    case Operation::name: return closed(text_of(step.name));
    case Operation::negate: return sum_of({}, arguments[0], -1);
    case Operation::add: return sum_of(arguments[0], arguments[1], 1);
    case Operation::subtract: return sum_of(arguments[0], arguments[1], -1);
    case Operation::multiply: return product_of(arguments[0], arguments[1]);
    case Operation::divide: return product_of(arguments[0], power_of(arguments[1], -1));
    case Operation::power: {
      const Sum& exponent = arguments[1];
      const double power = exponent.empty() ? 0 : exponent.begin()->second;
      if (is_number(exponent) && power == std::round(power)) return power_of(arguments[0], power);
      break;
    }
    default: break;
  }
  std::string text = std::to_string(static_cast<int>(step.operation));
  for (const Sum& argument : arguments) text += terms_text(argument);
  return closed(text);
}

}  // namespace

bool is_constant(const Expression& expression) {
  std::vector<Sum> stack;
  for (const Step& step : expression.steps) {
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(step.arguments);
    Sum result = sum_of_products(step, {first, stack.end()});
    stack.erase(first, stack.end());
    stack.push_back(std::move(result));
  }
  return stack.size() == 1 && is_number(stack[0]);
}

namespace {

/// The value of a piece without names.
std::optional<double> constant_of(const Pieces& pieces) {
  if (pieces.kind != Pieces::Kind::smooth) return std::nullopt;
  return evaluate(pieces.smooth, [](const Name&) { return std::nullopt; });
}

/// Whether the operation keeps the order of what its argument at `index` may be (1), turns it
/// around (−1), or neither (0).
int direction(const Step& step, const std::vector<Pieces>& arguments, size_t index) {
  const auto sign = [](std::optional<double> factor) {
    return !factor ? 0 : *factor > 0 ? 1 : *factor < 0 ? -1 : 0;
  };
  switch (step.operation) {
    case Operation::add:
    case Operation::logarithm:
    case Operation::exponential:
    case Operation::square_root: return 1;
    case Operation::negate: return -1;
    case Operation::subtract: return index == 0 ? 1 : -1;
    case Operation::multiply: return sign(constant_of(arguments[1 - index]));
    case Operation::divide: return index == 0 ? sign(constant_of(arguments[1])) : 0;
    default: return 0;
  }
}

Pieces::Kind turned(Pieces::Kind kind, int direction) {
  if (direction == 0 || kind == Pieces::Kind::either) return Pieces::Kind::either;
  if (direction > 0) return kind;
  return kind == Pieces::Kind::minimum ? Pieces::Kind::maximum : Pieces::Kind::minimum;
}

/// The operation on each piece of its first argument that has several.
Pieces applied(const Step& step, const std::vector<Pieces>& arguments) {
  const auto several = std::find_if(arguments.begin(), arguments.end(), [](const Pieces& argument) {
    return argument.kind != Pieces::Kind::smooth;
  });
  Pieces result;
  if (several == arguments.end()) {
    for (const Pieces& argument : arguments)
      result.smooth.steps.insert(
          result.smooth.steps.end(), argument.smooth.steps.begin(), argument.smooth.steps.end());
    result.smooth.steps.push_back(step);
    return result;
  }
  const auto index = static_cast<size_t>(several - arguments.begin());
  result.kind = turned(several->kind, direction(step, arguments, index));
  for (const Pieces& part : several->parts) {
    std::vector<Pieces> with_part = arguments;
    with_part[index] = part;
    result.parts.push_back(applied(step, with_part));
  }
  return result;
}

Pieces negated(const Pieces& pieces) {
  Step negate;
  negate.operation = Operation::negate;
  negate.arguments = 1;
  return applied(negate, {pieces});
}

}  // namespace

size_t count_of(const Pieces& pieces) {
  size_t count = pieces.kind == Pieces::Kind::smooth ? 1 : 0;
  for (const Pieces& part : pieces.parts) count += count_of(part);
  return count;
}

size_t count_of_moved(const Pieces& pieces) {
  size_t count = pieces.kind == Pieces::Kind::smooth && !is_constant(pieces.smooth) ? 1 : 0;
  for (const Pieces& part : pieces.parts) count += count_of_moved(part);
  return count;
}

std::optional<Pieces> pieces_of(const Expression& expression) {
  std::vector<Pieces> stack;
  for (const Step& step : expression.steps) {
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(step.arguments);
    const std::vector<Pieces> arguments(first, stack.end());
    stack.erase(first, stack.end());
    Pieces result;
    switch (step.operation) {
      case Operation::minimum: result = {Pieces::Kind::minimum, {}, arguments}; break;
      case Operation::maximum: result = {Pieces::Kind::maximum, {}, arguments}; break;
      case Operation::absolute:
        result = {Pieces::Kind::maximum, {}, {arguments[0], negated(arguments[0])}};
        break;
      default: {
        size_t combinations = 1;
        for (const Pieces& argument : arguments) combinations *= count_of(argument);
        if (combinations > max_pieces) return std::nullopt;
        result = applied(step, arguments);
      }
    }
    if (count_of(result) > max_pieces) return std::nullopt;
    stack.push_back(std::move(result));
  }
  return stack.empty() ? std::nullopt : std::optional<Pieces>(std::move(stack.back()));
}

namespace {

/// `value_of(i)`: of the name of the i-th step.
template <class ValueOf>
std::optional<double> evaluate_steps(const std::vector<Step>& steps, const ValueOf& value_of) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (values.size() < step.arguments) return std::nullopt;  // no parser made this
    std::optional<double> result;
    if (step.operation == Operation::name)
      result = value_of(i);
    else
      result = result_of(step, values.data() + (values.size() - step.arguments));
    if (!result || !std::isfinite(*result)) return std::nullopt;
    values.resize(values.size() - step.arguments);
    values.push_back(*result);
  }
  return values.size() == 1 ? std::optional<double>(values.front()) : std::nullopt;
}

}  // namespace

std::optional<double> evaluate(const Expression& expression, const Lookup& lookup) {
  return evaluate_steps(expression.steps,
                        [&](size_t i) { return lookup(expression.steps[i].name); });
}

NumberedExpression::NumberedExpression(const Expression& expression) : steps_(expression.steps) {
  const std::vector<Name> names = names_of(expression);
  for (const Step& step : steps_) {
    const auto found = std::find(names.begin(), names.end(), step.name);
    numbers_.push_back(static_cast<size_t>(found - names.begin()));
  }
}

std::optional<double> NumberedExpression::at(const std::vector<double>& values) const {
  return evaluate_steps(steps_, [&](size_t i) {
    return numbers_[i] < values.size() ? std::optional<double>(values[numbers_[i]]) : std::nullopt;
  });
}

}  // namespace forge::tables
