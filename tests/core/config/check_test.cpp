#include "core/config/check.h"

#include <cstdlib>

#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;
using tests::small_accepted;
using tests::small_refusal;

TEST_CASE("model and tokenizer have one vocabulary") {
  const std::string error = small_refusal({"tokenizer.vocab_size=2000"});
  REQUIRE(contains(error, "model.vocab_size 300 differs from tokenizer.vocab_size 2000"));
  REQUIRE(contains(error, "--set tokenizer.vocab_size=2000"));
}

TEST_CASE("words that forge does not know are refused") {
  REQUIRE(contains(small_refusal({"model.family=lama_canon"}), "must be one of llama_canon"));
  REQUIRE(contains(small_refusal({"model.family=lama_canon"}), "did you mean 'llama_canon'?"));
  REQUIRE(
      contains(small_refusal({"data.source=stories"}), "must be one of toy_stories, text, jsonl"));
  REQUIRE(contains(small_refusal({"tokenizer.kind=x"}), "must be one of byte_level_bpe"));
  REQUIRE(contains(small_refusal({"optimizer.type=sgd"}), "must be one of adamw"));
  REQUIRE(contains(small_refusal({"schedule.type=step"}),
                   "infinite_lr, cosine, linear, inv_sqrt, wsd"));
  REQUIRE(contains(small_refusal({"train.precision=float16"}), "float32, float64, bfloat16"));
  REQUIRE(contains(small_refusal({"model.position.kind=alibi"}), "must be one of rope, nope"));
}

TEST_CASE("bfloat16 weights need bfloat16 computation") {
  const Experiment chosen =
      small_accepted({"train.precision=bfloat16", "train.bfloat16_weights=master_copies"});
  REQUIRE(chosen.train.precision == Precision::bfloat16);
  REQUIRE(chosen.train.bfloat16_weights == Bfloat16Weights::master_copies);
  REQUIRE(small_accepted({"train.precision=bfloat16"}).train.bfloat16_weights ==
          Bfloat16Weights::none);
  const std::string error = small_refusal({"train.bfloat16_weights=stochastic_rounding"});
  REQUIRE(contains(error, "--set train.bfloat16_weights=stochastic_rounding"));
  REQUIRE(contains(error, "has no meaning where train.precision is float32"));
  REQUIRE(contains(error, "set train.precision bfloat16"));
  REQUIRE(contains(small_refusal({"train.bfloat16_weights=copies"}),
                   "none, master_copies, stochastic"));
  const std::string in_file =
      ConfigFixture().small_error("train.bfloat16_weights: master_copies\n");
  REQUIRE(
      contains(in_file, "c.yaml:8:25: error: train.bfloat16_weights master_copies has no meaning"));
}

TEST_CASE("a later layer that computes in float32 takes bfloat16 weights back") {
  const ConfigFixture fixture;
  const std::string train = "train.precision: bfloat16\ntrain.bfloat16_weights: master_copies\n";
  const ResolvedConfig resolved = fixture.small(train, {"train.precision=float32"});
  REQUIRE(resolved.experiment.train.bfloat16_weights == Bfloat16Weights::none);
  REQUIRE(resolved.origins.at("train.bfloat16_weights").set_by.derived_from == "train.precision");
}

TEST_CASE("sizes are at least one and no product of them overflows") {
  for (const char* key : {"train.batch_size",
                          "train.seq_len",
                          "train.log_every",
                          "model.num_layers",
                          "train.eval_rows",
                          "model.hidden_size",
                          "model.num_heads"}) {
    const std::string error = small_refusal({std::string(key) + "=0"});
    REQUIRE(contains(error, "'" + std::string(key) + "' must be "));
    REQUIRE(contains(error, " 1"));
    REQUIRE(contains(error, ", not 0"));
  }
  REQUIRE(contains(small_refusal({"model.hidden_size=1e6"}), "must be from 1 to 262144, not 1e6"));
}

TEST_CASE("training ends after steps or after tokens") {
  REQUIRE(contains(small_refusal({"train.max_steps=0"}),
                   "neither train.max_steps nor train.max_tokens"));
  REQUIRE(
      contains(small_refusal({"train={max_steps: 3, max_tokens: 9}"}), "both train.max_steps and"));
  const std::vector<std::string> size = {"train.batch_size=2", "train.seq_len=8"};
  const auto steps = [&](const std::string& tokens) {
    return small_accepted({size[0], size[1], "train.max_tokens=" + tokens}).train.max_steps;
  };
  REQUIRE(steps("16") == 1);
  REQUIRE(steps("17") == 2);
  REQUIRE(steps("1e3") == 63);
  REQUIRE(small_accepted({"train.max_tokens=99", "train.max_steps=4"}).train.max_tokens == 0);
}

TEST_CASE("steps derived from tokens say so") {
  const auto origins = ConfigFixture().small("", {"train.max_tokens=1e6"}).origins;
  const Origin& steps = origins.at("train.max_steps");
  REQUIRE(steps.set_by.derived_from == "train.max_tokens");
  REQUIRE(steps.set_by.layer == "command line");
  REQUIRE(steps.overrode.front().text == "3");
}

TEST_CASE("AdamW has two betas below one") {
  REQUIRE(contains(small_refusal({"optimizer.betas=[0.9]"}), "must be two numbers, not 1"));
  REQUIRE(contains(small_refusal({"optimizer.betas=[0.9, 1]"}), "must be below 1"));
  REQUIRE(contains(small_refusal({"optimizer.betas=[0.9, -0.1]"}),
                   "'optimizer.betas[1]' must be from 0"));
  REQUIRE(contains(small_refusal({"optimizer.betas=0.9"}), "must be a list"));
}

TEST_CASE("annealing begins after warm-up and cooldown") {
  const std::vector<std::string> schedule = {"schedule.warmup_steps=2",
                                             "schedule.cooldown_steps=5"};
  REQUIRE(
      contains(small_refusal({schedule[0], schedule[1], "schedule.checkpoint_step=6"}), "step 7"));
  REQUIRE(small_accepted({schedule[0], schedule[1], "schedule.checkpoint_step=7"})
              .schedule.checkpoint_step == 7);
}

TEST_CASE("a schedule that cannot be followed is refused") {
  REQUIRE(contains(small_refusal({"schedule.type=inv_sqrt"}),
                   "inv_sqrt needs schedule.warmup_steps above 0"));
  REQUIRE(
      small_accepted({"schedule.type=inv_sqrt", "schedule.warmup_steps=1"}).schedule.exp_factor ==
      0.5);
  REQUIRE(contains(small_refusal({"schedule.type=wsd", "schedule.lr_min_ratio=0"}),
                   "schedule.lr_min_ratio 0 cannot be reached under schedule.type wsd"));
  REQUIRE(contains(small_refusal({"schedule.type=cosine", "schedule.cycle_length=0.01"}),
                   "schedule.cycle_length 0.01 of 3 steps is less than a step"));
  REQUIRE(contains(small_refusal({"schedule.cycle_length=0"}), "must be above 0"));
  REQUIRE(contains(small_refusal({"schedule.decay_fraction=1.5"}), "must be from 0 to 1"));
}

TEST_CASE("a z-loss coefficient needs a kind, and a kind a coefficient") {
  const std::string error = small_refusal({"train.z_loss.coefficient=1e-3"});
  REQUIRE(
      contains(error, "train.z_loss.coefficient 1e-3 has no meaning where train.z_loss.kind is"));
  REQUIRE(contains(error, "--set train.z_loss.coefficient=1e-3"));
  REQUIRE(contains(error, "set train.z_loss.kind palm or lingua_code"));
  REQUIRE(contains(small_refusal({"train.z_loss.kind=palm", "train.z_loss.coefficient=0"}),
                   "train.z_loss.coefficient 0 leaves nothing of train.z_loss.kind palm"));
  const Experiment e =
      small_accepted({"train.z_loss.kind=lingua_code", "train.z_loss.coefficient=1e-3"});
  REQUIRE(e.train.z_loss.coefficient == 1e-3);
  const ConfigFixture fixture;
  const std::string config = "profiles.quick.train.z_loss: {kind: palm, coefficient: 1e-3}\n";
  REQUIRE(fixture.small(config, {"train.z_loss.kind=none"}).experiment.train.z_loss.coefficient ==
          1e-4);
}

TEST_CASE("a path on the command line is relative to the current folder") {
  const ConfigFixture fixture;
  fixture.files.folder.write("mine.txt", "text");
  const Experiment e = fixture.small("", {"data.path=mine.txt"}).experiment;
  REQUIRE(e.data.source == "text");
  REQUIRE(e.data.path == (fixture.files.folder / "mine.txt").string());
  const std::string error = fixture.small_error("", {"data.path=other.txt"});
  REQUIRE(contains(error, "no file " + (fixture.files.folder / "other.txt").string()));
  REQUIRE(contains(error, "--set data.path=other.txt"));
  REQUIRE(contains(error, "relative to the current folder"));
}

TEST_CASE("a path in a template is relative to the project") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/mine.txt", "text");
  const Experiment e = fixture.small("data: {source: text, path: mine.txt}\n").experiment;
  REQUIRE(e.data.path == (fixture.files.folder / "projects/p/mine.txt").string());
}

/// What keeps the config from being run here, though it can be looked at.
std::string obstacle(const ResolvedConfig& resolved) {
  return tests::error_of([&] { require_no_obstacles(resolved); });
}

TEST_CASE("a file that a template names and that is not there hinders only a run") {
  const ConfigFixture fixture;
  const ResolvedConfig data = fixture.small("data: {source: text, path: texts}\n");
  REQUIRE(data.experiment.data.path == (fixture.files.folder / "projects/p/texts").string());
  REQUIRE(contains(obstacle(data), ":8:28: error: no file "));
  const ResolvedConfig tokenizer = fixture.small("tokenizer.path: t.json\n");
  REQUIRE(contains(obstacle(tokenizer), "relative to its project's folder"));
  fixture.files.folder.write("projects/p/t.json", "{}");
  REQUIRE(obstacle(fixture.small("tokenizer.path: t.json\n")).empty());
}

TEST_CASE("a kind of tokenizer that is only read and has no file hinders only a run") {
  const ConfigFixture fixture;
  for (const std::string kind : {"sentencepiece", "tiktoken"}) {
    const ResolvedConfig resolved = fixture.small("tokenizer.kind: " + kind + "\n");
    REQUIRE(resolved.experiment.tokenizer.kind == kind);
    REQUIRE(contains(obstacle(resolved),
                     "tokenizer.kind is " + kind + ", and tokenizer.path names no file"));
    REQUIRE(contains(obstacle(resolved), "--set tokenizer.kind=byte_level_bpe"));
    REQUIRE(contains(small_refusal({"tokenizer.kind=" + kind}), "tokenizer.path names no file"));
  }
}

TEST_CASE("a path may begin at the home folder") {
  const char* home = std::getenv("HOME");
  if (!home) return;
  REQUIRE(small_accepted({"data.path=~/."}).data.path.find(home) == 0);
}

TEST_CASE("initial weights are a folder where there is one and else the name of a run") {
  const ConfigFixture fixture;
  fixture.files.folder.write("llama/config.json", "{}");
  fixture.files.folder.write("other/readme.txt", "");
  const auto chosen = [&](const std::string& name) {
    return fixture.small("", {"train.initial_weights=" + name}).experiment.train.initial_weights;
  };
  REQUIRE(chosen("llama") == (fixture.files.folder / "llama").string());
  REQUIRE(chosen("./llama") == (fixture.files.folder / "llama").string());
  REQUIRE(chosen("other") == "other");
  REQUIRE(chosen("train_llama-5a") == "train_llama-5a");
  REQUIRE(chosen("").empty());
  const std::string error = obstacle(fixture.small("train.initial_weights: ../no/llama\n"));
  REQUIRE(contains(error, "no file "));
  REQUIRE(contains(error, "relative to its project's folder"));
}

TEST_CASE("text needs a path and only text has one") {
  REQUIRE(contains(small_refusal({"data.source=text"}), "data.path names no file"));
  REQUIRE(contains(small_refusal({"data={source: toy_stories, path: /}"}),
                   "data.source is toy_stories"));
  const ConfigFixture fixture;
  const ResolvedConfig back =
      fixture.small("data: {source: text, path: /}\n", {"data.source=toy_stories"});
  REQUIRE(back.experiment.data.path.empty());
  REQUIRE(back.origins.at("data.path").overrode.front().text == "/");
}

}  // namespace
}  // namespace forge::config
