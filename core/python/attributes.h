#pragma once

#include <string>
#include <string_view>

#include "core/python/value.h"

namespace forge::python {

/// `value.name`: an attribute or method, else the item of that name. Undefined where there is
/// neither; names that begin with '_' are out of reach, as in a sandbox. `place` is that of the
/// expression, for the error when the undefined value is used.
Value attribute_of(const Value& value, const std::string& name, Place place = {});

/// `value.name` without the items: what the filter `attr` gives.
Value own_attribute_of(const Value& value, const std::string& name);

/// `value[key]`: the item, else the attribute of that name. Undefined where there is neither.
Value subscript_of(const Value& value, const Value& key, Place place = {});

/// A method of a built-in type.
using Method = Value (*)(const Value& self, const Arguments& arguments);
Method find_string_method(std::string_view name);  ///< or null

}  // namespace forge::python
