#pragma once

#include <utility>
#include <vector>

#include "core/templating/value.h"

namespace forge::templating {

/// A string in lower case; anything else as it is.
Value ignore_case(const Value& value);

/// What filters look at in each item: the item itself, or an attribute path such as "a.b.0".
class ItemKey {
 public:
  /// `attribute` is none, an integer, or a string with dots.
  ItemKey(const Value& attribute, bool case_sensitive, Value fallback = Value());
  Value of(const Value& item) const;

 private:
  List path_;
  bool case_sensitive_;
  Value fallback_;
};

/// Several keys, from "name,age": a list of them is compared item by item.
class ItemKeys {
 public:
  ItemKeys(const Value& attributes, bool case_sensitive);
  Value of(const Value& item) const;

 private:
  std::vector<ItemKey> keys_;
};

/// Stable sort of (key, item) pairs.
void sort_by_key(std::vector<std::pair<Value, Value>>& keyed, bool reverse);

}  // namespace forge::templating
