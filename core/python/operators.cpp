#include "core/python/operators.h"

#include <algorithm>
#include <cmath>

#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/unicode.h"

namespace forge::python::detail {

void refuse_work() { throw OperationError("this template does too much work", work_hint); }

}  // namespace forge::python::detail

namespace forge::python {
namespace {

/// In the order of BinaryOperator.
constexpr const char* operator_symbols[] = {"+", "-", "*", "/", "//", "%", "**"};

/// Order of two numbers: negative, zero, positive, or nothing when one is not a number (NaN).
std::optional<int> order_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    const int64_t a = left.as_integer(), b = right.as_integer();
    return a < b ? -1 : a > b ? 1 : 0;
  }
  // A long double holds every 64-bit integer, so that an integer is not rounded to be compared.
  const auto widened = [](const Value& value) {
    return value.is_integral() ? static_cast<long double>(value.as_integer()) : value.as_real();
  };
  const long double a = widened(left), b = widened(right);
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return a < b ? -1 : a > b ? 1 : 0;
}

[[noreturn]] void refuse_comparison(const Value& left, const Value& right) {
  throw OperationError("'<' not supported between instances of '" + type_name(left) + "' and '" +
                       type_name(right) + "'");
}

/// Compares values. Lists that contain themselves, or each other many times over, would take
/// forever; they are refused.
class Comparer {
 public:
  bool equal(const Value& left, const Value& right) {
    const Step step(*this);
    if (left.is_lenient() || right.is_lenient()) return left.is_lenient() && right.is_lenient();
    require_defined(left);
    require_defined(right);
    if (left.is_number() && right.is_number()) return order_numbers(left, right) == 0;
    if (left.kind() != right.kind()) return false;
    if (left.same_as(right)) return true;
    switch (left.kind()) {
      case Value::Kind::none: return true;
      case Value::Kind::string:
        charge_walk(left.as_string().size() / 2);
        return left.as_string() == right.as_string();
      case Value::Kind::list:
      case Value::Kind::tuple: return equal_items(left.items(), right.items());
      case Value::Kind::dict: return equal_dicts(left.as_dict(), right.as_dict());
      case Value::Kind::object: return left.as_object()->equal_to(*right.as_object());
      default: return false;
    }
  }

  /// Negative, zero or positive; nothing when one of two numbers is not a number.
  std::optional<int> order(const Value& left, const Value& right) {
    const Step step(*this);
    require_defined(left);
    require_defined(right);
    if (left.is_number() && right.is_number()) return order_numbers(left, right);
    // UTF-8 sorts bytewise as its code points do.
    if (left.is_string()) charge_walk(left.as_string().size() / 2);
    if (left.is_string() && right.is_string()) return left.as_string().compare(right.as_string());
    if (!left.is_sequence() || left.kind() != right.kind()) refuse_comparison(left, right);
    const List& a = left.items();
    const List& b = right.items();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i])) return order(a[i], b[i]);
    }
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
  }

 private:
  /// Counts one comparison, for as long as it runs and in all.
  class Step {
   public:
    explicit Step(Comparer& comparer) : comparer_(comparer) {
      if (comparer_.depth_ >= 100 || comparer_.steps_ >= 10'000'000) {
        throw OperationError("these values are too deeply nested to be compared");
      }
      charge_walk(20);
      ++comparer_.depth_;
      ++comparer_.steps_;
    }
    ~Step() { --comparer_.depth_; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Comparer& comparer_;
  };

  bool equal_items(const List& left, const List& right) {
    const auto equal_pair = [this](const Value& a, const Value& b) { return equal(a, b); };
    return left.size() == right.size() &&
           std::equal(left.begin(), left.end(), right.begin(), equal_pair);
  }

  bool equal_dicts(const Dict& left, const Dict& right) {
    if (left.size() != right.size()) return false;
    for (const auto& [key, value] : left.entries()) {
      const Value* other = right.find(key);
      if (!other || !equal(value, *other)) return false;
    }
    return true;
  }

  int depth_ = 0;
  int64_t steps_ = 0;
};

struct Bounds {
  int64_t begin, end, step;
};

/// Python's slice.indices(size).
Bounds slice_bounds(const Value& begin, const Value& end, const Value& step, int64_t size) {
  const auto integer_or = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (!require_defined(value).is_integral()) {
      throw OperationError("slice indices must be integers or None");
    }
    return value.as_integer();
  };
  const int64_t stride = integer_or(step, 1);
  if (stride == 0) throw OperationError("slice step cannot be zero");
  const int64_t lowest = stride < 0 ? -1 : 0;
  const int64_t highest = stride < 0 ? size - 1 : size;
  const auto bound = [&](const Value& value, int64_t fallback) {
    int64_t index = integer_or(value, fallback);
    if (value.is_none()) return index;
    if (index < 0) index = index < -size ? lowest : index + size;
    return std::min(std::max(index, lowest), highest);
  };
  return {bound(begin, stride < 0 ? highest : lowest),
          bound(end, stride < 0 ? lowest : highest),
          stride};
}

List slice_items(const List& items, const Bounds& bounds) {
  const int64_t span = bounds.end - bounds.begin, direction = bounds.step > 0 ? 1 : -1;
  const int64_t count = span * direction > 0 ? (span - direction) / bounds.step + 1 : 0;
  List part;
  for (int64_t i = 0; i < count; ++i)
    part.push_back(items[static_cast<size_t>(bounds.begin + i * bounds.step)]);
  return part;
}

}  // namespace

void require_text_size(size_t size) {
  if (size > max_text_size) throw OperationError("a text grows past 64 MiB");
}

void require_list_size(size_t size) {
  if (size > max_list_size) throw OperationError("a list grows past 10 million items");
}

std::string type_name(const Value& value) {
  // In the order of Value::Kind.
  static constexpr const char* names[] = {
      "NoneType", "StrictUndefined", "bool", "int", "float", "str", "list", "tuple", "dict"};
  if (value.is_object()) return value.as_object()->type_name();
  return names[static_cast<size_t>(value.kind())];
}

Value apply(BinaryOperator operation, const Value& left, const Value& right) {
  require_defined(left);
  const bool formats = operation == BinaryOperator::modulo && left.is_string();
  if (!formats) require_defined(right);  // a format may leave an undefined value unused
  if (left.is_number() && right.is_number()) return calculate(operation, left, right);
  if (auto value = combine(operation, left, right)) return *value;
  throw OperationError(std::string("unsupported operand types for ") +
                       operator_symbols[static_cast<size_t>(operation)] + ": '" + type_name(left) +
                       "' and '" + type_name(right) + "'");
}

bool compare(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::equal: return equals(left, right);
    case Comparison::not_equal: return !equals(left, right);
    case Comparison::in: return contains(right, left);
    case Comparison::not_in: return !contains(right, left);
    default: break;
  }
  const std::optional<int> sign = Comparer().order(left, right);
  if (!sign) return false;
  switch (comparison) {
    case Comparison::less: return *sign < 0;
    case Comparison::less_equal: return *sign <= 0;
    case Comparison::greater: return *sign > 0;
    default: return *sign >= 0;
  }
}

bool less(const Value& left, const Value& right) { return compare(Comparison::less, left, right); }

bool equals(const Value& left, const Value& right) { return Comparer().equal(left, right); }

bool contains(const Value& container, const Value& item) {
  if (container.is_lenient()) return false;
  require_defined(container);
  if (container.is_dict()) return container.as_dict().find(item) != nullptr;
  if (container.is_string()) {
    if (!require_defined(item).is_string()) {
      throw OperationError("'in <string>' requires a string as its left operand, not '" +
                           type_name(item) + "'");
    }
    charge_search(container.as_string().size(), item.as_string().size());
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (!is_iterable(container)) {
    throw OperationError("argument of type '" + type_name(container) + "' is not iterable");
  }
  for (const Value& candidate : iterate(container)) {
    if (equals(candidate, item)) return true;
  }
  return false;
}

bool is_truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      if (value.is_lenient()) return false;
      throw UndefinedError(value);
    case Value::Kind::none: return false;
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::real: return value.as_real() != 0;
    case Value::Kind::string: return !value.as_string().empty();
    case Value::Kind::list:
    case Value::Kind::tuple: return !value.items().empty();
    case Value::Kind::dict: return value.as_dict().size() > 0;
    case Value::Kind::object: return value.as_object()->truthy();
  }
  return false;
}

size_t len(const Value& value) {
  if (value.is_lenient()) return 0;
  require_defined(value);
  if (value.is_string()) {
    charge_walk(value.as_string().size());
    return length_of(value.as_string());
  }
  if (value.is_sequence()) return value.items().size();
  if (value.is_dict()) return value.as_dict().size();
  if (value.is_object()) {
    if (const auto length = value.as_object()->length()) return *length;
  }
  throw OperationError("object of type '" + type_name(value) + "' has no len()");
}

bool is_iterable(const Value& value) {
  if (value.is_object()) return value.as_object()->iterable();
  return value.is_string() || value.is_sequence() || value.is_dict();
}

List iterate(const Value& value) {
  if (value.is_lenient()) return {};
  require_defined(value);
  if (value.is_sequence()) {
    charge_items(value.items().size());
    return value.items();
  }
  if (value.is_object() && value.as_object()->iterable()) {
    charge_items(value.as_object()->length().value_or(0));
    return value.as_object()->iterate();
  }
  List items;
  if (value.is_dict()) {
    for (const auto& [key, entry] : value.as_dict().entries()) items.push_back(key);
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    charge_items(length_of(text));
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      next_code_point(text, i);
      items.push_back(Value::string(text.substr(begin, i - begin)));
    }
  } else {
    throw OperationError("'" + type_name(value) + "' object is not iterable");
  }
  return items;
}

std::optional<size_t> resolve_index(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

std::optional<Value> get_item(const Value& value, const Value& key) {
  require_defined(value);
  if (value.is_dict()) {
    const bool hashable = key.kind() != Value::Kind::list && !key.is_dict();
    const Value* found = hashable ? value.as_dict().find(key) : nullptr;
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  if (value.is_object()) return value.as_object()->item(key);
  if (!key.is_integral()) return std::nullopt;
  if (value.is_sequence()) {
    const auto index = resolve_index(key.as_integer(), value.items().size());
    return index ? std::optional<Value>(value.items()[*index]) : std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.as_string();
  charge_walk(text.size());
  const auto index = resolve_index(key.as_integer(), length_of(text));
  if (!index) return std::nullopt;
  const size_t begin = byte_offset(text, *index);
  size_t end = begin;
  next_code_point(text, end);
  return Value::string(text.substr(begin, end - begin));
}

Value slice(const Value& value, const Value& begin, const Value& end, const Value& step) {
  require_defined(value);
  if (!value.is_sequence() && !value.is_string() && !value.object_as<Range>()) {
    throw OperationError("'" + type_name(value) + "' object cannot be sliced");
  }
  const Bounds bounds = slice_bounds(begin, end, step, static_cast<int64_t>(len(value)));
  if (const Range* range = value.object_as<Range>()) {
    return range->slice(bounds.begin, bounds.end, bounds.step);
  }
  const List items = iterate(value);
  List part = slice_items(items, bounds);
  if (value.kind() == Value::Kind::tuple) return Value::tuple(std::move(part));
  if (!value.is_string()) return Value::list(std::move(part));
  std::string text;
  for (const Value& character : part) text += character.as_string();
  return Value::string(std::move(text));
}

}  // namespace forge::python
