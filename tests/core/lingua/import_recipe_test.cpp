#include "core/lingua/import_recipe.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "tests/core/lingua/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::lingua {
namespace {

using config::Experiment;
using tests::contains;
using tests::import_error;
using tests::import_text;
using tests::small_recipe;

Experiment imported(const std::string& text, const ImportOptions& options = {}) {
  return import_text(text, options).experiment;
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
  const config::ModelConfig model = imported(small_recipe()).model;
  CHECK(model.hidden_size == 512);
  CHECK(model.num_kv_heads == 8);
  CHECK(model.head_dim == 64);
  CHECK(imported(small_recipe("  n_kv_heads: 2\n")).model.num_kv_heads == 2);
  CHECK(imported(small_recipe("  head_dim: 32\n")).model.head_dim == 32);
  CHECK(contains(import_error("model: {dim: 64}\n"), "'model.n_heads' is missing"));
  CHECK(contains(import_error(small_recipe("  dim: 100\n")), "8 does not divide model.dim 100"));
  CHECK(contains(import_error(small_recipe("  n_kv_heads: 3\n")),
                 "recipe.yaml:3:15: error: 'model.n_kv_heads' 3 does not divide"));
}

TEST_CASE("lingua's conventions are stated", "[lingua]") {
  const ImportedRecipe recipe = import_text(small_recipe());
  const Experiment& e = recipe.experiment;
  CHECK(e.model.init == config::ModelInit::lingua);
  CHECK(e.model.position.pairing == config::RopePairing::lingua);
  CHECK(e.model.rms_norm_rounding == config::RmsNormRounding::lingua);
  CHECK(e.model.rms_norm_eps == 1e-5);
  CHECK(e.model.qk_norm == config::QkNorm::none);
  CHECK(e.train.z_loss.kind == config::ZLossKind::none);
  CHECK(e.train.precision == config::Precision::bfloat16);
  for (const char* key : {"model.init", "model.position.pairing", "model.rms_norm_rounding"}) {
    CHECK(recipe.stated.count(key) == 1);
  }
}

TEST_CASE("options of the model are carried over", "[lingua]") {
  const Experiment e = imported(
      small_recipe("  qk_norm: true\n  z_loss: true\n  weight_tying: true\n  rope_theta: 1e5\n"
                   "  rope_dim: 16\n  init_base_std: 0.02\n  init_std_factor: global_depth\n"
                   "  seed: 7\n"));
  CHECK(e.model.qk_norm == config::QkNorm::full);
  CHECK(e.train.z_loss.kind == config::ZLossKind::lingua_code);
  CHECK(e.train.z_loss.coefficient == 1e-4);
  CHECK(e.model.tie_embeddings);
  CHECK(e.model.position.theta == 1e5);
  CHECK(e.model.position.rope_dim == 16);
  CHECK(e.model.init_base_std == 0.02);
  CHECK(e.model.init_std_factor == config::InitStdFactor::global_depth);
  CHECK(e.seed == 7);
}

TEST_CASE("canon_set is a set of letters and its options go along", "[lingua]") {
  const config::CanonConfig canon =
      imported(small_recipe("  canon_set: DBAb\n  canon_kernel: 3\n  canon_residual: false\n"
                            "  canon_activation: true\n"))
          .model.canon;
  CHECK(canon.set == "ABD");
  CHECK(canon.kernel == 3);
  CHECK_FALSE(canon.residual);
  CHECK(canon.activation == config::Activation::silu);
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
  CHECK(imported(small_recipe("  sliding_window: 64\n")).model.num_heads == 8);
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
  CHECK(recipe.stated.at("train.batch_size") == "16 GPUs × 3 rows × 4 micro steps");

  const std::string parallel = text + "distributed: {dp_replicate: 2, dp_shard: 4, tp_size: 2}\n";
  CHECK(imported(parallel).train.batch_size == 8 * 12);
  CHECK(imported(parallel, options).train.batch_size == 8 * 12);
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
  CHECK(recipe.experiment.data.seed == 777);
  CHECK(contains(join(recipe.notes, "\n"), "mixes a 0.3, b 0.7"));
  CHECK(imported(small_recipe("", "seed: 777\ndata: {seed: 5}\n")).data.seed == 5);
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
  CHECK(schedule("wsd").stated.count("schedule.decay_fraction") == 1);
  CHECK(schedule("inv_sqrt").stated.count("schedule.exp_factor") == 1);
  CHECK(schedule("linear").stated.count("schedule.cycle_length") == 0);
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
