#include "core/config/check.h"

#include <cstdlib>

#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;

/// The error for one override of the small config.
std::string refusal(std::vector<std::string> overrides) {
  return ConfigFixture().small_error("", std::move(overrides));
}
Experiment accepted(std::vector<std::string> overrides) {
  return ConfigFixture().small("", std::move(overrides)).experiment;
}
bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("heads must divide the hidden size unless head_dim is given") {
  const std::string error = refusal({"model.num_heads=5"});
  REQUIRE(says(error, "model.num_heads 5 does not divide model.hidden_size 64"));
  REQUIRE(says(error, "--set model.num_heads=5\n                          ^"));
  REQUIRE(accepted({"model.num_heads=5", "model.head_dim=12"}).model.head_dim == 12);
}

TEST_CASE("the complaint is about the key that was set last") {
  REQUIRE(says(refusal({"model.hidden_size=66"}), "--set model.hidden_size=66"));
  REQUIRE(says(ConfigFixture().small_error("model.num_heads: 5\n"), "c.yaml:8:18"));
}

TEST_CASE("key and value heads default to the heads and must divide them") {
  REQUIRE(accepted({}).model.num_kv_heads == 4);
  REQUIRE(accepted({"model.num_kv_heads=null"}).model.num_kv_heads == 4);
  REQUIRE(accepted({"model.num_kv_heads=2"}).model.num_kv_heads == 2);
  REQUIRE(says(refusal({"model.num_kv_heads=3"}),
               "model.num_kv_heads 3 does not divide model.num_heads 4"));
}

TEST_CASE("RoPE needs an even number of channels that a head has") {
  REQUIRE(says(refusal({"model.head_dim=15"}), "model.head_dim 15 is odd"));
  REQUIRE(accepted({"model.head_dim=15", "model.position.kind=nope"}).model.head_dim == 15);
  REQUIRE(accepted({"model.head_dim=15", "model.position.rope_dim=4"}).model.head_dim == 15);
  REQUIRE(says(refusal({"model.position.rope_dim=3"}), "model.position.rope_dim 3 is odd"));
  REQUIRE(says(refusal({"model.position.rope_dim=18"}), "18 is more than model.head_dim 16"));
  REQUIRE(says(refusal({"model.position.rope_dim=0"}), "must be at least 2"));
}

TEST_CASE("a canon set is put in order and has each of ABCD at most once") {
  REQUIRE(accepted({"model.canon.set=DBA"}).model.canon.set == "ABD");
  REQUIRE(accepted({"model.canon.set="}).model.canon.set.empty());
  REQUIRE(says(refusal({"model.canon.set=AX"}), "'AX' has 'X', which is no Canon position"));
  REQUIRE(says(refusal({"model.canon.set=ac"}), "has 'a', which is no Canon position"));
  REQUIRE(says(refusal({"model.canon.set=AA"}), "'AA' has 'A' twice"));
  REQUIRE(says(refusal({"model.canon.kernel=5"}), "must be from 2 to 4"));
}

TEST_CASE("model and tokenizer have one vocabulary") {
  const std::string error = refusal({"tokenizer.vocab_size=2000"});
  REQUIRE(says(error, "model.vocab_size 300 differs from tokenizer.vocab_size 2000"));
  REQUIRE(says(error, "--set tokenizer.vocab_size=2000"));
}

TEST_CASE("words that forge does not know are refused") {
  REQUIRE(says(refusal({"model.family=lama_canon"}), "must be one of llama_canon"));
  REQUIRE(says(refusal({"model.family=lama_canon"}), "did you mean 'llama_canon'?"));
  REQUIRE(says(refusal({"data.source=stories"}), "must be one of toy_stories, text"));
  REQUIRE(says(refusal({"tokenizer.kind=x"}), "must be one of byte_level_bpe"));
  REQUIRE(says(refusal({"optimizer.type=sgd"}), "must be one of adamw"));
  REQUIRE(says(refusal({"schedule.type=linear"}), "infinite_lr, cosine, constant"));
  REQUIRE(says(refusal({"train.precision=float16"}), "float32, float64, bfloat16"));
  REQUIRE(says(refusal({"model.position.kind=alibi"}), "must be one of rope, nope"));
}

TEST_CASE("sizes are at least one and no product of them overflows") {
  for (const char* key : {"train.batch_size",
                          "train.seq_len",
                          "train.log_every",
                          "model.num_layers",
                          "train.eval_rows",
                          "model.hidden_size",
                          "model.num_heads"}) {
    const std::string error = refusal({std::string(key) + "=0"});
    REQUIRE(says(error, "'" + std::string(key) + "' must be "));
    REQUIRE(says(error, " 1"));
    REQUIRE(says(error, ", not 0"));
  }
  REQUIRE(says(refusal({"model.hidden_size=1e6"}), "must be from 1 to 262144, not 1e6"));
}

TEST_CASE("training ends after steps or after tokens") {
  REQUIRE(says(refusal({"train.max_steps=0"}), "neither train.max_steps nor train.max_tokens"));
  REQUIRE(says(refusal({"train={max_steps: 3, max_tokens: 9}"}), "both train.max_steps and"));
  const std::vector<std::string> size = {"train.batch_size=2", "train.seq_len=8"};
  const auto steps = [&](const std::string& tokens) {
    return accepted({size[0], size[1], "train.max_tokens=" + tokens}).train.max_steps;
  };
  REQUIRE(steps("16") == 1);
  REQUIRE(steps("17") == 2);
  REQUIRE(steps("1e3") == 63);
  REQUIRE(accepted({"train.max_tokens=99", "train.max_steps=4"}).train.max_tokens == 0);
}

TEST_CASE("steps derived from tokens say so") {
  const auto origins = ConfigFixture().small("", {"train.max_tokens=1e6"}).origins;
  const Origin& steps = origins.at("train.max_steps");
  REQUIRE(steps.set_by.derived_from == "train.max_tokens");
  REQUIRE(steps.set_by.layer == "command line");
  REQUIRE(steps.overrode.front().text == "3");
}

TEST_CASE("AdamW has two betas below one") {
  REQUIRE(says(refusal({"optimizer.betas=[0.9]"}), "must be two numbers, not 1"));
  REQUIRE(says(refusal({"optimizer.betas=[0.9, 1]"}), "must be below 1"));
  REQUIRE(says(refusal({"optimizer.betas=[0.9, -0.1]"}), "'optimizer.betas[1]' must be from 0"));
  REQUIRE(says(refusal({"optimizer.betas=0.9"}), "must be a list"));
}

TEST_CASE("annealing begins after warm-up and cooldown") {
  const std::vector<std::string> schedule = {"schedule.warmup_steps=2",
                                             "schedule.cooldown_steps=5"};
  REQUIRE(says(refusal({schedule[0], schedule[1], "schedule.checkpoint_step=6"}), "step 7"));
  REQUIRE(
      accepted({schedule[0], schedule[1], "schedule.checkpoint_step=7"}).schedule.checkpoint_step ==
      7);
}

TEST_CASE("a path on the command line is relative to the current folder") {
  const ConfigFixture fixture;
  fixture.files.folder.write("mine.txt", "text");
  const Experiment e = fixture.small("", {"data.path=mine.txt"}).experiment;
  REQUIRE(e.data.source == "text");
  REQUIRE(e.data.path == (fixture.files.folder / "mine.txt").string());
  const std::string error = fixture.small_error("", {"data.path=other.txt"});
  REQUIRE(says(error, "no file " + (fixture.files.folder / "other.txt").string()));
  REQUIRE(says(error, "--set data.path=other.txt"));
  REQUIRE(says(error, "relative to the current folder"));
}

TEST_CASE("a path in a template is relative to the project") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/mine.txt", "text");
  const Experiment e = fixture.small("data: {source: text, path: mine.txt}\n").experiment;
  REQUIRE(e.data.path == (fixture.files.folder / "projects/p/mine.txt").string());
  REQUIRE(
      says(fixture.small_error("tokenizer.path: t.json\n"), "relative to its project's folder"));
}

TEST_CASE("a path may begin at the home folder") {
  const char* home = std::getenv("HOME");
  if (!home) return;
  REQUIRE(accepted({"data.path=~/."}).data.path.find(home) == 0);
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
  const std::string error = fixture.small_error("train.initial_weights: ../no/llama\n");
  REQUIRE(says(error, "no file "));
  REQUIRE(says(error, "relative to its project's folder"));
}

TEST_CASE("text needs a path and only text has one") {
  REQUIRE(says(refusal({"data.source=text"}), "data.path names no file"));
  REQUIRE(says(refusal({"data={source: toy_stories, path: /}"}), "data.source is toy_stories"));
  const ConfigFixture fixture;
  const ResolvedConfig back =
      fixture.small("data: {source: text, path: /}\n", {"data.source=toy_stories"});
  REQUIRE(back.experiment.data.path.empty());
  REQUIRE(back.origins.at("data.path").overrode.front().text == "/");
}

}  // namespace
}  // namespace forge::config
