#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jinja/render.h"
#include "core/jinja/runtime.h"
#include "core/python/value.h"

namespace forge::jinja {

class Evaluator;

/// `input | name(arguments)`. Each does what Jinja's filter of the name does.
using FilterFunction = Value (*)(Evaluator& evaluator,
                                 const Value& input,
                                 const Arguments& arguments);
using FilterTable = std::unordered_map<std::string_view, FilterFunction>;

/// The filter of a name, or null.
FilterFunction find_filter(const std::string& name);
std::vector<std::string> filter_names();

const FilterTable& text_filters();        ///< upper, trim, wordwrap, escape …
const FilterTable& sequence_filters();    ///< first, sort, join, map, select, groupby …
const FilterTable& conversion_filters();  ///< int, round, default, toyaml, tojson …

/// `input is name(arguments)`: Jinja's tests.
using TestFunction = bool (*)(Evaluator& evaluator, const Value& input, const Arguments& arguments);

/// The test of a name, or null.
TestFunction find_test(const std::string& name);
std::vector<std::string> test_names();

/// The names that every template knows: Jinja's own functions and Forgather's.
VariableMap make_globals(const RenderRequest& request);

/// The global `versions`, made when a template first reads it: a dict of the versions of Python and
/// of the packages that a Python trainer uses.
Value make_versions(const RenderRequest& request);

/// The names of all globals, and those that exist in some frames: loop, super, caller …
const std::set<std::string>& known_names();

}  // namespace forge::jinja
