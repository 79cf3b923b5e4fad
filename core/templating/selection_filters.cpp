#include "core/templating/attributes.h"
#include "core/templating/evaluator.h"
#include "core/templating/filters.h"
#include "core/templating/item_key.h"
#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"

namespace forge::templating {
namespace {

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
  if (!truth(input)) return make_generator({});
  if (arguments.positional.empty() && arguments.find("attribute")) {
    const Parameters parameters("filter 'map'", arguments, {"attribute", "default"});
    const ItemKey key(parameters.value(0), true, parameters.value(1));
    for (const Value& item : iterate(input)) results.push_back(key.of(item));
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
  if (!truth(input)) return make_generator({});
  const size_t skipped = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty())
    throw OperationError("this filter needs the name of an attribute");
  const ItemKey key(by_attribute ? arguments.positional[0] : Value(), true);
  const bool has_test = arguments.positional.size() > skipped;
  const std::string test = has_test ? name_at(arguments, skipped, "a test") : "";
  const Arguments rest = has_test ? behind(arguments, skipped + 1) : Arguments{};
  List kept;
  for (const Value& item : iterate(input)) {
    const Value value = key.of(item);
    const bool passes = has_test ? evaluator.apply_test(test, value, rest) : truth(value);
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
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(input)) keyed.emplace_back(key.of(item), item);
  sort_by_key(keyed, false);
  List groups;
  for (size_t i = 0; i < keyed.size();) {
    List members;
    const size_t begin = i;
    for (; i < keyed.size() && equals(keyed[i].first, keyed[begin].first); ++i)
      members.push_back(keyed[i].second);
    groups.push_back(make_group(shown_key.of(members.front()), Value::list(members)));
  }
  return Value::list(std::move(groups));
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable filters = {{"map", map_items},
                                      {"select", select_items<true, false>},
                                      {"reject", select_items<false, false>},
                                      {"selectattr", select_items<true, true>},
                                      {"rejectattr", select_items<false, true>},
                                      {"attr", get_attribute},
                                      {"groupby", group_items}};
  return filters;
}

}  // namespace forge::templating
