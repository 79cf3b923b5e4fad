#pragma once

#include "core/templating/ast.h"

namespace forge::templating {

/// Fills in the UnsetNames of every frame of a template, by the rules of Jinja's compiler.
void find_unset_names(ast::Template& tree);

}  // namespace forge::templating
