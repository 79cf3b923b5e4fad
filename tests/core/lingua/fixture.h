#pragma once

#include "core/lingua/import_recipe.h"
#include "core/yaml/yaml.h"
#include "tests/support/support.h"

namespace forge::tests {

/// Parses the text of a recipe as the file "recipe.yaml".
inline lingua::ReadRecipe read_recipe_text(const std::string& text) {
  const auto source = std::make_shared<SourceText>(SourceText{"recipe.yaml", "", text, 1});
  lingua::ReadRecipe read = lingua::read_recipe(
      *yaml::parse(text, [&](int line, int column) { return make_span(source, line, column); }));
  read.file_name = "recipe.yaml";
  return read;
}

inline lingua::ImportedRecipe import_text(const std::string& text,
                                          const lingua::ImportOptions& options = {}) {
  return lingua::import_recipe(read_recipe_text(text), options);
}

inline std::string import_error(const std::string& text,
                                const lingua::ImportOptions& options = {}) {
  return error_of([&] { import_text(text, options); });
}

/// The least that a recipe must say, with more lines for `model`.
inline std::string small_recipe(const std::string& model = "", const std::string& rest = "") {
  return "model:\n  n_heads: 8\n" + model + rest;
}

}  // namespace forge::tests
