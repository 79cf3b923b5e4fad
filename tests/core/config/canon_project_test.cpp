#include <cstdlib>

#include "core/base/fs.h"
#include "core/project/names.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::fixed_options;
using tests::fixed_surroundings;

struct Variant {
  const char* config;
  const char* set;
  PositionKind kind;
};
const std::vector<Variant> variants = {
    {"train_baseline", "ABCD", PositionKind::rope},
    {"train_canon_a", "A", PositionKind::rope},
    {"train_canon_a_nope", "A", PositionKind::nope},
    {"train_canon_ab", "AB", PositionKind::rope},
    {"train_canon_ac", "AC", PositionKind::rope},
    {"train_canon_b", "B", PositionKind::rope},
    {"train_canon_bd", "BD", PositionKind::rope},
    {"train_llama", "", PositionKind::rope},
    {"train_llama_nope", "", PositionKind::nope},
    {"train_nope", "ABCD", PositionKind::nope},
};

ResolvedConfig resolve_named(const project::Workspace& workspace,
                             const std::string& name,
                             const ResolveOptions& options) {
  const auto found = project::find_config(workspace, name, workspace.root, options.surroundings);
  return resolve(found.project, found.config.name, options);
}

ResolvedConfig resolve_shipped(const std::string& name, const ResolveOptions& options) {
  return resolve_named(tests::shipped_workspace(), name, options);
}

TEST_CASE("the canon project has the ten training configs") {
  const auto workspace = tests::shipped_workspace();
  const auto project = project::load_project(
      workspace, workspace.root / workspace.default_project, fixed_surroundings());
  REQUIRE(project.default_config == "train_baseline");
  REQUIRE(project.unknown_keys.empty());
  std::vector<std::string> names;
  for (const project::Config& config : project.configs) {
    names.push_back(config.name);
    const auto summary = project::summarize(project, config, fixed_surroundings());
    REQUIRE(summary.trains);
    REQUIRE_FALSE(summary.description.empty());
  }
  std::vector<std::string> expected;
  for (const Variant& variant : variants) expected.push_back(variant.config);
  REQUIRE(names == expected);
}

TEST_CASE("the training configs differ in name and canon set and position kind alone") {
  const nlohmann::json reference = resolve_shipped("train_llama", fixed_options()).json;
  for (const Variant& variant : variants) {
    INFO(variant.config);
    ResolvedConfig resolved = resolve_shipped(variant.config, fixed_options());
    REQUIRE(resolved.experiment.model.canon.set == variant.set);
    REQUIRE(resolved.experiment.model.position.kind == variant.kind);
    for (const char* key : {"/name", "/description", "/model/canon/set", "/model/position/kind"}) {
      const nlohmann::json::json_pointer pointer(key);
      resolved.json[pointer] = reference[pointer];
    }
    REQUIRE(resolved.json == reference);
  }
}

/// With FORGE_UPDATE_GOLDEN set the files are written instead.
TEST_CASE("the resolved training configs are the golden ones") {
  for (const Variant& variant : variants) {
    for (const bool gpu : {true, false}) {
      if (!gpu && std::string(variant.config) != "train_canon_ac") continue;
      const ResolvedConfig resolved = resolve_shipped(variant.config, fixed_options({}, gpu));
      const fs::path file = tests::tests_dir() / "golden" / "canon" /
                            (std::string(variant.config) + (gpu ? "" : ".quick") + ".json");
      INFO(file);
      if (std::getenv("FORGE_UPDATE_GOLDEN")) write_file_atomic(file, resolved.json.dump(2) + "\n");
      REQUIRE(resolved.json == nlohmann::json::parse(read_file(file)));
    }
  }
}

TEST_CASE("the model projects hold the models that the training configs use") {
  const auto model_of = [](const std::string& name) {
    const ResolvedConfig resolved = resolve_shipped(name, fixed_options());
    REQUIRE_FALSE(resolved.trains);
    return resolved.json.at("model");
  };
  for (const Variant& variant : variants) {
    const std::string config = variant.config;
    std::string model = config.substr(std::string("train_").size());
    if (config == "train_llama") model = "4M";
    if (config == "train_llama_nope") model = "nope_4M";
    REQUIRE(model_of(model) == resolve_shipped(config, fixed_options()).json.at("model"));
  }
}

TEST_CASE("a value of a model is traced to the template that wrote it") {
  const ResolvedConfig resolved = resolve_shipped("train_canon_ac", fixed_options());
  const auto file_of = [&](const char* key) {
    return fs::path(resolved.origins.at(key).set_by.origin.source->name).filename().string();
  };
  REQUIRE(file_of("model.canon.set") == "canon_ac.yaml");
  REQUIRE(file_of("model.hidden_size") == "llama_4M.yaml");
  REQUIRE(file_of("model.canon.kernel") == "llama_canon_4M.yaml");
  REQUIRE(file_of("optimizer.lr") == "tiny.yaml");
  REQUIRE(file_of("data.source") == "toy_stories.yaml");
}

/// The source tree's workspace in a temporary folder, to add files to.
class CopiedWorkspace {
 public:
  CopiedWorkspace() {
    for (const char* part : {"forge_workspace", "templates", "projects"}) {
      fs::copy(tests::tests_dir().parent_path() / part, folder / part, fs::copy_options::recursive);
    }
  }
  ResolvedConfig resolve(const std::string& name) const {
    return resolve_named(*project::find_workspace(folder.path()), name, fixed_options());
  }
  tests::TemporaryFolder folder;
};

TEST_CASE("a variant of one's own takes four lines") {
  CopiedWorkspace copy;
  copy.folder.write("projects/canon/templates/configs/my_variant.yaml",
                    "-- extends 'configs/train_canon_ac.yaml'\n"
                    "[overrides]\n"
                    "name: Canon-ABD\n"
                    "model.canon.set: ABD\n");
  const ResolvedConfig variant = copy.resolve("my_variant");
  nlohmann::json expected = copy.resolve("train_canon_ac").json;
  expected["name"] = "Canon-ABD";
  expected["model"]["canon"]["set"] = "ABD";
  REQUIRE(variant.json == expected);
  const Setting& set = variant.origins.at("model.canon.set").set_by;
  REQUIRE(set.origin.line == 4);
  REQUIRE(fs::path(set.origin.source->name).filename() == "my_variant.yaml");
  REQUIRE(variant.origins.at("model.canon.set").overrode.front().text == "AC");
}

TEST_CASE("a variant of a variant overrides it once more") {
  CopiedWorkspace copy;
  copy.folder.write("projects/canon/templates/configs/one.yaml",
                    "-- extends 'configs/train_canon_ac.yaml'\n[overrides]\nmodel.canon.set: ABD\n"
                    "train.batch_size: 4\n");
  copy.folder.write("projects/canon/templates/configs/two.yaml",
                    "-- extends 'configs/one.yaml'\n[overrides]\n== super()\nmodel.canon.set: B\n");
  const Experiment two = copy.resolve("two").experiment;
  REQUIRE(two.model.canon.set == "B");
  REQUIRE(two.train.batch_size == 4);
}

TEST_CASE("a mistake in a variant is shown in the variant's own file") {
  CopiedWorkspace copy;
  copy.folder.write("projects/canon/templates/configs/my_variant.yaml",
                    "-- extends 'configs/train_canon_ac.yaml'\n[overrides]\nmodel.canon.set: AX\n");
  const std::string error = tests::error_of([&] { copy.resolve("my_variant"); });
  INFO(error);
  REQUIRE(error.find("my_variant.yaml:3:18: error: model.canon.set 'AX' has 'X'") !=
          std::string::npos);
  REQUIRE(error.find("\n    model.canon.set: AX\n                     ^") != std::string::npos);
}

}  // namespace
}  // namespace forge::config
