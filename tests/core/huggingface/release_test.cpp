// Models of one linear mixer in the files of their released code: config.json, names, and the way
// out and in, bit for bit.

#include <set>

#include "core/base/files.h"
#include "core/huggingface/export_model.h"
#include "core/huggingface/import_model.h"
#include "core/huggingface/release_config.h"
#include "core/model/weights/release_names.h"
#include "tests/core/huggingface/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/linear_vectors.h"
#include "tests/support/model_variants.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"

namespace forge::huggingface {
namespace {

using Json = nlohmann::json;
using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

struct Family {
  const char* change;  ///< of the small model
  const char* type;
  Architecture architecture;
};

const std::vector<Family>& families() {
  static const std::vector<Family> list = {
      {R"({"layers": ["gla5"], "attention": null, "gla5": {"num_heads": 2}})",
       "GLACanon",
       Architecture::gla},
      {R"({"layers": ["gdn2"], "attention": null, "gdn2": {"num_heads": 2}})",
       "GatedDeltaNetCanon",
       Architecture::gated_delta_net},
      {R"({"layers": ["mamba2"], "attention": null, "mamba2": {"num_heads": 2, "state_size": 8}})",
       "Mamba2Canon",
       Architecture::mamba2}};
  return list;
}

model::ModelConfig model_of(const Family& family, const std::string& canon_set) {
  Json change = Json::parse(family.change);
  change["canon"]["set"] = canon_set;
  return tests::model_of(change.dump().c_str());
}

/// A trained model, exported.
struct Export {
  explicit Export(const model::ModelConfig& model) {
    source.model = model;
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), model);
    exported = export_model(source, folder / "out", {});
  }
  Json config() const { return Json::parse(read_file(folder / "out/config.json")); }
  weights::ModelFiles files() const { return weights::ModelFiles(folder / "out"); }
  std::string hash_before() const {
    return weights::content_hash(weights::ModelFiles(source.checkpoint).tensors());
  }

  TemporaryFolder folder;
  ExportSource source;
  Exported exported;
};

Json tree_without_init(const model::ModelConfig& model) {
  Json tree = to_json(model);
  tree.erase("init");
  return tree;
}

TEST_CASE("a linear model goes out and comes in with every bit", "[linear]") {
  for (const Family& family : families()) {
    for (const char* set : {"", "b", "ACD", "AbCD", "AbBCD"}) {
      if (family.architecture == Architecture::gla && std::string(set) == "AbBCD") continue;
      INFO(family.type << " '" << set << "'");
      const model::ModelConfig model = model_of(family, set);
      const Export out(model);
      CHECK(out.exported.architecture == family.architecture);
      CHECK(out.exported.forge_keys.empty());
      CHECK(out.config().at("model_type") == family.type);
      CHECK(out.config().at("architectures") ==
            Json::array({std::string(family.type) + "ForCausalLM"}));
      CHECK(out.config().at("canon_set") == set);
      const ImportedModel imported = import_model(out.folder / "out");
      CHECK(tree_without_init(imported.config.model) == tree_without_init(model));
      CHECK(imported.config.unknown.empty());
      CHECK(weights::content_hash(imported.weights) == out.hash_before());
    }
  }
}

TEST_CASE("a linear model's file has the names of its released code", "[linear]") {
  // The names of the reference vectors are those.
  for (const tests::LinearCase& one : tests::linear_cases()) {
    INFO(one.name);
    std::set<std::string> names, wanted;
    for (const auto& [own, place] : weights::release_places(one.model)) names.insert(place.name);
    for (const Json& name : one.expected.at("params")) wanted.insert(name.get<std::string>());
    CHECK(names == wanted);
  }
}

TEST_CASE("gate and up lie on one another in the released files, the gate first", "[linear]") {
  const Export out(model_of(families()[2], "AbCD"));
  const weights::ModelFiles files = out.files(), before(out.source.checkpoint);
  const auto& both = files.tensors().at("backbone.layers.1.mlp.both_proj.weight");
  const auto& gate = before.tensors().at("model.layers.1.mlp.gate_proj.weight");
  const auto& up = before.tensors().at("model.layers.1.mlp.up_proj.weight");
  REQUIRE(both.shape == std::vector<int64_t>{48, 16});
  REQUIRE(both.bytes == gate.bytes + up.bytes);
  CHECK(std::equal(gate.data, gate.data + gate.bytes, both.data));
  CHECK(std::equal(up.data, up.data + up.bytes, both.data + gate.bytes));
}

TEST_CASE("a Mamba2 without short convolution has one of zeros in its file", "[linear]") {
  const Export out(model_of(families()[2], "ACD"));
  const weights::ModelFiles files = out.files();
  const auto& conv = files.tensors().at("backbone.layers.0.mixer.conv1d.weight");
  CHECK(conv.shape == std::vector<int64_t>{48, 1, 4});
  CHECK(std::all_of(
      conv.data, conv.data + conv.bytes, [](std::byte byte) { return byte == std::byte(0); }));
  CHECK(files.tensors().count("backbone.layers.0.mixer.conv1d.bias") == 0);
}

/// The file of a model with other names for some tensors.
void rename_tensors(const fs::path& folder,
                    const std::function<std::string(const std::string&)>& name) {
  std::map<std::string, weights::TensorView> renamed;
  const weights::ModelFiles files(folder);
  for (const auto& [old, view] : files.tensors()) renamed[name(old)] = view;
  weights::write_safetensors(folder / "renamed", renamed, {{"format", "pt"}});
  fs::rename(folder / "renamed", folder / weights::model_file);
}

TEST_CASE("released files are read with the names that some of them have", "[linear]") {
  const Export out(model_of(families()[0], "AbCD"));
  rename_tensors(out.folder / "out", [](const std::string& name) {
    std::string other = name;
    const size_t at = name.find("g_norm_swish_gate");
    if (at != std::string::npos)
      other.replace(at, std::string("g_norm_swish_gate").size(), "g_norm");
    return "trans." + other;
  });
  CHECK(weights::content_hash(import_model(out.folder / "out").weights) == out.hash_before());
}

TEST_CASE("a released file that lacks a weight is refused by its name", "[linear]") {
  const Export out(model_of(families()[1], "b"));
  rename_tensors(out.folder / "out", [](const std::string& name) {
    return name == "model.layers.1.attn.A_log" ? "model.layers.1.attn.B_log" : name;
  });
  const std::string fault = error_of([&] { import_model(out.folder / "out"); });
  CHECK(contains(fault, "missing 1: 'model.layers.1.gdn2.A_log'"));
  CHECK(contains(fault, "unexpected 1: 'model.layers.1.attn.B_log'"));
}

ReadConfig read_with(const Family& family, const char* change) {
  Json json(write_config(model_of(family, "AbCD"), {128, "float32", 0, 2, 1}).json);
  json.merge_patch(Json::parse(change));
  return read_config(json);
}

TEST_CASE("config.json of a linear model is read as its code reads it", "[linear]") {
  const Family &gla = families()[0], &gdn = families()[1], &mamba = families()[2];
  CHECK(read_with(gla, R"({"canon_set": "AbbCD"})").model.canon.set == "AbCD");
  CHECK(read_with(gdn, R"({"canon_set": "bb"})").model.canon.set == "b");
  CHECK(read_with(gdn, R"({"use_short_conv": false})").model.canon.set == "ACD");
  CHECK(read_with(gdn, R"({"head_dim": 16})").model.gdn2.expand_k == 2);
  CHECK(read_with(gla, R"({"output_gate_rank": null})").model.gla5.output_gate_rank ==
        std::nullopt);
  CHECK(read_with(gla, R"({"norm_eps": null})").model.norm.eps == 1e-6);
  CHECK(read_with(mamba, R"({"intermediate_size": null})").model.mlp.intermediate_size == 32);
  CHECK(read_with(mamba, R"({"layer_norm_epsilon": 1e-3})").model.norm.eps == 1e-3);
  const auto fault = [](const Family& family, const char* change) {
    return error_of([&] { read_with(family, change); });
  };
  CHECK(contains(fault(gla, R"({"canon_set": "AB"})"), "no place for"));
  CHECK(contains(fault(gla, R"({"intermediate_size": null})"), "'intermediate_size' is missing"));
  CHECK(contains(fault(gdn, R"({"use_gate": false})"), "'use_gate' is false"));
  CHECK(contains(fault(gdn, R"({"attn": {"layers": [1]}})"), "'attn' is an object"));
  CHECK(contains(fault(mamba, R"({"n_groups": 2})"), "'n_groups' is 2"));
  CHECK(contains(fault(mamba, R"({"time_step_limit": [0.0, 0.1]})"), "'time_step_limit' is"));
  CHECK(contains(fault(mamba, R"({"head_dim": 4})"), "'head_dim' 4 of num_heads 2 is not 32"));
}

TEST_CASE("Python's Infinity in config.json is read", "[linear]") {
  const Export out(model_of(families()[2], "AbCD"));
  const fs::path file = out.folder / "out/config.json";
  std::string text = read_file(file);
  text.replace(
      text.find('{'), 1, R"({"time_step_limit": [0.0, Infinity], "note": "Infinity \" NaN",)");
  write_file_atomic(file, text);
  const ImportedModel imported = import_model(out.folder / "out");
  CHECK(weights::content_hash(imported.weights) == out.hash_before());
  CHECK(imported.config.unknown == std::vector<std::string>{"note"});
}

TEST_CASE("what the released code cannot compute is exported as forge's own", "[linear]") {
  for (const char* change : {R"({"gdn2": {"qkv_activation": "none"}})",
                             R"({"norm": {"kind": "layer_norm"}})",
                             R"({"mlp": {"kind": "geglu"}})",
                             R"({"tie_embeddings": true})",
                             R"({"layers": ["gdn2", "attention"]})"}) {
    INFO(change);
    Json json =
        Json::parse(R"({"layers": ["gdn2"], "gdn2": {"num_heads": 2}, "canon": {"set": "AbCD"}})");
    json.merge_patch(Json::parse(change));
    const model::ModelConfig model = tests::model_of(json.dump().c_str());
    const Export out(model);
    CHECK(out.exported.architecture == Architecture::forge);
    CHECK_FALSE(out.exported.forge_keys.empty());
    const ImportedModel imported = import_model(out.folder / "out");
    CHECK(weights::content_hash(imported.weights) == out.hash_before());
  }
}

}  // namespace
}  // namespace forge::huggingface
