// Every variant of a model in core: its costs, counted by hand, and its way through files.

#include "core/huggingface/model_config.h"
#include "core/model/cost.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model_variants.h"

namespace forge::tests {
namespace {

nlohmann::json tree_of(const model::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment).at("model");
}

TEST_CASE("every variant of a model costs what was counted by hand") {
  for (const ModelVariant& variant : all_variants()) {
    INFO(variant.change);
    const model::ModelConfig model = model_of(variant.change);
    REQUIRE(model::parameter_count(model) == variant.parameters);
    const model::TokenFlops flops = model::flops_per_token(model, 8);
    double mixing = 0;
    for (const auto& [kind, operations] : flops.mixing) mixing += operations;
    REQUIRE(mixing == variant.mixing_flops);
    const model::StateSize state = model::generation_state(model);
    REQUIRE(state.per_token == variant.state_per_token);
    REQUIRE(state.fixed == variant.fixed_state);
  }
}

TEST_CASE("every variant of a model comes back from config.json and from Hugging Face's") {
  for (const ModelVariant& variant : all_variants()) {
    INFO(variant.change);
    const model::ModelConfig model = model_of(variant.change);
    config::Experiment experiment;
    experiment.model = model;
    const config::Experiment read = config::experiment_from_json(config::to_json(experiment));
    REQUIRE(tree_of(read.model) == tree_of(model));
    const huggingface::WrittenConfig written =
        huggingface::write_config(model, {512, "float32", 0, 2, 1});
    INFO(written.json.dump(1));
    nlohmann::json imported = tree_of(huggingface::read_config(nlohmann::json(written.json)).model);
    imported["init"] = tree_of(model).at("init");  // is no part of it
    REQUIRE(imported == tree_of(model));
  }
}

TEST_CASE("settings that make no model are refused at their place with the reason") {
  for (const RefusedSettings& refused : refused_settings()) {
    const std::string error = small_refusal(refused.settings);
    INFO(error);
    CHECK(contains(error, refused.message));
    CHECK(contains(error, "--set " + refused.settings.back()));
    // A range says what may be; what disagrees needs a hint.
    CHECK((contains(error, "must be from") || contains(error, "hint: ")));
  }
}

}  // namespace
}  // namespace forge::tests
