#pragma once

#include "core/templating/context.h"
#include "core/templating/render.h"

namespace forge::templating {

/// The names that every template knows: Jinja's own functions and Forgather's.
VariableMap make_globals(const RenderRequest& request);

}  // namespace forge::templating
