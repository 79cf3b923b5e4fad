#include "core/templating/item_key.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/templating/attributes.h"
#include "core/templating/letter_case.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"

namespace forge::templating {

Value ignore_case(const Value& value) {
  return value.is_string() ? Value::string(to_lower(value.as_string())) : value;
}

ItemKey::ItemKey(const Value& attribute, bool case_sensitive, Value fallback)
    : case_sensitive_(case_sensitive), fallback_(std::move(fallback)) {
  if (attribute.is_none()) return;
  if (!attribute.is_string()) {
    path_.push_back(attribute);
    return;
  }
  for (const std::string& part : split(attribute.as_string(), '.')) {
    const bool number = !part.empty() && part.size() < 10 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    path_.push_back(number ? Value::integer(std::stoll(part)) : Value::string(part));
  }
}

Value ItemKey::of(const Value& item) const {
  Value value = item;
  for (const Value& part : path_) {
    value = subscript_of(value, part);
    if (value.is_undefined() && !fallback_.is_none()) value = fallback_;
  }
  return case_sensitive_ ? value : ignore_case(value);
}

ItemKeys::ItemKeys(const Value& attributes, bool case_sensitive) {
  if (!attributes.is_string()) {
    keys_.emplace_back(attributes, case_sensitive);
    return;
  }
  for (const std::string& attribute : split(attributes.as_string(), ',')) {
    keys_.emplace_back(Value::string(attribute), case_sensitive);
  }
}

Value ItemKeys::of(const Value& item) const {
  List keys;
  for (const ItemKey& key : keys_) keys.push_back(key.of(item));
  return Value::list(std::move(keys));
}

void sort_by_key(std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  if (reverse) {
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
      return less(b.first, a.first);
    });
  } else {
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
      return less(a.first, b.first);
    });
  }
}

}  // namespace forge::templating
