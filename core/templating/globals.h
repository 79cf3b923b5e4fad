#pragma once

#include "core/templating/context.h"
#include "core/templating/render.h"

namespace forge::templating {

/// The names that every template knows: Jinja's own functions and Forgather's.
VariableMap make_globals(const RenderRequest& request);

/// Their names, and those that exist in some frames: loop, super, caller …
const std::set<std::string>& known_names();

}  // namespace forge::templating
