#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/jinja/evaluator.h"
#include "core/python/attributes.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/unicode.h"
#include "core/python/value.h"

namespace forge::jinja {

namespace {

/// A string in lower case; any other value unchanged.
Value casefolded(const Value& value) {
  return value.is_string() ? Value::string(to_lower(value.as_string())) : value;
}

/// What filters look at in each item: the item itself, or an attribute path such as "a.b.0".
class ItemKey {
 public:
  /// `attribute` is none, an integer, or a string with dots.
  ItemKey(const Value& attribute, bool case_sensitive, Value fallback = Value())
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

  Value operator()(const Value& item) const {
    Value value = item;
    for (const Value& part : path_) {
      value = subscript_of(value, part);
      if (value.is_undefined() && !fallback_.is_none()) value = fallback_;
    }
    return case_sensitive_ ? value : casefolded(value);
  }

 private:
  List path_;
  bool case_sensitive_;
  Value fallback_;
};

using KeyedItems = std::vector<std::pair<Value, Value>>;  ///< (key, item)

/// The items in the order of their keys; equal keys keep their order.
List sorted_by_key(KeyedItems keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [reverse](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  List items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return items;
}

Value length(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'length'", arguments, {});
  return Value::integer(static_cast<int64_t>(len(input)));
}

Value first(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'first'", arguments, {});
  if (Generator* generator = input.object_as<Generator>()) {
    if (auto item = generator->next()) return *item;
    return Value::undefined_because("no first item: the sequence is empty");
  }
  const List items = iterate(input);
  return items.empty() ? Value::undefined_because("no first item: the sequence is empty")
                       : items.front();
}

void require_reversible(const Value& input, const char* filter) {
  if (!input.object_as<Generator>()) return;
  throw OperationError(std::string("filter '") + filter + "' does not take a generator",
                       "put `| list` before it");
}

Value last(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'last'", arguments, {});
  require_reversible(input, "last");
  const List items = iterate(input);
  return items.empty() ? Value::undefined_because("no last item: the sequence is empty")
                       : items.back();
}

Value reverse(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'reverse'", arguments, {});
  List items = iterate(input);
  std::reverse(items.begin(), items.end());
  if (!input.is_string())
    return input.object_as<Generator>() ? Value::list(std::move(items))
                                        : make_generator(std::move(items));
  std::string text;
  for (const Value& character : items) text += character.as_string();
  return Value::string(std::move(text));
}

Value join(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'join'", arguments, {"d", "attribute"});
  const ItemKey key(parameters.value(1), true);
  const Value separator = parameters.value(0, Value::string(std::string()));
  TracedText joined;
  bool needs_separator = false;
  for (const Value& item : iterate(input)) {
    if (needs_separator) joined.append(TracedText(str_of(separator)), {});
    const Value part = key(item);
    joined.append(part.is_string() ? part.traced() : TracedText(str_of(part)), {});
    needs_separator = true;
    require_text_size(joined.text().size());
  }
  return Value::string(std::move(joined));
}

Value sort(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      "filter 'sort'", arguments, {"reverse", "case_sensitive", "attribute"});
  // Several keys, as "name,age": lists of them are compared item by item.
  std::vector<ItemKey> keys;
  const Value attributes = parameters.value(2);
  if (!attributes.is_string()) {
    keys.emplace_back(attributes, parameters.flag(1));
  } else {
    for (const std::string& name : split(attributes.as_string(), ','))
      keys.emplace_back(Value::string(name), parameters.flag(1));
  }
  KeyedItems keyed;
  for (const Value& item : iterate(input)) {
    List values;
    for (const ItemKey& key : keys) values.push_back(key(item));
    keyed.emplace_back(Value::list(std::move(values)), item);
  }
  return Value::list(sorted_by_key(std::move(keyed), parameters.flag(0)));
}

Value sort_dict(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'dictsort'", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.text(1, "key");
  if (by != "key" && by != "value")
    throw OperationError("filter 'dictsort' sorts by \"key\" or \"value\"");
  if (!require_defined(input).is_dict())
    throw OperationError("filter 'dictsort' takes a dict, not '" + type_name(input) + "'");
  KeyedItems keyed;
  for (const auto& [key, value] : input.as_dict().entries()) {
    const Value& sorted_by = by == "key" ? key : value;
    keyed.emplace_back(parameters.flag(0) ? sorted_by : casefolded(sorted_by),
                       Value::tuple({key, value}));
  }
  return Value::list(sorted_by_key(std::move(keyed), parameters.flag(2)));
}

Value unique(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'unique'", arguments, {"case_sensitive", "attribute"});
  const ItemKey key(parameters.value(1), parameters.flag(0));
  Dict seen;
  List items;
  for (const Value& item : iterate(input)) {
    const Value item_key = key(item);
    if (seen.find(item_key)) continue;
    seen.set(item_key, Value());
    items.push_back(item);
  }
  return make_generator(std::move(items));
}

template <bool smallest>
Value extreme(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      smallest ? "filter 'min'" : "filter 'max'", arguments, {"case_sensitive", "attribute"});
  const ItemKey key(parameters.value(1), parameters.flag(0));
  const List items = iterate(input);
  if (items.empty())
    return Value::undefined_because("no smallest or largest item: the sequence is empty");
  size_t best = 0;
  Value best_key = key(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value item_key = key(items[i]);
    if (!(smallest ? less(item_key, best_key) : less(best_key, item_key))) continue;
    best = i;
    best_key = std::move(item_key);
  }
  return items[best];
}

Value sum(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'sum'", arguments, {"attribute", "start"});
  const ItemKey key(parameters.value(0), true);
  Value total = parameters.value(1, Value::integer(0));
  if (total.is_string()) throw OperationError("filter 'sum' cannot sum strings", "use `| join`");
  for (const Value& item : iterate(input)) total = apply(BinaryOperator::add, total, key(item));
  return total;
}

Value batch(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'batch'", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = parameters.integer(0);
  const List items = iterate(input);
  require_list_size(static_cast<size_t>(std::max<int64_t>(size, 0)));
  List batches;
  List current;
  for (const Value& item : items) {
    if (static_cast<int64_t>(current.size()) == size)
      batches.push_back(Value::list(std::exchange(current, {})));
    current.push_back(item);
  }
  const bool fill = !parameters.value(1).is_none();
  while (fill && !current.empty() && static_cast<int64_t>(current.size()) < size)
    current.push_back(parameters.value(1));
  if (!current.empty()) batches.push_back(Value::list(std::move(current)));
  return make_generator(std::move(batches));
}

Value slice_list(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'slice'", arguments, {"slices", "fill_with"}, 1);
  const List items = iterate(input);
  const int64_t requested = parameters.integer(0);
  if (requested == 0) throw OperationError("filter 'slice' cannot make zero slices");
  if (requested < 0) return make_generator({});
  const auto count = static_cast<size_t>(requested);
  require_list_size(count);
  const size_t size = items.size() / count, with_extra = items.size() % count;
  const bool fill = !parameters.value(1).is_none();
  List slices;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    List part;
    for (size_t end = next + size + (i < with_extra ? 1 : 0); next < end; ++next)
      part.push_back(items[next]);
    if (fill && i >= with_extra) part.push_back(parameters.value(1));
    slices.push_back(Value::list(std::move(part)));
  }
  return make_generator(std::move(slices));
}

Value dict_items(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'items'", arguments, {});
  if (input.is_undefined()) return make_generator({});
  if (!input.is_dict())
    throw OperationError("filter 'items' takes a dict, not '" + type_name(input) + "'");
  List items;
  for (const auto& [key, value] : input.as_dict().entries())
    items.push_back(Value::tuple({key, value}));
  return make_generator(std::move(items));
}

Value to_list(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'list'", arguments, {});
  return Value::list(iterate(input));
}

/// The arguments behind the first `count` positional ones.
Arguments behind(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

std::string name_at(const Arguments& arguments, size_t index, const char* what) {
  if (index >= arguments.positional.size() ||
      !require_defined(arguments.positional[index]).is_string()) {
    throw OperationError(std::string("this filter needs the name of ") + what);
  }
  return arguments.positional[index].as_string();
}

Value map_items(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  List results;
  if (!is_truthy(input)) return make_generator({});
  if (arguments.positional.empty() && arguments.find("attribute")) {
    const Parameters parameters("filter 'map'", arguments, {"attribute", "default"});
    const ItemKey key(parameters.value(0), true, parameters.value(1));
    for (const Value& item : iterate(input)) results.push_back(key(item));
    return make_generator(std::move(results));
  }
  const std::string filter = name_at(arguments, 0, "a filter");
  const Arguments rest = behind(arguments, 1);
  for (const Value& item : iterate(input))
    results.push_back(evaluator.apply_filter(filter, item, rest));
  return make_generator(std::move(results));
}

/// select, reject, selectattr, rejectattr: keeps the items whose test comes out as `wanted`.
template <bool wanted, bool by_attribute>
Value select_items(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  if (!is_truthy(input)) return make_generator({});
  const size_t skipped = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty())
    throw OperationError("this filter needs the name of an attribute");
  const ItemKey key(by_attribute ? arguments.positional[0] : Value(), true);
  const bool has_test = arguments.positional.size() > skipped;
  const std::string test = has_test ? name_at(arguments, skipped, "a test") : "";
  const Arguments rest = has_test ? behind(arguments, skipped + 1) : Arguments{};
  List kept;
  for (const Value& item : iterate(input)) {
    const Value value = key(item);
    const bool passes = has_test ? evaluator.apply_test(test, value, rest) : is_truthy(value);
    if (passes == wanted) kept.push_back(item);
  }
  return make_generator(std::move(kept));
}

Value get_attribute(Evaluator&, const Value& input, const Arguments& arguments) {
  return own_attribute_of(input, Parameters("filter 'attr'", arguments, {"name"}, 1).text(0));
}

Value group_items(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      "filter 'groupby'", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const ItemKey key(parameters.value(0), parameters.flag(2), parameters.value(1));
  const ItemKey shown_key(parameters.value(0), true, parameters.value(1));
  KeyedItems keyed;
  for (const Value& item : iterate(input)) {
    const Value item_key = key(item);
    keyed.emplace_back(item_key, Value::tuple({item_key, item}));
  }
  const List sorted = sorted_by_key(std::move(keyed), false);
  List groups;
  for (size_t i = 0; i < sorted.size();) {
    List members;
    const Value group = sorted[i].items()[0];
    do {  // a NaN differs even from itself
      members.push_back(sorted[i++].items()[1]);
    } while (i < sorted.size() && equals(sorted[i].items()[0], group));
    groups.push_back(make_group(shown_key(members.front()), Value::list(members)));
  }
  return Value::list(std::move(groups));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable filters = {
      {"map", map_items},
      {"select", select_items<true, false>},
      {"reject", select_items<false, false>},
      {"selectattr", select_items<true, true>},
      {"rejectattr", select_items<false, true>},
      {"attr", get_attribute},
      {"groupby", group_items},
      {"length", length},
      {"count", length},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"join", join},
      {"sort", sort},
      {"dictsort", sort_dict},
      {"unique", unique},
      {"min", extreme<true>},
      {"max", extreme<false>},
      {"sum", sum},
      {"batch", batch},
      {"slice", slice_list},
      {"items", dict_items},
      {"list", to_list},
  };
  return filters;
}

}  // namespace forge::jinja
