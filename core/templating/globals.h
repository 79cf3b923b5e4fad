#pragma once

#include "core/templating/context.h"
#include "core/templating/render.h"

namespace forge::templating {

/// The names that every template knows: Jinja's own functions and Forgather's.
VariableMap make_globals(const RenderRequest& request);

/// The global `versions`, which is worked out when a template first reads it: a dict of the
/// versions of Python and of the packages that a Python trainer uses.
Value make_versions(const RenderRequest& request);

/// Their names, and those that exist in some frames: loop, super, caller …
const std::set<std::string>& known_names();

}  // namespace forge::templating
