#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/model/parameters.h"
#include "core/project/names.h"
#include "core/project/project.h"
#include "core/project/workspace.h"
#include "core/results/tables/read_table.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* update_hint =
    "a shipped config renders to another text than tests/golden/projects holds; if that is meant, "
    "run FORGE_UPDATE_GOLDEN=1 build/release/forge_tests \"every shipped config*\" and read the "
    "difference with git diff";

jinja::HostEnvironment pinned_host_environment() {
  jinja::HostEnvironment host_environment;
  host_environment.unix_time = 1700000000;  // 2023-11-14T22:13:20 UTC
  host_environment.working_directory = "/work";
  host_environment.home_directory = "/home/ada";
  host_environment.host_name = "lab";
  return host_environment;
}

/// The text with the workspace's folder, which differs from checkout to checkout, under one name.
std::string without_folder(std::string text, const fs::path& root) {
  const std::string folder = root.string();
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "/workspace");
  return text;
}

void compare(const fs::path& golden, const std::string& text) {
  INFO(golden.string());
  if (std::getenv("FORGE_UPDATE_GOLDEN")) {
    fs::create_directories(golden.parent_path());
    write_file_atomic(golden, text);
  }
  INFO(update_hint);
  REQUIRE(fs::exists(golden));
  CHECK(read_file(golden) == text);
}

std::set<fs::path> files_below(const fs::path& folder) {
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  return files;
}

TEST_CASE("every shipped config renders to its golden text") {
  const fs::path root = tests_dir().parent_path(), goldens = tests_dir() / "golden" / "projects";
  const project::Workspace workspace = *project::find_workspace(root);
  std::set<fs::path> expected;
  for (const project::ProjectFolder& folder : project::projects_of(workspace)) {
    const project::Project project =
        project::load_project(workspace, folder.folder, pinned_host_environment());
    if (!starts_with(project.path, "projects/")) continue;
    for (const project::Config& config : project.configs) {
      const std::string text =
          project::render_config(project, config, pinned_host_environment()).text;
      const fs::path golden =
          goldens / project.path.substr(std::string("projects/").size()) / (config.name + ".yaml");
      compare(golden, without_folder(text, root));
      expected.insert(golden);
    }
  }
  CHECK(expected.size() >= 10);
  INFO("a golden text of a config that is no more: remove it");
  CHECK(files_below(goldens) == expected);
}

}  // namespace
}  // namespace forge::tests

namespace forge::config {
namespace {

using tests::fixed_options;
using tests::fixed_surroundings;

struct Variant {
  const char* config;
  const char* set;
  model::PositionKind kind;
};
const std::vector<Variant> variants = {
    {"train_baseline", "ABCD", model::PositionKind::rope},
    {"train_canon_a", "A", model::PositionKind::rope},
    {"train_canon_a_nope", "A", model::PositionKind::nope},
    {"train_canon_ab", "AB", model::PositionKind::rope},
    {"train_canon_ac", "AC", model::PositionKind::rope},
    {"train_canon_b", "B", model::PositionKind::rope},
    {"train_canon_bd", "BD", model::PositionKind::rope},
    {"train_llama", "", model::PositionKind::rope},
    {"train_llama_nope", "", model::PositionKind::nope},
    {"train_nope", "ABCD", model::PositionKind::nope},
};

ResolvedConfig resolve_named(const project::Workspace& workspace,
                             const std::string& name,
                             const ResolveOptions& options) {
  const auto found =
      project::find_config(workspace, name, workspace.root, options.host_environment);
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
    REQUIRE(resolved.experiment.model.attention.position.kind == variant.kind);
    for (const char* key :
         {"/name", "/description", "/model/canon/set", "/model/attention/position/kind"}) {
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

using tests::fixed_options;
using tests::fixed_surroundings;

project::Project small_llm() {
  const auto workspace = tests::shipped_workspace();
  return project::load_project(
      workspace, workspace.root / "projects/small_llm", fixed_surroundings());
}

Experiment resolved(const std::string& config, const ResolveOptions& options = fixed_options()) {
  return resolve(small_llm(), config, options).experiment;
}

const std::vector<std::string> pretrained_variants = {
    "llama", "canon", "canon_b_rope", "canon_ac_rope"};

TEST_CASE("the medium reference is Llama with 162 million parameters") {
  const ModelConfig model = resolved("llama").model;
  CHECK(model.hidden_size == 768);
  CHECK(model.mlp.intermediate_size == 2048);
  CHECK(model.num_layers == 16);
  CHECK(model.attention.num_heads == 8);
  CHECK(model.vocab_size == 32000);
  CHECK_FALSE(model.tie_embeddings);
  CHECK(model::parameter_count(model) == 162423552);
}

TEST_CASE("every variant trains on 20 tokens for each parameter of the reference") {
  const int64_t budget = 20 * model::parameter_count(resolved("llama").model);
  for (const std::string& variant : pretrained_variants) {
    const TrainConfig train = resolved(variant).train;
    CHECK(train.max_tokens == budget);
    const int64_t tokens_per_step = int64_t{train.batch_size} * train.seq_len;
    CHECK(train.max_steps == (budget + tokens_per_step - 1) / tokens_per_step);
  }
}

TEST_CASE("canon is Canon-A without positions and with QK-norm per head in the same shape") {
  const ModelConfig canon = resolved("canon").model;
  CHECK(canon.canon.set == "A");
  CHECK(canon.attention.position.kind == model::PositionKind::nope);
  CHECK(canon.attention.qk_norm == model::QkNorm::per_head);
  for (const auto& [config, set] : {std::pair("canon_b_rope", "B"), {"canon_ac_rope", "AC"}}) {
    const ModelConfig model = resolved(config).model;
    CHECK(model.canon.set == set);
    CHECK(model.attention.position.kind == model::PositionKind::rope);
    CHECK(model.attention.qk_norm == model::QkNorm::none);
  }
  const ModelConfig llama = resolved("llama").model;
  CHECK(canon.hidden_size == llama.hidden_size);
  CHECK(canon.num_layers == llama.num_layers);
}

TEST_CASE("the grid changes the learning rate and the name alone") {
  for (const std::string& variant : pretrained_variants) {
    for (const auto& [folder, lr] : {std::pair("lr3e-4/", 3e-4), {"lr3e-3/", 3e-3}}) {
      ResolvedConfig base = resolve(small_llm(), variant, fixed_options());
      const ResolvedConfig grid = resolve(small_llm(), folder + variant, fixed_options());
      CHECK(base.json["optimizer"]["lr"] == 1e-3);
      base.json["optimizer"]["lr"] = lr;
      base.json["name"] = grid.json.at("name");
      CHECK(base.json == grid.json);
    }
  }
}

TEST_CASE("the learning rate is an argument of every config too") {
  jinja::Variable lr;
  lr.kind = jinja::Variable::Kind::real;
  lr.real = 5e-4;
  const ResolvedConfig given = resolve(small_llm(), "lr3e-3/canon", fixed_options(), {{"lr", lr}});
  CHECK(given.experiment.optimizer.lr == 5e-4);
}

TEST_CASE("the tiny profile needs nothing and is chosen by name alone") {
  for (const bool gpu : {false, true}) {
    CHECK(resolved("llama", fixed_options({}, gpu)).profile == "full");
  }
  for (const std::string& variant : pretrained_variants) {
    const ResolvedConfig tiny = resolve(small_llm(), variant, fixed_options({"profile=tiny"}));
    CHECK(tiny.obstacles.empty());
    CHECK(model::parameter_count(tiny.experiment.model) < 1000000);
    CHECK(tiny.experiment.train.max_steps == 40);
    CHECK(tiny.experiment.model.canon.set == resolved(variant).model.canon.set);
  }
}

TEST_CASE("the tables of the 162M project name its configs") {
  const project::Project project = small_llm();
  std::vector<std::string> configs;
  for (const project::Config& config : project.configs) configs.push_back(config.name);
  const auto read = [&](const char* name) {
    return tables::read_table((project.folder / "tables" / name).string(), configs);
  };
  const tables::TableSpec table = read("variants.yaml");
  CHECK(table.baseline == "llama");
  CHECK(table.rows.size() == 4);
  CHECK(table.claims.size() == 5);
  for (const tables::ClaimSpec& claim : table.claims) CHECK(claim.profile == "full");
  const tables::TableSpec rates = read("lr_grid.yaml"), precision = read("precision.yaml");
  CHECK(rates.rows.size() + precision.rows.size() == configs.size() + 1);  // canon is in both
  CHECK(rates.claims.size() == 1);
  CHECK(precision.claims.size() == 1);
}

}  // namespace
}  // namespace forge::config
