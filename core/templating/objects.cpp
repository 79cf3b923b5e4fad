#include "core/templating/objects.h"

#include <algorithm>
#include <cmath>

#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/python_text.h"

namespace forge::templating {

std::optional<Value> Object::attribute(const std::string&) { return std::nullopt; }
std::optional<Value> Object::item(const Value&) { return std::nullopt; }
Value Object::call(Evaluator&, const Arguments&) {
  throw OperationError("'" + type_name() + "' object is not callable");
}

std::string Namespace::repr() const { return "<Namespace " + repr_of_dict(attributes_) + ">"; }

std::optional<Value> Namespace::attribute(const std::string& name) {
  const Value* value = attributes_.find(Value::string(name));
  return value ? std::optional<Value>(*value) : std::nullopt;
}

std::vector<std::string> Namespace::attribute_names() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : attributes_.entries()) names.push_back(key.as_string());
  return names;
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
  int64_t index = key.as_integer();
  if (index < 0) index += static_cast<int64_t>(size_);
  if (index < 0 || index >= static_cast<int64_t>(size_)) return std::nullopt;
  return Value::integer(begin_ + index * step_);
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

std::optional<Value> Generator::take_next() {
  if (items_.empty()) return std::nullopt;
  Value first = items_.front();
  items_.erase(items_.begin());
  return first;
}

Value make_generator(List items) {
  return Value::object(std::make_shared<Generator>(std::move(items)));
}

std::string DictView::type_name() const {
  switch (part_) {
    case Part::keys: return "dict_keys";
    case Part::values: return "dict_values";
    case Part::items: break;
  }
  return "dict_items";
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

std::optional<Value> Record::item(const Value& key) { return item_of(Value::tuple(values()), key); }

List Record::values() const {
  List items;
  for (const auto& [field, value] : fields_) items.push_back(value);
  return items;
}

Value make_group(Value grouper, Value list) {
  Record::Fields fields = {{"grouper", std::move(grouper)}, {"list", std::move(list)}};
  return Value::object(std::make_shared<Record>("", std::move(fields)));
}

std::vector<std::string> Record::attribute_names() const {
  std::vector<std::string> names;
  for (const auto& [field, value] : fields_) names.push_back(field);
  return names;
}

std::optional<Value> Cycler::attribute(const std::string& name) {
  const Value current = (*items_)[*position_];
  if (name == "current") return current;
  if (name == "next") {
    return make_function("next",
                         [items = items_, position = position_](Evaluator&, const Arguments&) {
                           const Value value = (*items)[*position];
                           *position = (*position + 1) % items->size();
                           return value;
                         });
  }
  if (name == "reset") {
    return make_function("reset", [position = position_](Evaluator&, const Arguments&) {
      *position = 0;
      return Value();
    });
  }
  return std::nullopt;
}

Value Joiner::call(Evaluator&, const Arguments&) {
  if (std::exchange(used_, true)) return separator_;
  return Value::string("");
}

}  // namespace forge::templating
