#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/lingua/recipe.h"
#include "core/yaml/node.h"

namespace forge::lingua {

/// A key of the file that no key of forge's corresponds to.
struct LeftOut {
  std::string path;
  std::string value;  ///< on one line, "…" for a whole section
  std::string reason;
};

/// What a recipe's file says.
struct ReadRecipe {
  Recipe recipe;
  std::map<std::string, SourceSpan> places;  ///< of the value of each key that the file gives
  std::vector<LeftOut> left_out;             ///< in the order of the file
  std::vector<Error> unknown;                ///< one for each key that lingua does not have
  std::string file_name;                     ///< without its folder
  SourceSpan document;

  bool gives(const std::string& path) const { return places.count(path) > 0; }
  /// Where the key's value stands, else where the document begins.
  SourceSpan place(const std::string& path) const;
};

/// Reads a recipe. Throws Error at a value of a wrong type or out of its limits, and for models
/// that forge does not have: the linear ones that model.model_name chooses.
ReadRecipe read_recipe(const yaml::Node& root);
ReadRecipe read_recipe_file(const std::filesystem::path& file);

}  // namespace forge::lingua
