#include "core/templating/attributes.h"

#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/python_text.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

Value missing(const Value& owner, const std::string& name, const std::string& what, Place place) {
  Undefined undefined;
  undefined.what = Undefined::What::attribute;
  undefined.name = name;
  undefined.owner = owner;
  undefined.place = place;
  undefined.message = "'" + type_name(owner) + " object' has no " + what;
  if (owner.is_dict()) undefined.message = "this dict has no " + what;
  if (owner.object_as<Namespace>()) undefined.message = "this namespace has no " + what;
  return Value::undefined(std::move(undefined));
}

Value missing_attribute(const Value& owner, const std::string& name, Place place) {
  return missing(owner, name, (owner.is_dict() ? "key '" : "attribute '") + name + "'", place);
}

/// getattr(value, name): what the type itself has.
std::optional<Value> own_attribute(const Value& value, const std::string& name) {
  if (value.is_object()) return value.as_object()->attribute(name);
  if (value.is_number()) return number_attribute(value, name);
  Method method = value.is_string() ? find_string_method(name) : find_container_method(value, name);
  if (!method) return std::nullopt;
  return make_function(name, [value, method](Evaluator&, const Arguments& arguments) {
    charge_walk(value.is_string() ? value.as_string().size() : 16 * length_of(value));
    return method(value, arguments);
  });
}

Value guarded(const Value& owner, const std::string& name, Value attribute) {
  if (name.empty() || name[0] != '_') return attribute;
  Undefined undefined;
  undefined.message =
      "access to attribute '" + name + "' of '" + type_name(owner) + "' is not safe";
  return Value::undefined(std::move(undefined));
}

}  // namespace

Value attribute_of(const Value& value, const std::string& name, Place place) {
  require_defined(value);
  if (auto attribute = own_attribute(value, name))
    return guarded(value, name, std::move(*attribute));
  const bool has_items = value.is_dict() || value.is_object();
  if (has_items) {
    if (auto item = item_of(value, Value::string(name))) return *item;
  }
  return missing_attribute(value, name, place);
}

Value own_attribute_of(const Value& value, const std::string& name) {
  require_defined(value);
  if (auto attribute = own_attribute(value, name))
    return guarded(value, name, std::move(*attribute));
  return missing_attribute(value, name, {});
}

Value subscript_of(const Value& value, const Value& key, Place place) {
  require_defined(value);
  if (auto item = item_of(value, require_defined(key))) return *item;
  if (key.is_string()) {
    const std::string& name = key.as_string();
    if (auto attribute = own_attribute(value, name))
      return guarded(value, name, std::move(*attribute));
    return missing_attribute(value, name, place);
  }
  return missing(value, "", "element " + repr_of(key), place);
}

}  // namespace forge::templating
