// Which models make no sense, and why.

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/config/check.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;
using tests::small_accepted;
using tests::small_refusal;

TEST_CASE("heads must divide the hidden size unless head_dim is given") {
  const std::string error = small_refusal({"model.attention.num_heads=5"});
  REQUIRE(contains(error, "model.attention.num_heads 5 does not divide model.hidden_size 64"));
  REQUIRE(
      contains(error, "--set model.attention.num_heads=5\n                                    ^"));
  REQUIRE(small_accepted({"model.attention.num_heads=5", "model.attention.head_dim=12"})
              .model.attention.head_dim == 12);
}

TEST_CASE("the complaint is about the key that was set last") {
  REQUIRE(contains(small_refusal({"model.hidden_size=66"}), "--set model.hidden_size=66"));
  REQUIRE(contains(ConfigFixture().small_error("model.attention.num_heads: 5\n"), "c.yaml:8:28"));
}

TEST_CASE("key and value heads default to the heads and must divide them") {
  REQUIRE(small_accepted({}).model.attention.num_kv_heads == 4);
  REQUIRE(small_accepted({"model.attention.num_kv_heads=null"}).model.attention.num_kv_heads == 4);
  REQUIRE(small_accepted({"model.attention.num_kv_heads=2"}).model.attention.num_kv_heads == 2);
  REQUIRE(contains(small_refusal({"model.attention.num_kv_heads=3"}),
                   "model.attention.num_kv_heads 3 does not divide model.attention.num_heads 4"));
}

TEST_CASE("RoPE needs an even number of channels that a head has") {
  REQUIRE(contains(small_refusal({"model.attention.head_dim=15"}),
                   "model.attention.head_dim 15 is odd"));
  REQUIRE(small_accepted({"model.attention.head_dim=15", "model.attention.position.kind=nope"})
              .model.attention.head_dim == 15);
  REQUIRE(small_accepted({"model.attention.head_dim=15", "model.attention.position.rope_dim=4"})
              .model.attention.head_dim == 15);
  REQUIRE(contains(small_refusal({"model.attention.position.rope_dim=3"}),
                   "model.attention.position.rope_dim 3 is odd"));
  REQUIRE(contains(small_refusal({"model.attention.position.rope_dim=18"}),
                   "18 is more than model.attention.head_dim 16"));
  REQUIRE(contains(small_refusal({"model.attention.position.rope_dim=0"}), "must be at least 2"));
}

TEST_CASE("a canon set is put in order and has each of ABCD at most once") {
  REQUIRE(small_accepted({"model.canon.set=DBA"}).model.canon.set == "ABD");
  REQUIRE(small_accepted({"model.canon.set="}).model.canon.set.empty());
  REQUIRE(
      contains(small_refusal({"model.canon.set=AX"}), "'AX' has 'X', which is no Canon position"));
  REQUIRE(contains(small_refusal({"model.canon.set=ac"}), "has 'a', which is no Canon position"));
  REQUIRE(contains(small_refusal({"model.canon.set=AA"}), "'AA' has 'A' twice"));
  REQUIRE(contains(small_refusal({"model.canon.kernel=5"}), "must be from 2 to 4"));
}

TEST_CASE("any subset of ABCD is a canon set, in any order") {
  for (int subset = 0; subset < 16; ++subset) {
    std::string forwards, backwards;
    for (int i = 0; i < 4; ++i) {
      if ((subset >> i & 1) != 0) forwards += "ABCD"[i];
    }
    backwards.assign(forwards.rbegin(), forwards.rend());
    REQUIRE(small_accepted({"model.canon.set=" + backwards}).model.canon.set == forwards);
  }
}

TEST_CASE("a Canon layer has no bias") {
  REQUIRE(contains(small_refusal({"model.canon.set=A", "model.canon.bias=true"}),
                   "model.canon.bias true is not supported"));
  REQUIRE_FALSE(small_accepted({"model.canon.set=A", "model.canon.bias=false"}).model.canon.bias);
}

TEST_CASE("NoPE takes no keys of RoPE") {
  const std::string nope = "model.attention.position.kind=nope";
  const std::string error = small_refusal({nope, "model.attention.position.theta=5e5"});
  REQUIRE(contains(error,
                   "model.attention.position.theta 5e5 has no meaning where "
                   "model.attention.position.kind is nope"));
  REQUIRE(contains(error, "--set model.attention.position.theta=5e5"));
  REQUIRE(contains(error, "NoPE rotates nothing"));
  REQUIRE(contains(small_refusal({nope, "model.attention.position.rope_dim=4"}),
                   "model.attention.position.rope_dim 4 has no"));
  REQUIRE(contains(small_refusal({nope, "model.attention.position.pairing=lingua"}),
                   "model.attention.position.pairing lingua"));
  REQUIRE(
      contains(small_refusal({nope, "model.attention.position.rope_dim=0"}), "must be at least 2"));
  // A default in so many words is no contradiction: a resolved config is a config.
  REQUIRE(small_accepted({nope, "model.attention.position.theta=10000"})
              .model.attention.position.theta == 10000);
}

TEST_CASE("turning a part of a model off takes back how an earlier layer had set it up") {
  const ConfigFixture fixture;
  const ResolvedConfig nope =
      fixture.small("model.attention.position: {theta: 5e5, rope_dim: 4, pairing: lingua}\n",
                    {"model.attention.position.kind=nope"});
  REQUIRE(nope.experiment.model.attention.position.theta == 10000);
  REQUIRE_FALSE(nope.experiment.model.attention.position.rope_dim);
  REQUIRE(nope.experiment.model.attention.position.pairing == model::RopePairing::huggingface);
  const Origin& theta = nope.origins.at("model.attention.position.theta");
  REQUIRE(theta.set_by.derived_from == "model.attention.position.kind");
  REQUIRE(theta.overrode.front().text == "5e5");
  const ResolvedConfig plain =
      fixture.small("model.canon: {set: AC, kernel: 3, residual: false, activation: silu}\n",
                    {"model.canon.set="});
  REQUIRE(plain.experiment.model.canon.kernel == 4);
  REQUIRE(plain.experiment.model.canon.residual);
  REQUIRE(plain.experiment.model.canon.activation == model::Activation::none);
}

TEST_CASE("keys of Canon layers need a Canon layer") {
  const std::string error = small_refusal({"model.canon.kernel=3"});
  REQUIRE(contains(error, "model.canon.kernel 3 has no meaning where model.canon.set is empty"));
  REQUIRE(contains(error, "--set model.canon.kernel=3"));
  REQUIRE(
      contains(small_refusal({"model.canon.residual=false"}), "model.canon.residual false has no"));
  REQUIRE(contains(small_refusal({"model.canon.activation=silu"}),
                   "model.canon.activation silu has no"));
  REQUIRE(small_accepted({"model.canon.set=A", "model.canon.kernel=2"}).model.canon.kernel == 2);
  REQUIRE(contains(small_refusal({"model.canon.set=A", "model.canon.kernel=1"}),
                   "must be from 2 to 4"));
}

TEST_CASE("lingua's settings of the initial weights need lingua's initialisation") {
  REQUIRE(contains(small_refusal({"model.init_base_std=0.02"}),
                   "model.init_base_std 0.02 has no meaning where model.init is forgather"));
  REQUIRE(
      contains(small_refusal({"model.init=huggingface", "model.init_std_factor=dim_ratio"}),
               "model.init_std_factor dim_ratio has no meaning where model.init is huggingface"));
  const ModelConfig model =
      small_accepted(
          {"model.init=lingua", "model.init_base_std=0.02", "model.init_std_factor=current_depth"})
          .model;
  REQUIRE(model.init_base_std == 0.02);
  REQUIRE(model.init_std_factor == model::InitStdFactor::current_depth);
  REQUIRE(
      contains(small_refusal({"model.init=lingua", "model.init_base_std=0"}), "must be above 0"));
  REQUIRE(contains(small_refusal({"model.init_std_factor=depth"}),
                   "disabled, global_depth, current_depth, dim_ratio"));
}

TEST_CASE("a section of a mixer that model.layers does not name is refused at its key") {
  // No second mixer is needed to see it: this one's name is known to the test alone.
  model::BlockKind other = model::attention_block;
  other.name = "other";
  const std::vector<const model::BlockKind*> mixers = {&model::attention_block, &other};
  const auto lay = [](Draft& draft, const std::string& text, const char* layer) {
    const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", text, 1});
    const auto origin = [&](int line, int column) { return make_span(source, line, column); };
    apply_layer(draft, *yaml::parse(text, origin), layer);
  };
  const auto laid = [&](const std::string& text) {
    Draft draft = new_draft();
    lay(draft, text, config_layer);
    return draft;
  };
  Draft both = laid("model: {layers: [other], attention: {num_heads: 4, position: {theta: 5e5}}}");
  const std::string error = tests::error_of([&] { refuse_unused_sections(both, mixers); });
  INFO(error);
  REQUIRE(contains(error, "c.yaml:1:"));
  REQUIRE(contains(
      error, "model.attention.num_heads 4 has no meaning where model.layers has no attention"));
  REQUIRE(contains(error, "leave the section out, or name attention in model.layers"));

  Draft used = laid("model: {layers: [attention, other], attention: {num_heads: 4}}");
  refuse_unused_sections(used, mixers);
  REQUIRE(used.experiment.model.attention.num_heads == 4);

  // Who chooses other layers later need not take the section back.
  Draft later = laid("model: {attention: {num_heads: 4, position: {theta: 5e5}}}");
  lay(later, "model: {layers: [other]}", command_line_layer);
  refuse_unused_sections(later, mixers);
  REQUIRE(later.experiment.model.attention.num_heads == 0);
  REQUIRE(later.experiment.model.attention.position.theta == 10000);
  REQUIRE(later.origins.at("model.attention.num_heads").set_by.derived_from == "model.layers");
}

TEST_CASE("every option of the architecture is a key with these values") {
  const ModelConfig model = small_accepted({"model.attention.num_heads=8",
                                            "model.attention.num_kv_heads=2",
                                            "model.attention.head_dim=16",
                                            "model.attention.position.theta=1e5",
                                            "model.attention.position.rope_dim=4",
                                            "model.attention.position.pairing=lingua",
                                            "model.attention.qk_norm=per_head",
                                            "model.canon.set=CA",
                                            "model.canon.residual=false",
                                            "model.canon.activation=silu",
                                            "model.norm.eps=1e-6",
                                            "model.norm.rounding=lingua",
                                            "model.tie_embeddings=true"})
                                .model;
  REQUIRE(model.attention.num_heads == 8);
  REQUIRE(model.attention.num_kv_heads == 2);
  REQUIRE(model.attention.head_dim == 16);
  REQUIRE(model.attention.position.theta == 1e5);
  REQUIRE(model.attention.position.rope_dim == 4);
  REQUIRE(model.attention.position.pairing == model::RopePairing::lingua);
  REQUIRE(model.attention.qk_norm == model::QkNorm::per_head);
  REQUIRE(model.canon.set == "AC");
  REQUIRE_FALSE(model.canon.residual);
  REQUIRE(model.canon.activation == model::Activation::silu);
  REQUIRE(model.norm.eps == 1e-6);
  REQUIRE(model.norm.rounding == model::NormRounding::lingua);
  REQUIRE(model.tie_embeddings);
  REQUIRE(
      contains(small_refusal({"model.norm.rounding=torch"}), "must be one of huggingface, lingua"));
  REQUIRE(contains(small_refusal({"model.attention.qk_norm=head"}),
                   "must be one of none, full, per_head"));
  REQUIRE(contains(small_refusal({"model.norm.eps=0"}), "must be above 0"));
}

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
  REQUIRE(contains(small_refusal({"model.layers=[atention]"}), "is no kind of mixer"));
  REQUIRE(contains(small_refusal({"model.layers=[atention]"}), "did you mean 'attention'?"));
  REQUIRE(
      contains(small_refusal({"data.source=stories"}), "must be one of toy_stories, text, jsonl"));
  REQUIRE(contains(small_refusal({"tokenizer.kind=x"}), "must be one of byte_level_bpe"));
  REQUIRE(contains(small_refusal({"optimizer.type=adam"}), "must be one of adamw, muon, lion"));
  REQUIRE(contains(small_refusal({"optimizer.type=adam"}), "did you mean 'adamw'?"));
  REQUIRE(contains(small_refusal({"schedule.type=step"}),
                   "infinite_lr, cosine, linear, inv_sqrt, wsd"));
  REQUIRE(contains(small_refusal({"train.precision=float16"}), "float32, float64, bfloat16"));
  REQUIRE(contains(small_refusal({"model.attention.position.kind=alibi"}),
                   "must be one of rope, nope"));
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
                          "model.attention.num_heads"}) {
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

TEST_CASE("a step's rows divide into a power of two of equal slots") {
  const auto with_slots = [](int slots, int rows) {
    return std::vector<std::string>{"train.gradient_slots=" + std::to_string(slots),
                                    "train.batch_size=" + std::to_string(rows)};
  };
  REQUIRE(small_accepted(with_slots(4, 12)).train.gradient_slots == 4);
  REQUIRE(contains(small_refusal(with_slots(3, 12)), "train.gradient_slots 3 is no power of two"));
  REQUIRE(contains(small_refusal(with_slots(8, 12)),
                   "train.gradient_slots 8 does not divide train.batch_size 12"));
  REQUIRE(contains(small_refusal({"train.gradient_slots=0"}), "must be from 1"));
}

TEST_CASE("a batch size of a later layer takes as many of the slots as divide it") {
  const std::string config = "train: {batch_size: 64, gradient_slots: 32, max_steps: 10}\n";
  const ConfigFixture fixture;
  const std::string text = std::string(tests::small_config);
  const std::string own = text.substr(0, text.find("train:")) + config;
  REQUIRE(fixture.resolve(own, {"train.batch_size=24"}).experiment.train.gradient_slots == 8);
  REQUIRE(fixture.resolve(own, {"train.batch_size=96"}).experiment.train.gradient_slots == 32);
  REQUIRE(fixture.resolve(own, {"train.batch_size=7"}).experiment.train.gradient_slots == 1);
  REQUIRE(contains(fixture.error(own, {"train.gradient_slots=5"}), "is no power of two"));
}

TEST_CASE("every process has a slot") {
  const auto error = small_refusal({"train.gradient_slots=2", "parallel.processes=4"});
  REQUIRE(contains(error, "parallel.processes 4 is more than train.gradient_slots 2"));
  REQUIRE(contains(error, "train.gradient_slots: 4 is the least"));
  REQUIRE(contains(
      small_refusal({"train.batch_size=8", "train.gradient_slots=4", "parallel.processes=3"}),
      "parallel.processes 3 is no power of two"));
  REQUIRE(contains(small_refusal({"parallel.processes=0"}), "must be from 1"));
  REQUIRE(contains(small_refusal({"parallel.processes=some"}), "must be an integer or auto"));
  REQUIRE(small_accepted({"train.batch_size=8", "train.gradient_slots=4", "parallel.processes=2"})
              .parallel.processes.count == 2);
  REQUIRE(small_accepted({"parallel.processes=auto"}).parallel.processes.is_auto());
}

TEST_CASE("keys of several processes are in the JSON only where they are set") {
  const nlohmann::json plain = to_json(
      small_accepted({"train.gradient_slots=1", "parallel.processes=1", "train.recompute=none"}));
  REQUIRE(plain == to_json(small_accepted({})));
  REQUIRE_FALSE(plain.contains("parallel"));
  REQUIRE_FALSE(plain["train"].contains("gradient_slots"));
  REQUIRE_FALSE(plain["train"].contains("recompute"));
  const Experiment set = small_accepted({"train.batch_size=8",
                                         "train.gradient_slots=4",
                                         "parallel.processes=auto",
                                         "train.recompute=blocks"});
  const nlohmann::json json = to_json(set);
  REQUIRE(json["train"]["gradient_slots"] == 4);
  REQUIRE(json["train"]["recompute"] == "blocks");
  REQUIRE(json["parallel"] == nlohmann::json{{"processes", "auto"}, {"timeout_seconds", 600.0}});
  const Experiment back = experiment_from_json(json);
  REQUIRE(to_json(back) == json);
  REQUIRE(back.parallel.processes.is_auto());
}

TEST_CASE("keys that the schedule does not read are refused, but for inherited ones") {
  CHECK(contains(small_refusal({"schedule.type=cosine", "schedule.min_lr=1e-5"}),
                 "schedule.min_lr 1e-5 has no meaning where schedule.type is cosine"));
  CHECK(contains(small_refusal({"schedule.lr_min_ratio=0.2"}), "schedule.type is infinite_lr"));
  CHECK(
      small_accepted({"schedule.type=cosine", "schedule.lr_min_ratio=0.2"}).schedule.lr_min_ratio ==
      0.2);
  const ConfigFixture fixture;
  const std::string base = "schedule: {constant_lr: 1e-4, cooldown_steps: 2}\n";
  CHECK(fixture.small(base, {"schedule.type=linear"}).experiment.schedule.type == "linear");
  CHECK(contains(fixture.small_error(base + "schedule.type: linear\n"), "constant_lr"));
}

TEST_CASE("weights in a template are a folder's or those of a run by its whole id") {
  const ConfigFixture fixture;
  const auto obstacle = [&](const std::string& name) {
    const auto resolved = fixture.small("train.initial_weights: " + name + "\n");
    return resolved.obstacles.empty() ? "" : resolved.obstacles[0].message();
  };
  CHECK(obstacle("base-0c6e1819fccd").empty());
  CHECK(obstacle("base-0c6e1819fccd-2").empty());
  CHECK(contains(obstacle("base"), "no folder "));
  const auto typed = [&] { return fixture.small_error("", {"train.initial_weights=base"}); };
  CHECK(typed().empty());
  std::filesystem::create_symlink("nowhere", fixture.files.folder / "base");
  CHECK(contains(typed(), "no model in "));
}

TEST_CASE("a typed key of a mixer that a template has replaced is refused") {
  const ConfigFixture fixture;
  std::string base = tests::small_config;
  base.replace(base.find("num_layers: 2"), 13, "num_layers: 2, layers: [attention]");
  fixture.files.folder.write("projects/p/templates/base.yaml",
                             base + "{% block more %}{% endblock %}\n");
  const std::string gla =
      "{% extends 'base.yaml' %}{% block more %}\nmodel.layers: [gla5]\n"
      "model.gla5.num_heads: 2\n{% endblock %}\n";
  CHECK(fixture.resolve(gla).experiment.model.layers.at(0).mixer == "gla5");
  CHECK(contains(fixture.error(gla, {"model.attention.window=16"}),
                 "has no meaning where model.layers has no attention"));
  CHECK(fixture.resolve(gla, {"model.gla5.num_heads=4"}).trains);
}

}  // namespace
}  // namespace forge::config
