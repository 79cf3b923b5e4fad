#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/lingua/import_recipe.h"
#include "core/lingua/recipe.h"
#include "tests/core/lingua/fixture.h"
#include "tests/support/catch.h"

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
  for (const UnsupportedKey& key : read.unsupported) lines.push_back(key.path + " " + key.value);
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

using config::Experiment;
using tests::contains;
using tests::import_error;
using tests::import_text;
using tests::small_recipe;

Experiment imported(const std::string& text, const ImportOptions& options = {}) {
  return import_text(text, options).experiment;
}

TEST_CASE("linear models become forge's mixers", "[lingua]") {
  const Experiment gla =
      imported(small_recipe("  model_name: GLA5\n  canon_set: AbbCD\n  zeyuan_layernorm: true\n"));
  CHECK(gla.model.layers.front().mixer == "gla5");
  CHECK(gla.model.gla5.num_heads == 8);
  CHECK(gla.model.canon.set == "AbCD");
  CHECK(gla.model.mlp.intermediate_size == 1024);
  CHECK(gla.model.init == model::ModelInit::release);
  const Experiment mamba = imported(small_recipe(
      "  model_name: Mamba2\n  canon_set: bb\n  mlp_type: mlp10\n  hidden_dim: 900\n"));
  CHECK(mamba.model.mamba2.state_size == 256);
  CHECK(mamba.model.canon.set == "b");
  CHECK(mamba.model.mlp.intermediate_size == 900);
  const auto refusal = [](const std::string& lines) { return import_error(small_recipe(lines)); };
  CHECK(contains(refusal("  model_name: GLA6\n"), "'model.model_name' is 'GLA6'"));
  CHECK(contains(refusal("  model_name: Mamba2\n"), "'model.mlp_type' is not mlp10"));
  CHECK(contains(refusal("  model_name: GDN2\n  qk_norm: true\n"), "'model.qk_norm' is true"));
  CHECK(contains(refusal("  model_name: GDN2\n  dim: 20\n"), "8 does not divide 20"));
  for (const char* key : {"mamba_ssm: 128", "mlp_type: mlp10", "zeyuan_layernorm: true"})
    CHECK(contains(refusal("  " + std::string(key) + "\n"), "is of linear models"));
}

TEST_CASE("the width of the MLP is lingua's", "[lingua]") {
  const auto width = [](int dim,
                        std::optional<double> multiplier = {},
                        int multiple_of = 256,
                        std::optional<int> hidden_dim = {}) {
    Model model;
    model.dim = dim;
    model.ffn_dim_multiplier = multiplier;
    model.multiple_of = multiple_of;
    model.hidden_dim = hidden_dim;
    return intermediate_size(model);
  };
  CHECK(width(2048) == 5632);
  CHECK(width(3072) == 8192);
  CHECK(width(512) == 1536);
  CHECK(width(4096, 1.3, 1024) == 14336);  // Llama 3 8B
  CHECK(width(4096, 1.0, 256, 14336) == 14336);
  CHECK(width(100, 0.5, 1) == 133);  // 266 × 0.5
  CHECK(width(1 << 18, 1e9) == 0);
}

TEST_CASE("heads and their channels follow from what is given", "[lingua]") {
  const model::ModelConfig model = imported(small_recipe()).model;
  CHECK(model.hidden_size == 512);
  CHECK(model.attention.num_kv_heads == 8);
  CHECK(model.attention.head_dim == 64);
  CHECK(imported(small_recipe("  n_kv_heads: 2\n")).model.attention.num_kv_heads == 2);
  CHECK(imported(small_recipe("  head_dim: 32\n")).model.attention.head_dim == 32);
  CHECK(contains(import_error("model: {dim: 64}\n"), "'model.n_heads' is missing"));
  CHECK(contains(import_error(small_recipe("  dim: 100\n")), "8 does not divide model.dim 100"));
  CHECK(contains(import_error(small_recipe("  n_kv_heads: 3\n")),
                 "recipe.yaml:3:15: error: 'model.n_kv_heads' 3 does not divide"));
}

TEST_CASE("lingua's conventions are stated", "[lingua]") {
  const ImportedRecipe recipe = import_text(small_recipe());
  const Experiment& e = recipe.experiment;
  CHECK(e.model.init == model::ModelInit::lingua);
  CHECK(e.model.attention.position.pairing == model::RopePairing::lingua);
  CHECK(e.model.norm.rounding == model::NormRounding::lingua);
  CHECK(e.model.norm.eps == 1e-5);
  CHECK(e.model.attention.qk_norm == model::QkNorm::none);
  CHECK(e.train.z_loss.kind == config::ZLossKind::none);
  CHECK(e.train.precision == model::Precision::bfloat16);
  for (const char* key :
       {"model.init", "model.attention.position.pairing", "model.norm.rounding"}) {
    CHECK(recipe.key_comments.count(key) == 1);
  }
}

TEST_CASE("options of the model are carried over", "[lingua]") {
  const Experiment e = imported(
      small_recipe("  qk_norm: true\n  z_loss: true\n  weight_tying: true\n  rope_theta: 1e5\n"
                   "  rope_dim: 16\n  init_base_std: 0.02\n  init_std_factor: global_depth\n"
                   "  seed: 7\n"));
  CHECK(e.model.attention.qk_norm == model::QkNorm::full);
  CHECK(e.train.z_loss.kind == config::ZLossKind::lingua_code);
  CHECK(e.train.z_loss.coefficient == 1e-4);
  CHECK(e.model.tie_embeddings);
  CHECK(e.model.attention.position.theta == 1e5);
  CHECK(e.model.attention.position.rope_dim == 16);
  CHECK(e.model.init_base_std == 0.02);
  CHECK(e.model.init_std_factor == model::InitStdFactor::global_depth);
  CHECK(e.seed == 7);
}

TEST_CASE("canon_set is a set of letters and its options go along", "[lingua]") {
  const model::CanonConfig canon =
      imported(small_recipe("  canon_set: DBAb\n  canon_kernel: 3\n  canon_residual: false\n"
                            "  canon_activation: true\n"))
          .model.canon;
  CHECK(canon.set == "ABD");
  CHECK(canon.kernel == 3);
  CHECK_FALSE(canon.residual);
  CHECK(canon.activation == model::Activation::silu);
  CHECK(contains(import_text(small_recipe("  canon_set: Ab\n")).notes.front(), "'Ab'"));
  CHECK(
      contains(import_error(small_recipe("  canon_set: A\n  canon_bias: true\n")), "have no bias"));
  CHECK(contains(import_error(small_recipe("  canon_set: A\n  canon_kernel: 5\n")), "from 2 to 4"));
  CHECK(imported(small_recipe("  canon_set: null\n  canon_kernel: 5\n")).model.canon.set.empty());
}

TEST_CASE("what forge computes otherwise is refused", "[lingua]") {
  CHECK(
      contains(import_error(small_recipe("  rope_dim: 0\n")), "'model.rope_dim' 0 is not an even"));
  CHECK(contains(import_error(small_recipe("  rope_dim: 66\n")), "from 2 to the head's 64"));
  CHECK(contains(import_error(small_recipe("  attn_impl: fmha\n  sliding_window: 64\n")),
                 "limits what attention sees"));
  CHECK(imported(small_recipe("  sliding_window: 64\n")).model.attention.num_heads == 8);
  CHECK(contains(import_error(small_recipe("", "data: {n_views: 3}\n")), "3 is not 2"));
  CHECK(contains(import_error(small_recipe("", "optim: {scheduler: cosin}\n")),
                 "did you mean 'cosine'?"));
  CHECK(contains(import_error(small_recipe("  init_std_factor: depth\n")), "init_std_factor"));
  CHECK(contains(import_error(small_recipe("", "distributed: {model_dtype: fp16}\n")),
                 "'distributed.model_dtype' is 'fp16'"));
}

TEST_CASE("the rows of a step are those of all GPUs and micro steps", "[lingua]") {
  const std::string text = small_recipe("", "grad_acc_steps: 4\ndata: {batch_size: 3}\n");
  CHECK(imported(text).train.batch_size == 12);
  ImportOptions options;
  options.gpus = 16;
  const ImportedRecipe recipe = import_text(text, options);
  CHECK(recipe.experiment.train.batch_size == 192);
  CHECK(recipe.experiment.train.eval_batch_size == 3);
  CHECK(recipe.key_comments.at("train.batch_size") == "16 GPUs × 3 rows × 4 micro steps");

  CHECK(recipe.experiment.train.gradient_slots == 16);
  CHECK(recipe.experiment.parallel.processes.is_auto());
  CHECK(imported(text).train.gradient_slots == 1);
  CHECK_FALSE(config::to_json(imported(text)).contains("parallel"));
  options.gpus = 6;
  const ImportedRecipe odd = import_text(text, options);
  CHECK(odd.experiment.train.gradient_slots == 1);
  CHECK(contains(join(odd.notes, "\n"), "6 GPUs with rows of their own are no power of two"));
  options.gpus = 16;

  const std::string parallel = text + "distributed: {dp_replicate: 2, dp_shard: 4, tp_size: 2}\n";
  CHECK(imported(parallel).train.batch_size == 8 * 12);
  CHECK(imported(parallel, options).train.batch_size == 8 * 12);
  CHECK(imported(parallel, options).train.gradient_slots == 8);  // two GPUs share their rows
  options.gpus = 3;
  CHECK(contains(import_error(parallel, options), "2 does not divide the 3 GPUs"));
  options.gpus = 1 << 20;
  CHECK(contains(import_error(text, options), "rows, of which forge takes 1,048,576"));
}

TEST_CASE("the vocabulary is the recipe's or the tokenizer's or given", "[lingua]") {
  const auto tokenizer = [](const std::string& name, const std::string& model = "") {
    return small_recipe(model, "data: {tokenizer: {name: " + name + "}}\n");
  };
  CHECK(imported(tokenizer("sp")).model.vocab_size == 32000);
  CHECK(imported(tokenizer("sp")).tokenizer.kind == "sentencepiece");
  CHECK(imported(tokenizer("tiktoken")).tokenizer.vocab_size == 128256);
  CHECK(imported(tokenizer("bytes")).tokenizer.kind == "byte_level_bpe");
  CHECK(imported(tokenizer("sp", "  vocab_size: 50000\n")).tokenizer.vocab_size == 50000);
  ImportOptions options;
  options.vocab_size = 64000;
  CHECK(imported(tokenizer("sp"), options).model.vocab_size == 64000);
  CHECK(contains(import_error(tokenizer("sp", "  vocab_size: 50000\n"), options),
                 "50000 is not the 64000 of --vocab-size"));
  CHECK(contains(import_error(tokenizer("sp", "  vocab_size: 0\n")), "is 0"));
  CHECK(contains(import_error(tokenizer("sp", "  vocab_size: 100\n")), "less than forge's"));
  CHECK(contains(import_error(tokenizer("spm")), "did you mean 'sp'?"));
}

TEST_CASE("data is the folder of the heaviest source and the rest is said", "[lingua]") {
  const ImportedRecipe recipe = import_text(
      small_recipe("", "seed: 777\ndata: {root_dir: /data, sources: {a: 0.3, b: 0.7}}\n"));
  CHECK(recipe.experiment.data.source == "text");
  CHECK(recipe.experiment.data.path == "/data/b");
  CHECK(recipe.experiment.data.order_seed == 777);
  CHECK(contains(join(recipe.notes, "\n"), "mixes a 0.3, b 0.7"));
  CHECK(imported(small_recipe("", "seed: 777\ndata: {seed: 5}\n")).data.order_seed == 5);
  CHECK(imported(small_recipe()).data.source == "toy_stories");
}

TEST_CASE("the optimizer and the schedule are carried over", "[lingua]") {
  const Experiment e = imported(small_recipe(
      "",
      "steps: 500\noptim: {lr: 2e-3, weight_decay: 0.02, epsilon: 1e-9, beta1: 0.8, beta2: 0.99,\n"
      "  clip: 0.5, warmup: 20, lr_min_ratio: 0.01, cycle_length: 0.5, cosine_theta: 2}\n"));
  CHECK(e.optimizer.lr == 2e-3);
  CHECK(e.optimizer.weight_decay == 0.02);
  CHECK(e.optimizer.eps == 1e-9);
  CHECK(e.optimizer.betas == std::vector<double>{0.8, 0.99});
  CHECK(e.train.grad_clip == 0.5);
  CHECK(e.train.max_steps == 500);
  CHECK(e.schedule.type == "cosine");
  CHECK(e.schedule.warmup_steps == 20);
  CHECK(e.schedule.lr_min_ratio == 0.01);
  CHECK(e.schedule.cycle_length == 0.5);
  CHECK(e.schedule.cosine_theta == 2);
}

TEST_CASE("a constant rate has no warm-up and each schedule states its own keys", "[lingua]") {
  const auto schedule = [](const std::string& name) {
    return import_text(small_recipe("", "optim: {scheduler: " + name + ", warmup: 20}\n"));
  };
  CHECK(schedule("constant").experiment.schedule.warmup_steps == 0);
  CHECK(schedule("linear").experiment.schedule.warmup_steps == 20);
  CHECK(schedule("wsd").key_comments.count("schedule.decay_fraction") == 1);
  CHECK(schedule("inv_sqrt").key_comments.count("schedule.exp_factor") == 1);
  CHECK(schedule("linear").key_comments.count("schedule.cycle_length") == 0);
}

TEST_CASE("the name is given or the recipe's or the file's", "[lingua]") {
  CHECK(imported("name: own\n" + small_recipe()).name == "own");
  CHECK(imported(small_recipe()).name == "recipe");
  ImportOptions options;
  options.name = "given";
  CHECK(imported("name: own\n" + small_recipe(), options).name == "given");
}

TEST_CASE("the report holds config and remarks", "[lingua]") {
  const nlohmann::ordered_json json =
      to_json(import_text("gc_collect_freq: 5\nsed: 3\n" + small_recipe()));
  CHECK(json.at("name") == "recipe");
  CHECK(json.at("gpus") == 1);
  CHECK(json.at("config").at("model").at("hidden_size") == 512);
  CHECK(json.at("no_counterpart").at(0).at("key") == "gc_collect_freq");
  CHECK(json.at("unknown").at(0).at("at").at("line") == 2);
  CHECK(json.at("unknown").at(0).at("hint") == "did you mean 'seed'?");
}

}  // namespace
}  // namespace forge::lingua
