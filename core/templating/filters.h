#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/templating/value.h"

namespace forge::templating {

class Evaluator;

/// `input | name(arguments)`. Each does what Jinja's filter of the name does.
using FilterFunction = Value (*)(Evaluator& evaluator,
                                 const Value& input,
                                 const Arguments& arguments);
using FilterTable = std::unordered_map<std::string_view, FilterFunction>;

/// The filter of a name, or null.
FilterFunction find_filter(const std::string& name);
std::vector<std::string> filter_names();

const FilterTable& text_filters();
const FilterTable& web_filters();  ///< escape, urlencode, striptags …
const FilterTable& number_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();   ///< map, select, groupby … which look at each item
const FilterTable& conversion_filters();  ///< default, toyaml, tojson, list …

}  // namespace forge::templating
