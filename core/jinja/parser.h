#pragma once

#include <string_view>

#include "core/jinja/ast.h"

namespace forge::jinja {

/// Parses a preprocessed text as Jinja. Literals point into `text`, which must outlive the tree.
/// Throws SyntaxError.
ast::Template parse_template(std::string_view text);

/// Fills in the UnassignedNames of every frame of a template, by the rules of Jinja's compiler.
void find_unassigned_names(ast::Template& tree);

}  // namespace forge::jinja
