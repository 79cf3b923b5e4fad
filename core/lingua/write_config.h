#pragma once

#include <string>

#include "core/lingua/import_recipe.h"

namespace forge::lingua {

enum class ConfigForm {
  standalone,  ///< plain YAML, good in any project
  leaf,        ///< extends the library's base/config.yaml, so that others can extend it in turn
};

/// The config as a template of forge's: every key that the recipe decides, in the order of the
/// schema, with a remark where the value was derived. Comments say what forge does otherwise, what
/// has no counterpart and which keys are unknown. Nothing of the recipe's text is taken for
/// template syntax.
std::string write_config(const ImportedRecipe& imported, ConfigForm form);

}  // namespace forge::lingua
