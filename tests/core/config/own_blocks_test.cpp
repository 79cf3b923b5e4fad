#include "core/config/own_blocks.h"

#include <nlohmann/json.hpp>

#include <cmath>

#include "core/base/text.h"
#include "core/config/explain.h"
#include "core/config/leaves.h"
#include "core/model/cost.h"
#include "core/model/kinds.h"
#include "core/project/names.h"
#include "core/run/identity.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

using namespace tests;
namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A workspace with one project of one config, and a declared backend of the name pytorch.
struct BlockProject {
  explicit BlockProject(const std::string& text) {
    folder.write("forge_workspace/base_directories.yaml", "");
    folder.write("backends/pytorch/backend.yaml", "command: [worker]\n");
    folder.write("p/blocks/my_mixer.py", "class MyMixer: 1\n");
    folder.write("p/meta.yaml",
                 "name: P\nsearchdir: [" + (folder / "p/templates").string() + "]\n");
    folder.write("p/templates/configs/c.yaml",
                 "model:\n  vocab_size: 300\n  hidden_size: 16\n  num_layers: 2\n"
                 "  mlp: {intermediate_size: 32}\ntokenizer: {vocab_size: 300}\n"
                 "train: {max_steps: 4}\n" +
                     text);
  }
  ResolvedConfig resolved(const std::vector<std::string>& overrides = {},
                          const std::shared_ptr<BlockTexts>& texts = {}) const {
    ResolveOptions options;
    options.block_texts = texts;
    options.overrides = overrides;
    options.host_environment.working_directory = folder.path().string();
    const auto workspace = project::find_workspace(folder.path());
    return resolve(
        project::load_project(*workspace, folder / "p", options.host_environment), "c", options);
  }
  std::string error(const std::vector<std::string>& overrides = {}) const {
    return error_of([&] {
      const ResolvedConfig config = resolved(overrides);
      require_no_obstacles(config);
    });
  }
  TemporaryFolder folder;
};

const std::string with_my_mixer = "model.layers: [my_mixer]\nmodel.blocks.my_mixer.width: 8\n";

Json described_mixer(const std::string& init = R"({"role": "mixer_output"})") {
  return {{"module", "my_mixer"},
          {"weights",
           {{{"name", "out.weight"}, {"shape", {16, 8}}, {"init", Json::parse(init)}},
            {{"name", "shift"}, {"shape", {8}}, {"init", {{"kind", "module"}}}}}},
          {"flops", {{"fixed", 100.0}, {"per_length", 2.0}, {"declared", false}}},
          {"saved", 24.0}};
}

TEST_CASE("a file of the project is a mixer, its text a part of the config", "[own_blocks]") {
  const BlockProject place(with_my_mixer);
  const ResolvedConfig resolved = place.resolved();
  const model::OwnBlock& block = resolved.experiment.model.blocks.at("my_mixer");
  CHECK(block.source == "class MyMixer: 1\n");
  CHECK(block.file == (place.folder / "p/blocks/my_mixer.py").string());
  CHECK(block.settings.at("width").text == "8");
  CHECK(resolved.json["model"]["blocks"]["my_mixer"]["width"] == 8);
  CHECK(to_json(experiment_from_json(resolved.json)) == resolved.json);
  // Nobody asked for another backend.
  CHECK(resolved.experiment.backend == "pytorch");
  CHECK(resolved.origins.at("backend").set_by.derived_from == "model.layers");
}

TEST_CASE("the project's file of a block comes before the workspace's", "[own_blocks]") {
  const BlockProject place("model.layers: [shared, my_mixer]\n");
  place.folder.write("blocks/shared.py", "far\n");
  place.folder.write("blocks/my_mixer.py", "far\n");
  const auto blocks = place.resolved().experiment.model.blocks;
  CHECK(blocks.at("shared").source == "far\n");
  CHECK(blocks.at("my_mixer").source == "class MyMixer: 1\n");
}

TEST_CASE("configs of one command have one text of a block that is edited meanwhile",
          "[own_blocks]") {
  const BlockProject place(with_my_mixer);
  const auto texts = std::make_shared<BlockTexts>();
  const auto source_with = [&](const std::shared_ptr<BlockTexts>& known) {
    return place.resolved({}, known).experiment.model.blocks.at("my_mixer").source;
  };
  CHECK(source_with(texts) == "class MyMixer: 1\n");
  place.folder.write("p/blocks/my_mixer.py", "class MyMixer: 2\n");
  CHECK(source_with(texts) == "class MyMixer: 1\n");
  CHECK(source_with(std::make_shared<BlockTexts>()) == "class MyMixer: 2\n");
  CHECK(source_with(nullptr) == "class MyMixer: 2\n");
}

TEST_CASE("settings of a block are values of any type, and the command line changes them",
          "[own_blocks]") {
  const BlockProject place(
      with_my_mixer +
      "model.blocks.my_mixer.sizes: [1, 2.5, a]\nmodel.blocks.my_mixer.gate: true\n"
      "model.blocks.my_mixer.rate: 1e-3\nmodel.blocks.my_mixer.kind: none\n");
  const Json block = place.resolved({"model.blocks.my_mixer.width=12"}).json["model"]["blocks"];
  CHECK(block["my_mixer"]["sizes"] == Json::parse(R"([1, 2.5, "a"])"));
  CHECK(block["my_mixer"]["gate"] == true);
  CHECK(block["my_mixer"]["rate"] == 1e-3);
  CHECK(block["my_mixer"]["kind"] == "none");
  CHECK(block["my_mixer"]["width"] == 12);
  CHECK(contains(place.error({"model.blocks.my_mixer.width={a: 1}"}), "a number, a text"));
  CHECK(contains(place.error({"model.blocks.my_mixer.source=x"}), "forge fills it in"));
}

TEST_CASE("libtorch is refused where somebody asks for it", "[own_blocks]") {
  const BlockProject place("backend: libtorch\n" +
                           with_my_mixer);  // as a template of forge's has it
  CHECK(place.resolved().experiment.backend == "pytorch");
  CHECK(contains(place.error({"backend=libtorch"}),
                 "backend libtorch cannot compute 'my_mixer', a block in Python"));
}

TEST_CASE("what is wrong with a block is said at its place", "[own_blocks]") {
  CHECK(contains(BlockProject("model.layers: [my_mixr]\n").error(), "which is no kind of mixer"));
  CHECK(contains(BlockProject("model.layers: [other]\nmodel.blocks.other.a: 1\n").error(),
                 "no file"));
  CHECK(contains(BlockProject("model.layers: [attention]\nmodel.attention.num_heads: 2\n"
                              "model.blocks.my_mixer.width: 8\n")
                     .error(),
                 "has no meaning where no layer has the block my_mixer"));
  CHECK(contains(BlockProject(with_my_mixer + "model.blocks.my_mixer.at: B\n").error(),
                 "is none of A, C and AC"));
  CHECK(contains(BlockProject("model.layers: [attention]\nmodel.attention.num_heads: 2\n"
                              "model.mlp.kind: swigul\n")
                     .error(),
                 "did you mean 'swiglu'"));
  const BlockProject bytes(with_my_mixer);
  bytes.folder.write("p/blocks/my_mixer.py", "\xff\n");
  CHECK(contains(bytes.error(), "is no text of UTF-8"));
  bytes.folder.write("p/blocks/my_mixer.py", "a = 1\r\n# a comment \rimport os\n");
  CHECK(contains(bytes.error(), "my_mixer.py:2: a carriage return without a line feed"));
}

TEST_CASE("another file that names mixers anew drops a template's settings of the old ones",
          "[own_blocks]") {
  const BlockProject place("");
  place.folder.write("p/templates/part.yaml",
                     "model:\n  vocab_size: 300\n  hidden_size: 16\n  num_layers: 2\n"
                     "  layers: [attention]\n  attention: {num_heads: 2}\n"
                     "  mlp: {intermediate_size: 32}\n\n");
  place.folder.write("p/templates/configs/c.yaml",
                     "-- include 'part.yaml'\ntokenizer: {vocab_size: 300}\n"
                     "train: {max_steps: 4}\n" +
                         with_my_mixer);
  const ResolvedConfig resolved = place.resolved();
  CHECK(resolved.experiment.model.attention.num_heads == 0);
  CHECK(resolved.origins.at("model.attention.num_heads").set_by.derived_from == "model.layers");
  // In one file the two contradict each other.
  CHECK(contains(BlockProject("model.attention.num_heads: 2\n" + with_my_mixer).error(),
                 "has no meaning"));
}

TEST_CASE("the identity has the hash of a block's text and its settings, and no place",
          "[own_blocks]") {
  const BlockProject place(with_my_mixer), other(with_my_mixer);
  ResolvedConfig resolved = place.resolved();
  const Json undescribed = run::identity_config(resolved.json);
  CHECK(undescribed == run::identity_config(other.resolved().json));
  set_descriptions(resolved, {{"my_mixer", described_mixer()}});
  CHECK(run::identity_config(resolved.json) == undescribed);
  CHECK(undescribed["model"]["blocks"]["my_mixer"].size() == 3);  // at, source, width
  CHECK(undescribed["model"]["blocks"]["my_mixer"]["source"] != "class MyMixer: 1\n");
  other.folder.write("p/blocks/my_mixer.py", "class MyMixer: 2\n");
  const auto found =
      run::config_differences(undescribed, run::identity_config(other.resolved().json));
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "model.blocks.my_mixer.source");
  CHECK(run::identity_config(place.resolved({"model.blocks.my_mixer.width=9"}).json) !=
        undescribed);
}

TEST_CASE("people are shown a hash and a size for the text of a block", "[own_blocks]") {
  ResolvedConfig resolved = BlockProject(with_my_mixer).resolved();
  set_descriptions(resolved, {{"my_mixer", described_mixer()}});
  for (const Leaf& leaf : leaves_of(resolved)) {
    CHECK(leaf.path != "model.blocks.my_mixer.described");
    if (leaf.path == "model.blocks.my_mixer.source")
      CHECK(starts_with(leaf.value.get<std::string>(), "1 line, "));
  }
  CHECK(explain(resolved, "model.blocks.my_mixer").size() == 4);  // at, file, source, width
}

TEST_CASE("a described block has weights, operations and memory like forge's own", "[own_blocks]") {
  ResolvedConfig resolved = BlockProject("model.canon.set: A\n" + with_my_mixer).resolved();
  CHECK(contains(error_of([&] { model::parameters(resolved.experiment.model); }),
                 "the block 'my_mixer' is not described"));
  set_descriptions(resolved, {{"my_mixer", described_mixer()}});
  const model::ModelConfig& model = resolved.experiment.model;
  std::vector<std::string> names;
  const auto parameters = model::parameters(model);
  for (const model::Parameter& parameter : parameters) {
    if (starts_with(parameter.name, "model.layers.1.")) names.push_back(parameter.name.substr(15));
  }
  CHECK(names == std::vector<std::string>{"input_layernorm.weight",
                                          "canonA.weight",
                                          "my_mixer.out.weight",
                                          "my_mixer.shift",
                                          "post_attention_layernorm.weight",
                                          "mlp.gate_proj.weight",
                                          "mlp.up_proj.weight",
                                          "mlp.down_proj.weight"});
  // A role is drawn as that of attention's output is: shrunk with the depth.
  const model::Parameter& out = parameters[3];
  REQUIRE(out.name == "model.layers.0.my_mixer.out.weight");
  CHECK(out.init.std == 0.02 / std::sqrt(2.0 * 2));
  CHECK(out.is_matrix);
  CHECK(parameters[4].init.kind == model::InitRule::Kind::module);
  float value = 0;
  CHECK(contains(error_of([&] { model::draw_initial(parameters[4], 1, 0, 1, &value); }),
                 "only the block's own constructor draws"));

  CHECK(model::count_parameters(model).of("my_mixer") == 2 * (16 * 8 + 8));
  const model::TokenFlops flops = model::flops_per_token(model, 10);
  REQUIRE(flops.mixing.size() == 1);
  CHECK(flops.mixing[0].first == "my_mixer");
  CHECK(flops.mixing[0].second == 2 * (100 + 2 * 10));
  CHECK(flops.projections == 2 * 2.0 * 3 * 16 * 32);  // those of the MLPs alone
  CHECK(model::has_counted_flops(model.blocks.at("my_mixer")));
  // Norm: 16 and a root; Canon-A: 16; the block: 24; MLP as it always is.
  const auto of_block = model::own_mixer_block.saved_activations(model.of_layer(0));
  CHECK(of_block.values == 16 + 16 + 24);
  CHECK(of_block.statistics == 1);
  CHECK(model::generation_state(model).per_token == 0);
}

TEST_CASE("a block is an MLP, of a layer too, and stands beside Canon layers", "[own_blocks]") {
  ResolvedConfig resolved =
      BlockProject(
          "model.attention.num_heads: 2\nmodel.blocks.my_mixer.at: AC\nmodel.layers: [attention, "
          "{mixer: attention, mlp: {kind: my_mixer}}]\n")
          .resolved();
  set_descriptions(resolved, {{"my_mixer", described_mixer()}});
  const model::ModelConfig& model = resolved.experiment.model;
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model::parameters(model)) {
    if (starts_with(parameter.name, "model.layers.1.") && contains(parameter.name, "my_mixer"))
      names.push_back(parameter.name.substr(15));
  }
  CHECK(names == std::vector<std::string>{"my_mixerA.out.weight",
                                          "my_mixerA.shift",
                                          "my_mixerC.out.weight",
                                          "my_mixerC.shift",
                                          "my_mixer.out.weight",
                                          "my_mixer.shift"});
  const model::TokenFlops flops = model::flops_per_token(model, 10);
  REQUIRE(flops.mixing.size() == 2);
  CHECK(flops.mixing[1].second == 5 * (100 + 2 * 10));  // A and C of two layers, one MLP
  CHECK(resolved.json["model"]["mlp"]["kind"] == "swiglu");
  CHECK(resolved.json["model"]["layers"][1]["mlp"]["kind"] == "my_mixer");
  CHECK(to_json(experiment_from_json(resolved.json)) == resolved.json);
  const auto whole =
      BlockProject("model.attention.num_heads: 2\nmodel.mlp.kind: my_mixer\n").resolved();
  CHECK(whole.json["model"]["mlp"]["kind"] == "my_mixer");
  CHECK(whole.origins.at("backend").set_by.derived_from == "model.mlp.kind");
}

TEST_CASE("a block whose weights are called like others of its layer is refused", "[own_blocks]") {
  const auto refused = [](const std::string& module, const std::string& layers) {
    ResolvedConfig resolved = BlockProject(layers).resolved();
    Json description = described_mixer();
    description["module"] = module;
    return error_of([&] { set_descriptions(resolved, {{"my_mixer", description}}); });
  };
  CHECK(refused("fine", with_my_mixer).empty());
  CHECK(contains(refused("mlp", with_my_mixer),
                 "two blocks of a layer have weights called model.layers.0.mlp.…"));
  CHECK(contains(refused("post_attention_layernorm", with_my_mixer),
                 "called model.layers.0.post_attention_layernorm.…"));
  CHECK(contains(refused("my_mixer", with_my_mixer + "model.mlp.kind: my_mixer\n"),
                 "called model.layers.0.my_mixer.…"));
}

TEST_CASE("a description that is none is refused", "[own_blocks]") {
  ResolvedConfig resolved = BlockProject(with_my_mixer).resolved();
  const auto refused = [&](Json description) {
    return error_of([&] { set_descriptions(resolved, {{"my_mixer", std::move(description)}}); });
  };
  Json wrong = described_mixer();
  wrong["weights"][0]["shape"] = {0, 3};
  CHECK(contains(refused(wrong), "has no numbers"));
  CHECK(contains(refused(described_mixer(R"({"kind": "cauchy"})")), "is no initial distribution"));
  wrong = described_mixer();
  wrong.erase("flops");
  CHECK(contains(refused(wrong), "the description of the block 'my_mixer' is not one"));
  CHECK(contains(error_of([&] { set_descriptions(resolved, {}); }), "nothing was said of"));
}

}  // namespace
}  // namespace forge::config
