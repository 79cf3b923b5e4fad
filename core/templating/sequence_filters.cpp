#include <algorithm>

#include "core/templating/filters.h"
#include "core/templating/item_key.h"
#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"
#include "core/templating/python_text.h"
#include "core/templating/unicode.h"

namespace forge::templating {
namespace {

Value length(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'length'", arguments, {});
  return Value::integer(static_cast<int64_t>(length_of(input)));
}

Value first(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'first'", arguments, {});
  if (Generator* generator = input.object_as<Generator>()) {
    if (auto item = generator->take_next()) return *item;
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
    const Value part = key.of(item);
    joined.append(part.is_string() ? part.traced() : TracedText(str_of(part)), {});
    needs_separator = true;
    require_text_size(joined.text().size());
  }
  return Value::string(std::move(joined));
}

Value sort(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      "filter 'sort'", arguments, {"reverse", "case_sensitive", "attribute"});
  const ItemKeys keys(parameters.value(2), parameters.flag(1));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(input)) keyed.emplace_back(keys.of(item), item);
  sort_by_key(keyed, parameters.flag(0));
  List items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return Value::list(std::move(items));
}

Value sort_dict(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'dictsort'", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.text(1, "key");
  if (by != "key" && by != "value")
    throw OperationError("filter 'dictsort' sorts by \"key\" or \"value\"");
  if (!require_defined(input).is_dict())
    throw OperationError("filter 'dictsort' takes a dict, not '" + type_name(input) + "'");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : input.as_dict().entries()) {
    const Value& sorted_by = by == "key" ? key : value;
    keyed.emplace_back(parameters.flag(0) ? sorted_by : ignore_case(sorted_by),
                       Value::tuple({key, value}));
  }
  sort_by_key(keyed, parameters.flag(2));
  List items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return Value::list(std::move(items));
}

Value unique(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'unique'", arguments, {"case_sensitive", "attribute"});
  const ItemKey key(parameters.value(1), parameters.flag(0));
  Dict seen;
  List items;
  for (const Value& item : iterate(input)) {
    const Value item_key = key.of(item);
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
  Value best_key = key.of(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value item_key = key.of(items[i]);
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
  for (const Value& item : iterate(input)) total = apply(BinaryOperator::add, total, key.of(item));
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

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable filters = {
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

}  // namespace forge::templating
