// Which optimizers there are, which keys each reads, and what becomes of keys that it does not.

#include "core/config/optimizer.h"

#include "core/model/cost.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;
using tests::small_accepted;
using tests::small_refusal;

nlohmann::json section(std::vector<std::string> overrides) {
  return ConfigFixture().small("", std::move(overrides)).json.at("optimizer");
}

TEST_CASE("a config with AdamW says what it always said") {
  const nlohmann::json before = {{"type", "adamw"},
                                 {"lr", 1e-3},
                                 {"betas", {0.9, 0.999}},
                                 {"eps", 1e-8},
                                 {"weight_decay", 0.01}};
  CHECK(section({}) == before);
  CHECK(section({"optimizer.type=adamw"}) == before);
}

TEST_CASE("the section of an optimizer is there where the optimizer is") {
  const nlohmann::json muon = section({"optimizer.type=muon", "optimizer.muon.adamw_lr=3e-4"});
  CHECK(muon.at("muon").at("adjust_lr") == "match_rms_adamw");
  CHECK(muon.at("muon").at("adamw_lr") == 3e-4);
  CHECK(muon.at("muon").at("momentum") == 0.95);
  CHECK_FALSE(muon.contains("lion"));
  CHECK(section({"optimizer.type=lion"}).at("lion").at("betas") == std::vector<double>{0.9, 0.99});
  CHECK(section({"optimizer.type=sgd"}).at("sgd").at("momentum") == 0.9);
  CHECK(section({"optimizer.weight_decay_of.norms=0"}).at("weight_decay_of") ==
        nlohmann::json{{"norms", 0.0}});
}

TEST_CASE("configs of all optimizers are read back as they were written") {
  for (const std::string& type : optimizer_types()) {
    const Experiment experiment = small_accepted(
        {"optimizer.type=" + type, "optimizer.weight_decay_of={norms: 0, canon: 0.5}"});
    const nlohmann::json json = to_json(experiment);
    CHECK(to_json(experiment_from_json(json)) == json);
  }
}

TEST_CASE("weight decay of a group replaces that of all") {
  const OptimizerConfig o =
      small_accepted({"optimizer.weight_decay=0.3",
                      "optimizer.weight_decay_of={norms: 0, embeddings: 0.1, vectors: null}"})
          .optimizer;
  CHECK(o.weight_decay_for(WeightGroup::norms) == 0);
  CHECK(o.weight_decay_for(WeightGroup::embeddings) == 0.1);
  CHECK(o.weight_decay_for(WeightGroup::vectors) == 0.3);
  CHECK(o.weight_decay_for(WeightGroup::matrices) == 0.3);
  CHECK(contains(small_refusal({"optimizer.weight_decay_of.norm=0"}),
                 "did you mean 'optimizer.weight_decay_of.norms'"));
  CHECK(contains(small_refusal({"optimizer.weight_decay_of.norms=-1"}), "must be at least 0"));
}

TEST_CASE("one number that is spelt in several ways is one setting") {
  const std::vector<std::vector<std::string>> spellings = {
      {"0", "0.0", "-0.0", "-0", "-0e1"}, {"1", "1.0", "1e0"}, {"0.001", "1e-3", "1.0e-3"}};
  for (const std::vector<std::string>& spelt : spellings) {
    for (const std::string& number : spelt) {
      CAPTURE(number);
      CHECK(section({"optimizer.weight_decay=" + number}).dump() ==
            section({"optimizer.weight_decay=" + spelt[0]}).dump());
    }
  }
}

TEST_CASE("tied embeddings have no head with a decay of its own") {
  CHECK(contains(
      small_refusal({"model.tie_embeddings=true", "optimizer.weight_decay_of.head=0"}),
      "optimizer.weight_decay_of.head 0 has no meaning where model.tie_embeddings is true"));
  CHECK(small_accepted({"optimizer.weight_decay_of.head=0"}).optimizer.weight_decay_of.head == 0.0);
}

TEST_CASE("lists of betas are two numbers below one, and momentum is below one") {
  CHECK(contains(small_refusal({"optimizer.betas=[0.9]"}), "must be two numbers, not 1"));
  CHECK(contains(small_refusal({"optimizer.betas=[0.9, 1]"}), "must be below 1"));
  CHECK(contains(small_refusal({"optimizer.betas=[0.9, -0.1]"}),
                 "'optimizer.betas[1]' must be from 0"));
  CHECK(contains(small_refusal({"optimizer.betas=0.9"}), "must be a list"));
  CHECK(contains(small_refusal({"optimizer.type=lion", "optimizer.lion.betas=[0.9]"}),
                 "'optimizer.lion.betas' must be two numbers, not 1"));
  CHECK(contains(small_refusal({"optimizer.type=muon", "optimizer.muon.momentum=1"}),
                 "'optimizer.muon.momentum' must be below 1"));
  CHECK(contains(small_refusal({"optimizer.type=sgd", "optimizer.sgd.momentum=1"}),
                 "'optimizer.sgd.momentum' must be below 1"));
}

TEST_CASE("settings of Muon and SGD that mean nothing are refused") {
  CHECK(contains(
      small_refusal({"optimizer.type=muon", "optimizer.muon.newton_schulz_coefficients=[1, 2]"}),
      "must be three numbers, not 2"));
  CHECK(contains(small_refusal({"optimizer.type=muon",
                                "optimizer.muon.newton_schulz_coefficients=[1e308, -5, 2]"}),
                 "must lie between -1000 and 1000, not 1e+308"));
  CHECK(contains(small_refusal({"optimizer.type=muon", "optimizer.muon.newton_schulz_steps=0"}),
                 "must be from 1 to 32"));
  CHECK(contains(small_refusal({"optimizer.type=muon", "optimizer.muon.adjust_lr=orig"}),
                 "did you mean 'original'?"));
  CHECK(contains(
      small_refusal({"optimizer.type=muon", "optimizer.lr=0", "optimizer.muon.adamw_lr=1e-3"}),
      "optimizer.muon.adamw_lr has no meaning where optimizer.lr is 0"));
  CHECK(contains(
      small_refusal(
          {"optimizer.type=sgd", "optimizer.sgd.momentum=0", "optimizer.sgd.nesterov=true"}),
      "optimizer.sgd.nesterov true has no meaning without optimizer.sgd.momentum"));
}

TEST_CASE("a key that the optimizer does not read is refused at its place") {
  const std::string betas = small_refusal({"optimizer.type=lion", "optimizer.betas=[0.9, 0.98]"});
  CHECK(contains(betas,
                 "optimizer.betas [0.9, 0.98] has no meaning where optimizer.type is lion: it is a "
                 "key of adamw and muon"));
  CHECK(contains(betas, "hint: that of lion is optimizer.lion.betas"));
  CHECK(contains(betas, "--set optimizer.betas=[0.9, 0.98]"));
  CHECK(contains(small_refusal({"optimizer.type=sgd", "optimizer.eps=1e-6"}), "leave it out"));
  CHECK(contains(small_refusal({"optimizer.muon.momentum=0.9"}),
                 "optimizer.muon.momentum 0.9 has no meaning where optimizer.type is adamw: it is "
                 "a key of muon"));
  CHECK(contains(ConfigFixture().small_error("optimizer: {type: sgd, betas: [0.8, 0.9]}\n"),
                 "c.yaml:8:31: error: optimizer.betas"));
  CHECK(contains(small_refusal({"optimizer.momentum=0.9"}),
                 "did you mean 'optimizer.muon.momentum' or 'optimizer.sgd.momentum'?"));
}

TEST_CASE("whoever chooses another optimizer later need not take keys back") {
  const ResolvedConfig resolved =
      ConfigFixture().small("optimizer: {betas: [0.8, 0.9], eps: 1e-6}\n", {"optimizer.type=lion"});
  CHECK(resolved.experiment.optimizer.betas == std::vector<double>{0.9, 0.999});
  CHECK(resolved.experiment.optimizer.eps == 1e-8);
  CHECK(resolved.origins.at("optimizer.betas").set_by.derived_from == "optimizer.type");
}

const char* const adamw_base =
    "[optimizer]\noptimizer: {type: adamw, betas: [0.8, 0.9], weight_decay: 0.2}\n";
const char* const plain_base = "[optimizer]\noptimizer: {betas: [0.8, 0.9]}\n";

/// The small config in a template, and a config that extends it and says more.
ResolvedConfig extended(const std::string& base, const std::string& more) {
  const ConfigFixture fixture;
  std::string text = "-- block whole\n" + std::string(tests::small_config) + base.substr(12) +
                     "-- endblock whole\n-- block more\n-- endblock more\n";
  fixture.files.add_config("p", "base", text);
  return fixture.resolve("-- extends 'configs/base.yaml'\n-- block more\n" + more +
                         "-- endblock more\n");
}

TEST_CASE("what a config inherits from a template with another optimizer is reset") {
  for (const char* base : {adamw_base, plain_base}) {
    INFO(base);
    const ResolvedConfig lion = extended(base, "optimizer.type: lion\noptimizer.lr: 1e-4\n");
    CHECK(lion.experiment.optimizer.betas == std::vector<double>{0.9, 0.999});
    CHECK(lion.origins.at("optimizer.betas").set_by.derived_from == "optimizer.type");
    const ResolvedConfig muon = extended(base, "optimizer.type: muon\n");
    CHECK(muon.experiment.optimizer.betas == std::vector<double>{0.8, 0.9});
  }
  CHECK(extended(adamw_base, "optimizer.type: sgd\n").experiment.optimizer.weight_decay == 0.2);
  const std::string error = tests::error_of(
      [] { extended(adamw_base, "optimizer.type: lion\noptimizer.betas: [0.7, 0.9]\n"); });
  CHECK(contains(error, "optimizer.betas [0.7, 0.9] has no meaning"));
}

TEST_CASE("each optimizer keeps its moments, in the bytes of the memory") {
  const model::ModelConfig model = small_accepted({}).model;
  const auto bytes = [&](std::vector<std::string> overrides) {
    const Experiment experiment = small_accepted(std::move(overrides));
    return model::training_bytes(experiment.model, experiment.training_shape()).optimizer;
  };
  int64_t matrices = 0, all = 0;
  for (const model::Parameter& parameter : model::parameters(model)) {
    all += 4 * parameter.count();
    const bool is_hidden =
        parameter.is_matrix && parameter.name.find("layers") != std::string::npos;
    matrices += is_hidden ? 4 * parameter.count() : 0;
  }
  CHECK(bytes({}) == 2 * all);
  CHECK(bytes({"optimizer.type=muon"}) == 2 * all - matrices);
  CHECK(bytes({"optimizer.type=lion"}) == all);
  CHECK(bytes({"optimizer.type=sgd"}) == all);
  CHECK(bytes({"optimizer.type=sgd", "optimizer.sgd.momentum=0"}) == 0);
  const Experiment muon = small_accepted({"optimizer.type=muon"});
  CHECK(model::checkpoint_bytes(model, muon.training_shape()) == 3 * all - matrices);
}

TEST_CASE("only what AdamW updates beside Muon has another rate") {
  const OptimizerConfig o =
      small_accepted({"optimizer.type=muon", "optimizer.lr=0.02", "optimizer.muon.adamw_lr=0.01"})
          .optimizer;
  CHECK(o.lr_factor(WeightGroup::matrices) == 1);
  CHECK(o.lr_factor(WeightGroup::head) == 0.5);
  CHECK(o.lr_factor(WeightGroup::norms) == 0.5);
  CHECK(small_accepted({"optimizer.type=muon"}).optimizer.lr_factor(WeightGroup::norms) == 1);
}

}  // namespace
}  // namespace forge::config
