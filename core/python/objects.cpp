#include "core/python/objects.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"

namespace forge::python {

Parameters::Parameters(const std::string& function,
                       const Arguments& arguments,
                       const std::vector<std::string>& names,
                       size_t required)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names.size()) {
    throw OperationError(function + " takes at most " + std::to_string(names.size()) +
                         " arguments, but " + std::to_string(arguments.positional.size()) +
                         " were given");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw OperationError(function + " has no argument '" + name + "'", did_you_mean(name, names));
    }
    std::optional<Value>& slot = values_[static_cast<size_t>(found - names.begin())];
    if (slot) throw OperationError(function + " got two values for its argument '" + name + "'");
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) throw OperationError(function + " needs an argument '" + names[i] + "'");
  }
}

Parameters Parameters::positional(const std::string& function,
                                  const Arguments& arguments,
                                  const std::vector<std::string>& names,
                                  size_t required) {
  if (!arguments.named.empty())
    throw OperationError(function + " takes no named arguments", "give them by their order");
  return Parameters(function, arguments, names, required);
}

std::string Parameters::where(size_t index) const {
  return "argument '" + names_[index] + "' of " + function_;
}

std::string Parameters::text(size_t index, std::string fallback) const {
  if (!values_[index]) return fallback;
  if (require_defined(*values_[index]).is_string()) return values_[index]->as_string();
  throw OperationError(where(index) + " must be a string, not '" + type_name(*values_[index]) +
                       "'");
}

int64_t Parameters::integer(size_t index, int64_t fallback) const {
  if (!values_[index]) return fallback;
  if (require_defined(*values_[index]).is_integral()) return values_[index]->as_integer();
  throw OperationError(where(index) + " must be an integer, not '" + type_name(*values_[index]) +
                       "'");
}

bool Parameters::flag(size_t index, bool fallback) const {
  return values_[index] ? is_truthy(*values_[index]) : fallback;
}

std::optional<std::string> Parameters::optional_text(size_t index) const {
  return value(index).is_none() ? std::nullopt : std::optional<std::string>(text(index));
}

std::optional<int64_t> Parameters::optional_integer(size_t index) const {
  return value(index).is_none() ? std::nullopt : std::optional<int64_t>(integer(index));
}

std::optional<Value> Object::attribute(const std::string&) { return std::nullopt; }
std::optional<Value> Object::item(const Value&) { return std::nullopt; }
Value Object::call(const Arguments&) {
  throw OperationError("'" + type_name() + "' object is not callable");
}

Value make_function(std::string name, Function::Body body) {
  return Value::object(std::make_shared<Function>(std::move(name), std::move(body)));
}

Range::Range(int64_t begin, int64_t end, int64_t step) : begin_(begin), end_(end), step_(step) {
  if (step == 0) throw OperationError("range() arg 3 must not be zero");
  // The sandbox of the original allows as many; it also keeps every item within 64 bits.
  constexpr double most = 100000;
  const double span = static_cast<double>(end) - static_cast<double>(begin);
  const double count = std::max(0.0, std::ceil(span / static_cast<double>(step)));
  if (count > most) throw OperationError("range too big: at most 100000 items are allowed");
  size_ = static_cast<size_t>(count);
}

std::string Range::repr() const {
  std::string text = "range(" + std::to_string(begin_) + ", " + std::to_string(end_);
  if (step_ != 1) text += ", " + std::to_string(step_);
  return text + ")";
}

std::optional<Value> Range::item(const Value& key) {
  if (!key.is_integral()) return std::nullopt;
  const auto index = resolve_index(key.as_integer(), size_);
  if (!index) return std::nullopt;
  return Value::integer(begin_ + static_cast<int64_t>(*index) * step_);
}

List Range::iterate() {
  List items;
  items.reserve(size_);
  for (size_t i = 0; i < size_; ++i) {
    items.push_back(Value::integer(begin_ + static_cast<int64_t>(i) * step_));
  }
  return items;
}

bool Range::equal_to(const Object& other) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  if (!range || range->size_ != size_) return false;
  return size_ == 0 || (range->begin_ == begin_ && (size_ == 1 || range->step_ == step_));
}

Value Range::slice(int64_t begin, int64_t end, int64_t step) const {
  int64_t stride = 0;
  if (__builtin_mul_overflow(step_, step, &stride)) {
    throw OperationError("slice step does not fit 64 bits");
  }
  return Value::object(
      std::make_shared<Range>(begin_ + begin * step_, begin_ + end * step_, stride));
}

std::optional<Value> Generator::next() {
  if (items_.empty()) return std::nullopt;
  Value first = items_.front();
  items_.erase(items_.begin());
  return first;
}

Value make_generator(List items) {
  return Value::object(std::make_shared<Generator>(std::move(items)));
}

std::string DictView::type_name() const {
  return part_ == Part::keys ? "dict_keys" : part_ == Part::values ? "dict_values" : "dict_items";
}

List DictView::list() const {
  List items;
  for (const auto& [key, value] : dict_.as_dict().entries()) {
    switch (part_) {
      case Part::keys: items.push_back(key); break;
      case Part::values: items.push_back(value); break;
      case Part::items: items.push_back(Value::tuple({key, value})); break;
    }
  }
  return items;
}

std::string DictView::repr() const {
  return type_name() + "(" + repr_of(Value::list(list())) + ")";
}

std::string Record::repr() const {
  if (type_.empty()) return repr_of(Value::tuple(values()));
  std::string text = type_ + "(";
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (i > 0) text += ", ";
    text += fields_[i].first + "=" + repr_of(fields_[i].second);
  }
  return text + ")";
}

std::optional<Value> Record::attribute(const std::string& name) {
  for (const auto& [field, value] : fields_) {
    if (field == name) return value;
  }
  return std::nullopt;
}

std::optional<Value> Record::item(const Value& key) {
  return get_item(Value::tuple(values()), key);
}

List Record::values() const {
  List items;
  for (const auto& [field, value] : fields_) items.push_back(value);
  return items;
}

std::vector<std::string> Record::attribute_names() const {
  return texts_of(fields_, &Fields::value_type::first);
}

}  // namespace forge::python
