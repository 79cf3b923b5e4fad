#include "core/lingua/write_config.h"

#include "tests/core/config/fixture.h"
#include "tests/core/lingua/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

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

}  // namespace
}  // namespace forge::lingua
