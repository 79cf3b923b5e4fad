#include "core/python/attributes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"

namespace forge::python {
namespace {

using MethodTable = std::unordered_map<std::string_view, Method>;

Value sequence_index(const Value& self, const Arguments& arguments) {
  const auto parameters =
      Parameters::positional("index()", arguments, {"value", "start", "stop"}, 1);
  const Value wanted = parameters.value(0);
  const List& items = self.items();
  const auto size = static_cast<int64_t>(items.size());
  const auto bound = [&](size_t index, int64_t fallback) {
    const int64_t value = parameters.integer(index, fallback);
    return std::min(size, std::max<int64_t>(0, value < 0 ? value + size : value));
  };
  for (int64_t i = bound(1, 0); i < bound(2, size); ++i) {
    if (equals(items[static_cast<size_t>(i)], wanted)) return Value::integer(i);
  }
  throw OperationError(repr_of(wanted) + " is not in the list");
}

Value sequence_count(const Value& self, const Arguments& arguments) {
  const Value wanted = Parameters::positional("count()", arguments, {"value"}, 1).value(0);
  const List& items = self.items();
  return Value::integer(std::count_if(
      items.begin(), items.end(), [&](const Value& item) { return equals(item, wanted); }));
}

Value list_append(const Value& self, const Arguments& arguments) {
  const Value item = Parameters::positional("append()", arguments, {"item"}, 1).value(0);
  require_list_size(self.items().size() + 1);
  self.items().push_back(item);
  return Value();
}

Value list_extend(const Value& self, const Arguments& arguments) {
  const List more = iterate(Parameters::positional("extend()", arguments, {"items"}, 1).value(0));
  require_list_size(self.items().size() + more.size());
  self.items().insert(self.items().end(), more.begin(), more.end());
  return Value();
}

Value list_insert(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("insert()", arguments, {"index", "item"}, 2);
  List& items = self.items();
  const auto size = static_cast<int64_t>(items.size());
  int64_t index = parameters.integer(0);
  if (index < 0) index = std::max<int64_t>(0, index < -size ? 0 : index + size);
  items.insert(items.begin() + std::min(index, size), parameters.value(1));
  return Value();
}

Value list_pop(const Value& self, const Arguments& arguments) {
  List& items = self.items();
  const auto index = resolve_index(
      Parameters::positional("pop()", arguments, {"index"}).integer(0, -1), items.size());
  if (!index)
    throw OperationError(items.empty() ? "pop from empty list" : "pop index out of range");
  const Value item = items[*index];
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(*index));
  return item;
}

Value list_remove(const Value& self, const Arguments& arguments) {
  const int64_t index = sequence_index(self, arguments).as_integer();
  self.items().erase(self.items().begin() + index);
  return Value();
}

Value list_reverse(const Value& self, const Arguments& arguments) {
  Parameters("reverse()", arguments, {});
  std::reverse(self.items().begin(), self.items().end());
  return Value();
}

Value list_sort(const Value& self, const Arguments& arguments) {
  const bool reverse = Parameters("sort()", arguments, {"reverse"}).flag(0);
  List sorted = self.items();  // a failed comparison must not leave half a list behind
  std::stable_sort(sorted.begin(), sorted.end(), [reverse](const Value& a, const Value& b) {
    return reverse ? less(b, a) : less(a, b);
  });
  self.items() = std::move(sorted);
  return Value();
}

Value list_clear(const Value& self, const Arguments& arguments) {
  Parameters("clear()", arguments, {});
  self.items().clear();
  return Value();
}

Value list_copy(const Value& self, const Arguments& arguments) {
  Parameters("copy()", arguments, {});
  return Value::list(self.items());
}

template <DictView::Part part>
Value dict_view(const Value& self, const Arguments& arguments) {
  Parameters("keys(), values() or items()", arguments, {});
  return Value::object(std::make_shared<DictView>(self, part));
}

Value dict_get(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("get()", arguments, {"key", "default"}, 1);
  const Value* found = self.as_dict().find(parameters.value(0));
  return found ? *found : parameters.value(1);
}

Value dict_pop(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("pop()", arguments, {"key", "default"}, 1);
  const Value* found = self.as_dict().find(parameters.value(0));
  if (!found && !parameters.given(1))
    throw OperationError("the dict has no key " + repr_of(parameters.value(0)));
  const Value value = found ? *found : parameters.value(1);
  self.as_dict().erase(parameters.value(0));
  return value;
}

Value dict_pop_item(const Value& self, const Arguments& arguments) {
  Parameters("popitem()", arguments, {});
  Dict& dict = self.as_dict();
  if (dict.size() == 0) throw OperationError("popitem(): the dict is empty");
  const auto [key, value] = dict.entries().back();
  dict.erase(key);
  return Value::tuple({key, value});
}

Value dict_from_keys(const Value&, const Arguments& arguments) {
  const auto parameters = Parameters::positional("fromkeys()", arguments, {"iterable", "value"}, 1);
  Dict dict;
  for (const Value& key : iterate(parameters.value(0))) dict.set(key, parameters.value(1));
  return Value::dict(std::move(dict));
}

Value dict_set_default(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("setdefault()", arguments, {"key", "default"}, 1);
  if (const Value* found = self.as_dict().find(parameters.value(0))) return *found;
  self.as_dict().set(parameters.value(0), parameters.value(1));
  return parameters.value(1);
}

Value dict_update(const Value& self, const Arguments& arguments) {
  update_dict(self.as_dict(), "update()", arguments);
  return Value();
}

Value dict_clear(const Value& self, const Arguments& arguments) {
  Parameters("clear()", arguments, {});
  self.as_dict().clear();
  return Value();
}

Value dict_copy(const Value& self, const Arguments& arguments) {
  Parameters("copy()", arguments, {});
  return Value::dict(self.as_dict());
}

/// The method of a string, list, tuple or dict, or null.
Method find_method(const Value& value, std::string_view name) {
  if (value.is_string()) return find_string_method(name);
  static const MethodTable tuple_methods = {{"index", sequence_index}, {"count", sequence_count}};
  static const MethodTable list_methods = {{"index", sequence_index},
                                           {"count", sequence_count},
                                           {"append", list_append},
                                           {"extend", list_extend},
                                           {"insert", list_insert},
                                           {"pop", list_pop},
                                           {"remove", list_remove},
                                           {"reverse", list_reverse},
                                           {"sort", list_sort},
                                           {"clear", list_clear},
                                           {"copy", list_copy}};
  static const MethodTable dict_methods = {{"keys", dict_view<DictView::Part::keys>},
                                           {"values", dict_view<DictView::Part::values>},
                                           {"items", dict_view<DictView::Part::items>},
                                           {"get", dict_get},
                                           {"pop", dict_pop},
                                           {"popitem", dict_pop_item},
                                           {"fromkeys", dict_from_keys},
                                           {"setdefault", dict_set_default},
                                           {"update", dict_update},
                                           {"clear", dict_clear},
                                           {"copy", dict_copy}};
  const MethodTable* table = value.is_dict()                      ? &dict_methods
                             : value.kind() == Value::Kind::list  ? &list_methods
                             : value.kind() == Value::Kind::tuple ? &tuple_methods
                                                                  : nullptr;
  if (!table) return nullptr;
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

// What Python's int, bool and float have besides their operators.

Value zero_like(const Value& number) {
  return number.is_integral() ? Value::integer(0) : Value::real(0);
}

Value bit_length(const Value& number) {
  int64_t length = 0;
  for (int64_t rest = number.as_integer(); rest != 0; rest /= 2) ++length;
  return Value::integer(length);
}

Value is_whole(const Value& number) {
  return Value::boolean(std::isfinite(number.as_real()) &&
                        std::floor(number.as_real()) == number.as_real());
}

/// A method without arguments.
Value method(const std::string& name, const Value& number, Value (*body)(const Value&)) {
  return make_function(name, [name, number, body](const Arguments& arguments) {
    Parameters(name + "()", arguments, {});
    return body(number);
  });
}

/// An attribute of a number, or nothing.
std::optional<Value> number_attribute(const Value& number, const std::string& name) {
  if (name == "real") return unary_plus(number);
  if (name == "imag") return zero_like(number);
  if (name == "conjugate") return method(name, number, unary_plus);
  if (!number.is_integral())
    return name == "is_integer" ? std::optional<Value>(method(name, number, is_whole))
                                : std::nullopt;
  if (name == "numerator") return unary_plus(number);
  if (name == "denominator") return Value::integer(1);
  if (name == "bit_length") return method(name, number, bit_length);
  return std::nullopt;
}

Value missing(const Value& owner, const std::string& name, const std::string& what, Place place) {
  const std::string subject = owner.is_dict()     ? "this dict"
                              : owner.is_object() ? owner.as_object()->shown_type()
                                                  : "'" + type_name(owner) + " object'";
  return Value::undefined(
      {Undefined::What::attribute, name, subject + " has no " + what, owner, place});
}

Value missing_attribute(const Value& owner, const std::string& name, Place place) {
  return missing(owner, name, (owner.is_dict() ? "key '" : "attribute '") + name + "'", place);
}

/// getattr(value, name): what the type itself has.
std::optional<Value> own_attribute(const Value& value, const std::string& name) {
  std::optional<Value> attribute;
  if (value.is_object()) {
    attribute = value.as_object()->attribute(name);
  } else if (value.is_number()) {
    attribute = number_attribute(value, name);
  } else if (const Method method = find_method(value, name)) {
    attribute = make_function(name, [value, method](const Arguments& arguments) {
      charge_walk(value.is_string() ? value.as_string().size() : 16 * len(value));
      return method(value, arguments);
    });
  }
  if (!attribute || name.empty() || name[0] != '_') return attribute;
  return Value::undefined_because("access to attribute '" + name + "' of '" + type_name(value) +
                                  "' is not safe");
}

}  // namespace

Value attribute_of(const Value& value, const std::string& name, Place place) {
  require_defined(value);
  if (auto attribute = own_attribute(value, name)) return *attribute;
  if (value.is_dict() || value.is_object()) {
    if (auto item = get_item(value, Value::string(name))) return *item;
  }
  return missing_attribute(value, name, place);
}

Value own_attribute_of(const Value& value, const std::string& name) {
  require_defined(value);
  const auto attribute = own_attribute(value, name);
  return attribute ? *attribute : missing_attribute(value, name, {});
}

Value subscript_of(const Value& value, const Value& key, Place place) {
  require_defined(value);
  if (auto item = get_item(value, require_defined(key))) return *item;
  if (key.is_string()) {
    const auto attribute = own_attribute(value, key.as_string());
    return attribute ? *attribute : missing_attribute(value, key.as_string(), place);
  }
  return missing(value, "", "element " + repr_of(key), place);
}

void update_dict(Dict& dict, const Value& source) {
  require_defined(source);
  if (source.is_dict()) {
    const Dict copy = source.as_dict();  // a dict may be updated from itself
    for (const auto& [key, value] : copy.entries()) dict.set(key, value);
    return;
  }
  for (const Value& pair : iterate(source)) {
    const List items = iterate(pair);
    if (items.size() != 2) throw OperationError("a dict is made of pairs of key and value");
    dict.set(items[0], items[1]);
  }
}

void update_dict(Dict& dict, const std::string& function, const Arguments& arguments) {
  if (arguments.positional.size() > 1)
    throw OperationError(function + " takes at most one mapping");
  if (!arguments.positional.empty()) update_dict(dict, arguments.positional[0]);
  for (const auto& [name, value] : arguments.named) dict.set(Value::string(name), value);
}

}  // namespace forge::python
