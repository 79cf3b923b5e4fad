#include "core/lingua/read_recipe.h"

#include "tests/core/lingua/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::lingua {
namespace {

using tests::contains;
using tests::import_error;
using tests::read_recipe_text;
using tests::small_recipe;

TEST_CASE("a recipe that says little has lingua's defaults", "[lingua]") {
  const Recipe recipe = read_recipe_text("name: x\n").recipe;
  CHECK(recipe.optim.lr == 3e-4);
  CHECK(recipe.optim.weight_decay == 0.1);
  CHECK(recipe.optim.epsilon == 1e-8);
  CHECK(recipe.optim.beta1 == 0.9);
  CHECK(recipe.optim.beta2 == 0.95);
  CHECK(recipe.optim.clip == 1.0);
  CHECK(recipe.optim.scheduler == "cosine");
  CHECK(recipe.optim.warmup == 2000);
  CHECK(recipe.optim.lr_min_ratio == 0.1);
  CHECK(recipe.optim.cycle_length == 1.0);
  CHECK(recipe.optim.cosine_theta == 1.0);
  CHECK(recipe.optim.decay_fraction == 0.1);
  CHECK(recipe.optim.exp_factor == 0.5);
  CHECK(recipe.model.multiple_of == 256);
  CHECK(recipe.model.norm_eps == 1e-5);
  CHECK(recipe.model.vocab_size == -1);
  CHECK(recipe.model.seed == 42);
}

TEST_CASE("unknown keys are all reported with their place and what was meant", "[lingua]") {
  const ReadRecipe read =
      read_recipe_text("nmae: x\nmodel:\n  n_heads: 8\n  n_layer: 3\noptim: {dim: 4}\n");
  REQUIRE(read.unknown.size() == 3);
  std::string all;
  for (const Error& error : read.unknown) all += describe(error) + "\n";
  CHECK(contains(all, "recipe.yaml:4:3: error: unknown key 'model.n_layer'"));
  CHECK(contains(all, "did you mean 'n_layers'?"));
  CHECK(contains(all, "recipe.yaml:5:9: error: unknown key 'optim.dim'"));
  CHECK(contains(all, "did you mean 'model.dim'?"));
  CHECK(contains(all, "recipe.yaml:1:1: error: unknown key 'nmae'"));
  CHECK(contains(all, "did you mean 'name'?"));
}

TEST_CASE("keys without a counterpart are kept aside with their value", "[lingua]") {
  const ReadRecipe read = read_recipe_text(
      "dump_dir: /runs\nprobe_freq: null\nenv: {A: 1}\ndistributed: {compile: true}\n"
      "checkpoint: {dump: {every: 7, keep: -1}}\n");
  CHECK(read.unknown.empty());
  std::vector<std::string> lines;
  for (const LeftOut& key : read.left_out) lines.push_back(key.path + " " + key.value);
  CHECK(lines ==
        std::vector<std::string>{
            "dump_dir /runs", "env …", "distributed.compile true", "checkpoint.dump.keep -1"});
  CHECK(read.recipe.checkpoint.dump.every == 7);
}

TEST_CASE("values of a wrong type or out of their limits are refused at their place", "[lingua]") {
  CHECK(contains(import_error("steps: many\n"), "recipe.yaml:1:8: error: 'steps' must be"));
  CHECK(contains(import_error("steps: 0\n"), "'steps' must be at least 1"));
  CHECK(contains(import_error("optim: {lr: -1}\n"), "'optim.lr' must be at least 0"));
  CHECK(contains(import_error("data: {sources: [a]}\n"), "'data.sources' must be a mapping"));
  CHECK(contains(import_error("model: 3\n"), "'model' must be a mapping of keys"));
  CHECK(contains(import_error("- a\n"), "a recipe is a mapping of keys"));
  CHECK(contains(import_error("model: {n_layers: 99999999999}\n"), "'model.n_layers' must be"));
}

TEST_CASE("numbers are read as lingua reads them", "[lingua]") {
  const Recipe recipe =
      read_recipe_text("optim: {lr: 1e-3, epsilon: 1.0e-08, clip: 1}\nsteps: 1e3\n").recipe;
  CHECK(recipe.optim.lr == 1e-3);
  CHECK(recipe.optim.epsilon == 1e-8);
  CHECK(recipe.optim.clip == 1);
  CHECK(recipe.steps == 1000);
}

TEST_CASE("linear models are refused with the reason", "[lingua]") {
  for (const char* key : {"model_name: GLA5",
                          "model_name: Mamba2",
                          "mamba_ssm: 128",
                          "mlp_type: mlp10",
                          "zeyuan_layernorm: true"}) {
    const std::string error = import_error(small_recipe("  " + std::string(key) + "\n"));
    INFO(error);
    CHECK(contains(error, "recipe.yaml:3:3: error: 'model."));
    CHECK(contains(error, "asks for a linear model, and forge has none yet"));
  }
  CHECK(contains(import_error("model: {mamba_ssm: 128, model_name: GDN2}\n"), "model_name' GDN2"));
}

}  // namespace
}  // namespace forge::lingua
