// Elements of model.layers with settings of their own, and sections of mixers that a model does not
// have.

#include "core/model/cost.h"
#include "core/model/kinds.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

model::ModelConfig model_with(const std::string& layers) {
  return ConfigFixture().small("model.layers: " + layers + "\n").experiment.model;
}

TEST_CASE("settings of a layer are laid upon the model for that layer alone") {
  const model::ModelConfig model = model_with(
      "[attention, {mixer: attention, attention: {window: 3, num_heads: 2}, canon: {set: CA}, "
      "mlp: {intermediate_size: 32}}]");
  const model::ModelConfig &first = model.of_layer(0), &second = model.of_layer(1);
  CHECK(&first == &model);
  CHECK_FALSE(first.attention.window);
  CHECK(first.attention.head_dim == 16);
  CHECK(first.canon.set.empty());
  CHECK(second.attention.window == 3);
  // What follows from a layer's keys follows anew.
  CHECK(second.attention.num_kv_heads == 2);
  CHECK(second.attention.head_dim == 32);
  CHECK(second.canon.set == "AC");
  CHECK(second.mlp.intermediate_size == 32);
  CHECK(second.hidden_size == 64);
  // The list is repeated.
  CHECK(&model.of_layer(2) == &model);
  CHECK(model.of_layer(3).attention.window == 3);
}

TEST_CASE("a layer's settings are in the JSON as far as they differ, and come back") {
  const auto resolved = ConfigFixture().small(
      "model.layers: [attention, {mixer: attention, attention: {num_heads: 2, qk_norm: none}}, "
      "{mixer: attention, mlp: {kind: swiglu}}]\nmodel.num_layers: 3\n");
  CHECK(resolved.json["model"]["layers"] == json::parse(R"(["attention",
      {"mixer": "attention", "attention": {"head_dim": 32, "num_heads": 2, "num_kv_heads": 2}},
      "attention"])"));
  const config::Experiment back = config::experiment_from_json(resolved.json);
  CHECK(config::to_json(back) == resolved.json);
  CHECK(back.model.of_layer(1).attention.head_dim == 32);
  CHECK(model::parameter_count(back.model) == model::parameter_count(resolved.experiment.model));
}

TEST_CASE("a layer takes back what the model has set") {
  const model::ModelConfig model =
      ConfigFixture()
          .small(
              "model.attention.window: 5\nmodel.canon: {set: AB, kernel: 3}\n"
              "model.layers: [attention, {mixer: attention, attention: {window: null}, "
              "canon: {set: ''}}]\n")
          .experiment.model;
  CHECK(model.of_layer(0).attention.window == 5);
  CHECK_FALSE(model.of_layer(1).attention.window);
  CHECK(model.of_layer(1).canon.set.empty());
  CHECK(model.of_layer(1).canon.kernel == 4);
  const config::Experiment back = [&] {
    config::Experiment experiment;
    experiment.model = model;
    return config::experiment_from_json(config::to_json(experiment));
  }();
  CHECK_FALSE(back.model.of_layer(1).attention.window);
}

TEST_CASE("each block of a hybrid uses the Canon letters that it has") {
  const model::ModelConfig model =
      ConfigFixture()
          .small(
              "model.canon.set: DBbA\nmodel.gdn2.num_heads: 4\n"
              "model.layers: [gdn2, {mixer: attention, attention: {window: 2}}]\n")
          .experiment.model;
  CHECK(model.canon.set == "AbBD");
  CHECK(model.of_layer(1).canon.set == "AbBD");
  const model::ParameterCounts counts = model::count_parameters(model);
  CHECK(counts.of("canon_a") == 2 * 4 * 64);
  CHECK(counts.of("canon_b") == 4 * 4 * 64 + 4 * 3 * 64);
  CHECK(counts.of("short_conv") == 4 * 4 * 64);
}

TEST_CASE("a list of more layers than the model has is refused, whatever set which") {
  const ConfigFixture fixture;
  const std::string hybrid = "model.gdn2.num_heads: 4\nmodel.layers: [gdn2, attention]\n";
  CHECK(fixture.small(hybrid).trains);
  CHECK(tests::contains(fixture.small_error(hybrid, {"model.num_layers=1"}),
                        "model.layers names 2 layers, and the model has 1"));
}

TEST_CASE("an element of model.layers without a mixer is refused at its place") {
  const std::string error =
      ConfigFixture().small_error("model.layers: [attention, {attention: {window: 3}}]\n");
  CHECK(error.find("'model.layers[1]' names no mixer") != std::string::npos);
  CHECK(ConfigFixture()
            .small_error("model.layers: [{mixer: attention, atention: {}}]\n")
            .find("did you mean 'attention'?") != std::string::npos);
}

TEST_CASE("a resolved config has the sections of the mixers that its model has") {
  const json llama = ConfigFixture().small("").json["model"];
  CHECK(llama.contains("attention"));
  for (const char* kind : {"gla5", "gdn2", "mamba2"}) CHECK_FALSE(llama.contains(kind));
  const json gdn2 =
      ConfigFixture().small("", {"model.layers=[gdn2]", "model.gdn2.num_heads=4"}).json["model"];
  CHECK(gdn2.contains("gdn2"));
  for (const char* kind : {"attention", "gla5", "mamba2"}) CHECK_FALSE(gdn2.contains(kind));
  CHECK(gdn2["gdn2"]["output_gate_rank"] == 16);
}

}  // namespace
}  // namespace forge::tests
