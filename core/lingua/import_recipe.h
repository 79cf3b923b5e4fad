#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/config/experiment.h"
#include "core/lingua/recipe.h"

namespace forge::lingua {

/// What a recipe's file does not say.
struct ImportOptions {
  std::string name;    ///< "": the recipe's own, else the file's
  int gpus = 0;        ///< 0: dp_replicate × dp_shard × tp_size of the file
  int vocab_size = 0;  ///< 0: the recipe's own, else its tokenizer's
};

/// A recipe as a config of forge's.
struct ImportedRecipe {
  config::Experiment experiment;
  /// Every key that the recipe decides, with a remark on where its value comes from, or "".
  std::map<std::string, std::string> key_comments;
  int gpus = 1;
  std::vector<std::string> notes;  ///< what forge does otherwise, or had to take for granted
  std::vector<UnsupportedKey> unsupported;
  std::vector<Error> unknown;
  std::string file_name;
};

/// The config that trains as the recipe does. What lingua derives is derived here: head_dim,
/// n_kv_heads, hidden_dim, the rows of a step on all GPUs. Throws Error at the place in the recipe
/// whose value forge cannot follow.
ImportedRecipe import_recipe(const ReadRecipe& read, const ImportOptions& options);

/// Width of the MLP of a Llama in lingua: hidden_dim where given, else 2/3 of 4 · dim, times
/// ffn_dim_multiplier where given, rounded up to a multiple of multiple_of. 0 beyond 2^31. Of a
/// linear model hidden_dim, else 2 · dim.
int intermediate_size(const Model& model);

/// {"name", "gpus", "config": as core/config/json.h writes it, "notes", "no_counterpart": [{"key",
/// "value", "reason"}], "unknown": [{"message", "at", "hint"}]}
nlohmann::ordered_json to_json(const ImportedRecipe& imported);

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
