#pragma once

#include <string_view>

#include "core/templating/ast.h"

namespace forge::templating {

/// Parses a preprocessed text as Jinja. Literals point into `text`, which must outlive the tree.
/// Throws SyntaxError.
ast::Template parse_template(std::string_view text);

}  // namespace forge::templating
