#include "core/config/document.h"

#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;

constexpr const char* model_config =
    "-- set width = hidden | default(64)\n"
    "name: M\n"
    "model:\n"
    "  vocab_size: 300\n"
    "  hidden_size: {{ width }}\n"
    "  num_layers: 2\n"
    "  attention: {num_heads: 4}\n"
    "  mlp: {intermediate_size: 96}\n"
    "tokenizer: {vocab_size: 300}\n";

std::string training(const std::string& arguments) {
  return "model: !call:forge:from_project\n" + arguments +
         "tokenizer: {vocab_size: 300}\ntrain: {max_steps: 1}\n";
}

/// projects/p with a project projects/p/models inside that has the config "m".
class SubProjectFixture : public ConfigFixture {
 public:
  SubProjectFixture() {
    files.add_project("p/models");
    files.add_config("p/models", "m", model_config);
  }
};

TEST_CASE("a call is replaced by the other config's target with its origins") {
  const SubProjectFixture fixture;
  for (const char* name : {"m", "m.yaml"}) {
    const ResolvedConfig resolved = fixture.resolve(training(
        std::string("  project_dir: models\n  config_template: ") + name + "\n  targets: model\n"));
    REQUIRE(resolved.experiment.model.hidden_size == 64);
    const SourceSpan& origin = resolved.origins.at("model.num_layers").set_by.origin;
    REQUIRE(contains(origin.describe(), "models/templates/configs/m.yaml:6:15"));
  }
}

TEST_CASE("a call names the whole config and a prefix gets the name") {
  SubProjectFixture fixture;
  fixture.files.add_config("p/models", "medium", model_config);
  const std::string error = tests::error_of([&] {
    fixture.resolve(training("  project_dir: models\n  config_template: medi\n  targets: model\n"));
  });
  REQUIRE(contains(error, "no config 'medi'"));
  REQUIRE(contains(error, "did you mean 'medium'?"));
}

TEST_CASE("a call may give variables and absolute folders and Forgather's name") {
  const SubProjectFixture fixture;
  const std::string folder = (fixture.files.folder / "projects/p/models").string();
  const ResolvedConfig resolved =
      fixture.resolve("model: !call:forgather:from_project@model\n  project_dir: " + folder +
                      "\n  config_template: m\n  targets: model\n  pp_kwargs: {hidden: 128}\n"
                      "tokenizer: {vocab_size: 300}\ntrain: {max_steps: 1}\n");
  REQUIRE(resolved.experiment.model.hidden_size == 128);
}

TEST_CASE("a list of targets gives a mapping and no target the whole config") {
  const SubProjectFixture fixture;
  const auto project = fixture.files.project("p");
  const auto document = [&](const std::string& targets) {
    fixture.files.add_config("p",
                             "c",
                             "x: !call:forge:from_project\n  project_dir: models\n"
                             "  config_template: m\n" +
                                 targets);
    return read_document(fixture.files.project("p"), "c", tests::fixed_surroundings()).root;
  };
  const yaml::NodePtr two = document("  targets: [tokenizer, model]\n");
  REQUIRE(two->find("x")->entries.size() == 2);
  REQUIRE(two->find("x")->entries[0].key == "tokenizer");
  REQUIRE(document("  targets: ''\n")->find("x")->find("name")->text == "M");
  REQUIRE(document("")->find("x")->find("model") != nullptr);
}

TEST_CASE("dotted keys of the other config and of the calling one both reach the model") {
  const SubProjectFixture fixture;
  fixture.files.add_config(
      "p/models",
      "wide",
      std::string(model_config) + "model.hidden_size: 256\nmodel.attention.num_heads: 2\n");
  const ResolvedConfig resolved = fixture.resolve(
      training("  project_dir: models\n  config_template: wide\n  targets: model\n") +
      "model.attention.num_heads: 8\n");
  REQUIRE(resolved.experiment.model.hidden_size == 256);
  REQUIRE(resolved.experiment.model.attention.num_heads == 8);
  REQUIRE(resolved.origins.at("model.attention.num_heads").overrode.front().text == "2");
}

TEST_CASE("what a call names must exist") {
  const SubProjectFixture fixture;
  const auto error = [&](const std::string& arguments) {
    return fixture.error(training(arguments));
  };
  REQUIRE(contains(error("  project_dir: modls\n  config_template: m\n  targets: model\n"),
                   "c.yaml:2:16: error: no project in "));
  REQUIRE(contains(error("  project_dir: models\n  config_template: mm\n  targets: model\n"),
                   "c.yaml:3:20: error: the project 'projects/p/models' has no config 'mm'"));
  REQUIRE(contains(error("  project_dir: models\n  config_template: m\n  targets: modle\n"),
                   "c.yaml:4:12: error: 'm' has no target 'modle'"));
  REQUIRE(contains(error("  project_dir: models\n  targets: model\n"), "needs 'config_template'"));
  REQUIRE(contains(error("  project_dir: models\n  config_template: m\n  target: model\n"),
                   "did you mean 'targets'?"));
  REQUIRE(contains(error("  project_dir: models\n  config_template: m\n  pp_kwargs: {a: {b: 1}}\n"),
                   "the variable 'a' is a mapping"));
  REQUIRE(
      contains(error("  project_dir: {}\n  config_template: m\n"), "'project_dir' is a mapping"));
}

TEST_CASE("configs that refer to each other in a circle are refused with the circle") {
  const SubProjectFixture fixture;
  fixture.files.add_config("p/models",
                           "back",
                           "model: !call:forge:from_project\n  project_dir: ..\n"
                           "  config_template: c\n  targets: model\n");
  const std::string error = fixture.error(
      training("  project_dir: models\n  config_template: back.yaml\n  targets: model\n"));
  REQUIRE(contains(error, "in a circle: projects/p:c -> projects/p/models:back -> projects/p:c"));
  REQUIRE(contains(error, "back.yaml:1:"));
}

TEST_CASE("any other call means nothing in a config") {
  const ConfigFixture fixture;
  REQUIRE(contains(fixture.error("model: !call:torch:Linear {a: 1}\ntrain: {max_steps: 1}\n"),
                   "the tag !call:torch:Linear means nothing at 'model'"));
}

TEST_CASE("a graph of Python objects is told from a config that forge runs") {
  const SubProjectFixture fixture;
  for (const char* text : {"main: !call:torch:Trainer\n  lr: 1\n",
                           "optimizer: !partial:torch.optim:AdamW {lr: 1}\n",
                           "meta: !dict:@meta\n  config_name: x\n"}) {
    const std::string error = tests::error_of([&] { fixture.resolve(text); });
    REQUIRE(contains(error, "is a graph of Python objects"));
    REQUIRE(contains(error, "'forge graph'"));
  }
}

TEST_CASE("the declaration of template arguments is no part of a config") {
  const SubProjectFixture fixture;
  fixture.files.add_config(
      "p/models", "m", std::string(model_config) + "dynamic_args: [{names: --hidden}]\n");
  const ResolvedConfig resolved =
      fixture.resolve(training("  project_dir: models\n  config_template: m\n  targets: model\n"
                               "  pp_kwargs: {hidden: 128}\n") +
                      "dynamic_args: !dlist {a: {names: --max-steps, type: int}}\n");
  REQUIRE(resolved.experiment.model.hidden_size == 128);
}

TEST_CASE("a call may hand a list to the other config's templates") {
  const SubProjectFixture fixture;
  fixture.files.add_config(
      "p/models", "listing", "-- set hidden = sizes[1]\n-- extends 'configs/m.yaml'\n");
  const ResolvedConfig resolved = fixture.resolve(
      training("  project_dir: models\n  config_template: listing\n  targets: model\n"
               "  pp_kwargs: {sizes: [32, 128]}\n"));
  REQUIRE(resolved.experiment.model.hidden_size == 128);
}

TEST_CASE("a config that many call is read once a command, unless each gives it variables") {
  const SubProjectFixture fixture;
  const std::string call = "  project_dir: models\n  config_template: m\n  targets: model\n";
  for (const char* name : {"a", "b", "c"}) fixture.files.add_config("p", name, training(call));
  fixture.files.add_config("p", "d", training(call + "  pp_kwargs: {hidden: 128}\n"));
  const project::Project project = fixture.files.project("p");
  const auto hidden_size = [&](const std::string& name) {
    return resolve(project, name, tests::fixed_options()).experiment.model.hidden_size;
  };
  REQUIRE(hidden_size("a") == 64);
  const yaml::NodePtr read = project.shared->called.begin()->second.root;
  REQUIRE(hidden_size("d") == 128);
  REQUIRE(hidden_size("b") == 64);
  REQUIRE(hidden_size("c") == 64);
  REQUIRE(project.shared->called.size() == 1);
  REQUIRE(project.shared->called.begin()->second.root == read);
}

TEST_CASE("tagged containers of a config are plain values") {
  const ConfigFixture fixture;
  const ResolvedConfig resolved = fixture.small(
      "optimizer: !dict:@opt {betas: !dlist {a: 0.5, gone: ~, b: 0.9}, eps: !var {name: eps, "
      "default: 1.0e-6}}\n");
  REQUIRE(resolved.json["optimizer"]["betas"] == std::vector<double>{0.5, 0.9});
  REQUIRE(resolved.json["optimizer"]["eps"] == 1e-6);
  REQUIRE(contains(fixture.small_error("seed: !var seed\n"),
                   "c.yaml:8:7: error: a config of forge has"));
  REQUIRE(contains(fixture.small_error("seed: !vra seed\n"), "did you mean '!var'"));
  REQUIRE(contains(fixture.small_error("optimizer: {betas: !list {a: 1}}\n"), "betas"));
}

TEST_CASE("dotted keys of a config apply to what it takes from another one") {
  SubProjectFixture fixture;
  fixture.files.add_config("p/models",
                           "canon",
                           "model: !call:forge:from_project\n  project_dir: .\n"
                           "  config_template: m\n  targets: model\n"
                           "model.canon.set: A\nmodel.canon.set: AC\n");
  const ResolvedConfig resolved = fixture.resolve(
      training("  project_dir: models\n  config_template: canon\n  targets: model\n"));
  CHECK(resolved.experiment.model.canon.set == "AC");
  CHECK(resolved.experiment.model.hidden_size == 64);
}

TEST_CASE("a path that another project's config gives is relative to that project") {
  SubProjectFixture fixture;
  for (const char* folder : {"projects/p/texts/t.txt", "projects/p/models/texts/t.txt"})
    fixture.files.folder.write(folder, "text\n");
  fixture.files.add_config("p/models", "data", "data: {source: text, path: texts/t.txt}\n");
  const std::string call =
      "data: !call:forge:from_project\n  project_dir: models\n  config_template: data\n"
      "  targets: data\n";
  const auto path_of = [&](const std::string& more, std::vector<std::string> overrides) {
    return fixture.small(more, std::move(overrides)).experiment.data.path;
  };
  const std::string projects = (fixture.files.folder / "projects/p").string();
  CHECK(path_of(call, {}) == projects + "/models/texts/t.txt");
  CHECK(path_of("data: {source: text, path: texts/t.txt}\n", {}) == projects + "/texts/t.txt");
  CHECK(path_of(call + "data.path: texts/t.txt\n", {}) == projects + "/texts/t.txt");
}

}  // namespace
}  // namespace forge::config
