#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/config/leaves.h"
#include "core/lingua/import_recipe.h"
#include "tests/core/config/fixture.h"
#include "tests/core/lingua/fixture.h"
#include "tests/support/catch.h"

namespace forge::lingua {
namespace {

using tests::contains;
using tests::import_text;
using tests::small_recipe;

TEST_CASE("nothing in a recipe is taken for a template", "[lingua]") {
  const std::string odd = "{{ 1 }} {% x %} {# y #} ## z \\\" \\\\ é";
  const ImportedRecipe recipe =
      import_text("name: \"" + odd + "\"\ndump_dir: '{{ oops }} ## {% if'\n" +
                  small_recipe("", "data: {root_dir: '/{{a}}', sources: {'b## c': 1}}\n"));
  const tests::ConfigFixture fixture;
  const config::Experiment e =
      fixture.resolve(write_config(recipe, ConfigForm::standalone)).experiment;
  CHECK(e.name == "{{ 1 }} {% x %} {# y #} ## z \" \\ é");
  CHECK(e.data.path == "/{{a}}/b## c");
}

TEST_CASE("the text gives back the config that was imported", "[lingua]") {
  const ImportedRecipe recipe = import_text(
      small_recipe("  canon_set: AC\n  rope_dim: 16\n  init_base_std: 0.02\n  z_loss: true\n",
                   "optim: {scheduler: wsd, epsilon: 1e-9}\ndata: {tokenizer: {name: sp}}\n"));
  const tests::ConfigFixture fixture;
  config::Experiment e = fixture.resolve(write_config(recipe, ConfigForm::standalone)).experiment;
  CHECK(e.profile == "full");
  e.profile = recipe.experiment.profile;
  CHECK(to_json(recipe).at("config") == [&] {
    ImportedRecipe back = recipe;
    back.experiment = e;
    return to_json(back).at("config");
  }());
}

TEST_CASE("comments say what was left out and what is taken for granted", "[lingua]") {
  const std::string text = write_config(import_text("dump_dir: /runs\nsed: 3\n" + small_recipe()),
                                        ConfigForm::standalone);
  INFO(text);
  CHECK(contains(text, "# Imported by forge import-lingua from recipe.yaml."));
  CHECK(contains(text, "  hidden_size: 512  # dim\n"));
  CHECK(contains(text, "#   dump_dir: /runs (forge's runs lie in"));
  CHECK(contains(text, "#   unknown key 'sed'\n"));
  CHECK(contains(text, "#   the recipe does not say on how many GPUs it runs"));
}

TEST_CASE("a leaf extends the root of forge's library", "[lingua]") {
  const std::string text = write_config(import_text(small_recipe()), ConfigForm::leaf);
  INFO(text);
  CHECK(contains(text, "-- extends 'base/config.yaml'\n\n[metadata]\nname: \"recipe\"\n"));
  CHECK(contains(text, "\n[body]\nseed: 42"));
}

using nlohmann::json;

json recipes_of(const char* file) {
  return json::parse(read_file(tests::tests_dir() / "core" / "lingua" / file)).at("recipes");
}

/// Those of Llama and LlamaCanon, then those of the linear models.
json published_recipes() {
  json all = recipes_of("llama_recipes.json");
  for (const json& row : recipes_of("linear_recipes.json")) all.push_back(row);
  return all;
}

/// A row of the table of published recipes as the YAML it was extracted from. The table's short
/// names stand for lingua's keys:
///   lr, wd, warmup, min_ratio, beta, eps, clip, sched  ->  optim.*
///   batch, seq, src, tok                               ->  data.batch_size, seq_len, sources,
///                                                          tokenizer.name
///   ga                                                 ->  grad_acc_steps
///   model, data, dist                                  ->  model.*, data.*, distributed.*
///   name, steps, seed                                  ->  the same
/// gpus is in no YAML and becomes --gpus. The folder of the data is the reader's own, so the one
/// that projects/recipes names stands in.
std::string yaml_of(const json& row) {
  std::string yaml;
  const auto line = [&yaml](int depth, const std::string& key, const json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    yaml += std::string(2 * depth, ' ') + key + ": " + text + "\n";
  };
  line(0, "name", row.at("name"));
  line(0, "seed", row.at("seed"));
  line(0, "steps", row.at("steps"));
  line(0, "grad_acc_steps", row.at("ga"));
  yaml += "optim:\n";
  line(1, "lr", row.at("lr"));
  line(1, "weight_decay", row.at("wd"));
  line(1, "warmup", row.at("warmup"));
  line(1, "lr_min_ratio", row.at("min_ratio"));
  line(1, "beta1", row.at("beta").at(0));
  line(1, "beta2", row.at("beta").at(1));
  line(1, "epsilon", row.at("eps"));
  line(1, "clip", row.at("clip"));
  line(1, "scheduler", row.at("sched"));
  yaml += "model:\n";
  for (const auto& [key, value] : row.at("model").items()) line(1, key, value);
  yaml += "data:\n  root_dir: data/nemotron_cc\n  sources:\n";
  for (const json& source : row.at("src")) line(2, source.get<std::string>(), "1.0");
  line(1, "batch_size", row.at("batch"));
  line(1, "seq_len", row.at("seq"));
  for (const auto& [key, value] : row.at("data").items()) line(1, key, value);
  yaml += "  tokenizer:\n";
  line(2, "name", row.at("tok"));
  yaml += "distributed:\n";
  for (const auto& [key, value] : row.at("dist").items()) line(1, key, value);
  return yaml;
}

/// The source tree's workspace in a temporary folder, to import into.
class RecipesProject {
 public:
  RecipesProject() {
    for (const char* part : {"forge_workspace", "templates", "projects"}) {
      fs::copy(
          tests::tests_dir().parent_path() / part, folder_ / part, fs::copy_options::recursive);
    }
  }

  /// Imports the row as the config `name`, in either form, and resolves that.
  config::ResolvedConfig import(const json& row, const std::string& name, ConfigForm form) const {
    const fs::path recipe = folder_.write("recipe.yaml", yaml_of(row));
    ImportOptions options;
    options.gpus = row.at("gpus");
    const ImportedRecipe imported = import_recipe(read_recipe_file(recipe), options);
    CHECK(imported.unknown.empty());
    folder_.write("projects/recipes/templates/configs/" + name + ".yaml",
                  write_config(imported, form));
    return resolve(name);
  }
  config::ResolvedConfig resolve(const std::string& name) const {
    const auto workspace = *project::find_workspace(folder_.path());
    const auto project =
        project::load_project(workspace, folder_ / "projects/recipes", tests::fixed_surroundings());
    return config::resolve(project, name, tests::fixed_options());
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_CASE("every published recipe is imported as forge's own config of that name", "[lingua]") {
  const RecipesProject project;
  const json recipes = published_recipes();
  REQUIRE(recipes.size() == 16 + 48);
  for (const json& row : recipes) {
    const std::string name = row.at("name");
    INFO(name);
    const config::ResolvedConfig own = project.resolve(name);
    REQUIRE(own.experiment.name == name);
    for (const ConfigForm form : {ConfigForm::standalone, ConfigForm::leaf}) {
      const config::ResolvedConfig imported = project.import(row, "imported", form);
      std::string differences;
      for (const config::Change& change : config::diff(leaves_of(own), leaves_of(imported))) {
        differences += change.path + " ";
      }
      REQUIRE(differences.empty());
    }
  }
}

TEST_CASE("the published recipes have the published batch and number of tokens", "[lingua]") {
  const RecipesProject project;
  for (const json& row : published_recipes()) {
    const std::string name = row.at("name");
    INFO(name);
    const config::TrainConfig train = project.resolve(name).experiment.train;
    CHECK(train.batch_size == row.at("global_batch").get<int64_t>());
    CHECK(train.batch_size * train.max_steps * train.seq_len == row.at("tokens").get<int64_t>());
  }
}

TEST_CASE("a Canon recipe differs from its Llama twin in name and Canon alone", "[lingua]") {
  const RecipesProject project;
  for (const json& row : published_recipes()) {
    const std::string canon = row.at("name");
    if (canon.find("LlamaCanon-") != 0) continue;
    const std::string llama = "Llama" + canon.substr(std::string("LlamaCanon").size());
    std::vector<std::string> paths;
    for (const config::Change& change :
         config::diff(leaves_of(project.resolve(llama)), leaves_of(project.resolve(canon)))) {
      paths.push_back(change.path);
    }
    CHECK(paths ==
          std::vector<std::string>{
              "description", "model.attention.position.rope_dim", "model.canon.set", "name"});
  }
}

TEST_CASE("a linear Canon recipe differs from its twin in name and Canon alone", "[lingua]") {
  const RecipesProject project;
  for (const json& row : recipes_of("linear_recipes.json")) {
    const std::string canon = row.at("name");
    const size_t at = canon.find("Canon-");
    if (at == std::string::npos) continue;
    const std::string conv = canon.substr(0, at) + "conv-" + canon.substr(at + 6);
    std::vector<std::string> paths;
    for (const config::Change& change :
         config::diff(leaves_of(project.resolve(conv)), leaves_of(project.resolve(canon)))) {
      paths.push_back(change.path);
    }
    CHECK(paths == std::vector<std::string>{"description", "model.canon.set", "name"});
  }
}

TEST_CASE("a recipe whose data is elsewhere can be looked at and not be run", "[lingua]") {
  const RecipesProject project;
  const config::ResolvedConfig recipe = project.resolve("Llama-1B-Nemo-1T-lr0.002");
  const std::string error = tests::error_of([&] { config::require_no_obstacles(recipe); });
  INFO(error);
  CHECK(error.find("no file ") != std::string::npos);
  CHECK(error.find("nemotron_cc/source_original_shuffled") != std::string::npos);
}

}  // namespace
}  // namespace forge::lingua
