#include "core/lingua/read_recipe.h"

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/reader.h"
#include "core/lingua/no_counterpart.h"
#include "core/lingua/recipe_fields.h"
#include "core/yaml/parse.h"

namespace forge::lingua {
namespace {

using config::Problem;
using yaml::Entry;
using yaml::Node;

/// Keys that only the models of lingua's linear recipes have.
bool is_linear_key(const std::string& key) {
  return key == "model_name" || key == "mlp_type" || key == "mamba_ssm" ||
         starts_with(key, "zeyuan_");
}

void refuse_linear_models(const Node& root) {
  const Node* model = root.find("model");
  if (!model || !model->is_mapping()) return;
  const Entry* found = model->find_entry("model_name");
  for (const Entry& entry : model->entries) {
    if (!found && is_linear_key(entry.key)) found = &entry;
  }
  if (!found || found->value->is_null()) return;
  throw Error("'model." + found->key + "' " + found->value->text +
                  " asks for a linear model, and forge has none yet",
              found->key_origin,
              "GLA, GatedDeltaNet and Mamba2 take the place of attention; forge imports Llama and "
              "LlamaCanon");
}

std::string shown(const Node& value) {
  if (!value.is_scalar()) return "…";
  return value.text.substr(0, 80);
}

/// Every key of lingua's, with its section: what a misplaced or misspelt one may have meant.
struct PathCollector {
  std::vector<std::string>& paths;
  std::string above = "";

  template <class T>
  void field(const char* key, T&, const char*, config::Limits = {}) {
    paths.push_back(above + key);
  }
  template <class T>
  void section(const char* key, T& value, const char*) {
    PathCollector inner{paths, above + key + "."};
    fields(inner, value);
  }
};

std::vector<std::string> all_paths() {
  std::vector<std::string> paths;
  PathCollector collector{paths};
  Recipe recipe;
  fields(collector, recipe);
  for (const NoCounterpart& known : no_counterparts()) paths.push_back(known.path);
  return paths;
}

/// Takes out the keys without a counterpart, which may hold anything. No section of lingua's lies
/// deeper than `levels`.
std::shared_ptr<Node> take_out(const Node& section,
                               const std::string& above,
                               std::vector<LeftOut>& left_out,
                               int levels) {
  auto kept = std::make_shared<Node>(section);
  kept->entries.clear();
  for (Entry entry : section.entries) {
    const std::string path = above + entry.key;
    if (const NoCounterpart* known = find_no_counterpart(path)) {
      const bool says_something = !entry.value->is_null();
      if (says_something) left_out.push_back({path, shown(*entry.value), known->reason});
      continue;
    }
    if (entry.value->is_mapping() && levels > 0) {
      entry.value = take_out(*entry.value, path + ".", left_out, levels - 1);
    }
    kept->entries.push_back(std::move(entry));
  }
  return kept;
}

}  // namespace

SourceSpan ReadRecipe::place(const std::string& path) const {
  const auto found = places.find(path);
  return found == places.end() ? document : found->second;
}

ReadRecipe read_recipe(const Node& root) {
  if (!root.is_mapping()) {
    throw Error("a recipe is a mapping of keys, not " + yaml::describe_kind(root), root.origin);
  }
  refuse_linear_models(root);
  ReadRecipe read;
  read.document = root.origin;
  const std::shared_ptr<Node> kept = take_out(root, "", read.left_out, 2);
  const std::vector<std::string> paths = all_paths();
  config::ReadOptions options;
  options.plain_is_text = true;  // OmegaConf makes text of a plain `name: 1`
  options.elsewhere = &paths;
  options.on_leaf = [&](const std::string& path, const Entry& entry) {
    read.places[path] = entry.value->origin;
  };
  options.on_problem = [&](const Problem& problem) {
    if (problem.kind != Problem::Kind::unknown_key) throw problem.error;
    read.unknown.push_back(problem.error);
  };
  config::read_into(*kept, read.recipe, options);
  return read;
}

ReadRecipe read_recipe_file(const fs::path& file) {
  ReadRecipe read = read_recipe(*yaml::parse_file(file.string()));
  read.file_name = file.filename().string();
  return read;
}

}  // namespace forge::lingua
