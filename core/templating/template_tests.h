#pragma once

#include <string>
#include <vector>

#include "core/templating/value.h"

namespace forge::templating {

class Evaluator;

/// `input is name(arguments)`: Jinja's tests.
using TestFunction = bool (*)(Evaluator& evaluator, const Value& input, const Arguments& arguments);

/// The test of a name, or null.
TestFunction find_test(const std::string& name);
std::vector<std::string> test_names();

}  // namespace forge::templating
