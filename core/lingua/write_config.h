#pragma once

#include <string>

#include "core/lingua/import_recipe.h"

namespace forge::lingua {

/// The config as a template of forge's that stands alone: every key that the recipe decides, in the
/// order of the schema, with a remark where the value was derived. Comments say what forge does
/// otherwise, what has no counterpart and which keys are unknown. Nothing of the recipe's text is
/// taken for template syntax.
std::string write_config(const ImportedRecipe& imported);

}  // namespace forge::lingua
