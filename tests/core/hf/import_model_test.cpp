#include "core/hf/import_model.h"

#include "core/base/fs.h"
#include "core/hf/export_model.h"
#include "tests/core/hf/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::hf {
namespace {

using tests::contains;
using tests::error_of;
using tests::small_model;
using tests::TemporaryFolder;
using Json = nlohmann::json;

/// A model folder as export_model writes it, below a temporary one.
class ModelFolder {
 public:
  explicit ModelFolder(const config::ModelConfig& model = small_model(),
                       const ExportOptions& options = {}) {
    ExportSource source;
    source.model = model;
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(temporary_.path(), model);
    source.tokenizer = tests::write_sample_tokenizer(temporary_.path());
    hash = weights::content_hash(weights::ModelFiles(source.checkpoint).tensors());
    export_model(source, path(), options);
  }
  fs::path path() const { return temporary_ / "model"; }
  void write(const char* file, const std::string& content) const {
    write_file_atomic(path() / file, content);
  }
  void change_config(const char* patch) const {
    Json json = Json::parse(read_file(path() / "config.json"));
    json.merge_patch(Json::parse(patch));
    write("config.json", json.dump());
  }
  std::string fault() const {
    return error_of([&] { import_model(path()); });
  }
  std::string hash;  ///< of the weights that were written

 private:
  TemporaryFolder temporary_;
};

TEST_CASE("an exported model comes back with the bits of its weights") {
  config::ModelConfig canon = small_model();
  canon.canon.set = "ABCD";
  canon.qk_norm = config::QkNorm::per_head;
  canon.position.kind = config::PositionKind::nope;
  canon.tie_embeddings = true;
  for (const config::ModelConfig& model : {small_model(), canon}) {
    for (const int64_t shard_bytes : {weights::default_shard_bytes, int64_t{5000}}) {
      ExportOptions options;
      options.shard_bytes = shard_bytes;
      const ModelFolder folder(model, options);
      REQUIRE(is_model_folder(folder.path()));
      const ImportedModel imported = import_model(folder.path());
      REQUIRE(weights::content_hash(imported.weights) == folder.hash);
      REQUIRE(imported.config.max_positions == 128);
      REQUIRE(imported.tokenizer == folder.path() / "tokenizer.json");
      REQUIRE_FALSE(imported.tokenizer_fingerprint.empty());
      REQUIRE(imported.notes.empty());
    }
  }
}

TEST_CASE("what was passed over is noted") {
  const ModelFolder folder;
  folder.change_config(R"({"my_key": 1, "your_key": 2})");
  fs::remove(folder.path() / "tokenizer.json");
  const ImportedModel model = import_model(folder.path());
  REQUIRE(model.notes.size() == 2);
  REQUIRE(contains(model.notes[0], "passed over: my_key, your_key"));
  REQUIRE(contains(model.notes[1], "there is no tokenizer.json"));
}

TEST_CASE("a tokenizer that forge cannot follow is noted and left out") {
  const ModelFolder folder;
  folder.write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["a", 0]]}})");
  const ImportedModel model = import_model(folder.path());
  REQUIRE(model.tokenizer.empty());
  REQUIRE(model.notes.size() == 1);
  REQUIRE(contains(model.notes[0], "tokenizer.json"));
}

TEST_CASE("a folder or config.json that is missing or damaged is named") {
  REQUIRE(contains(error_of([] { import_model("/nowhere/at/all"); }), "there is no folder"));
  REQUIRE_FALSE(is_model_folder("/nowhere/at/all"));
  const ModelFolder folder;
  folder.write("config.json", "{");
  REQUIRE(contains(folder.fault(), "config.json': it is not JSON"));
  folder.write("config.json", std::string(200'000, '['));
  REQUIRE(contains(folder.fault(), "it is not JSON"));
  folder.write("config.json", std::string(10'000'001, ' '));
  REQUIRE(contains(folder.fault(), "impossibly large"));
  fs::remove(folder.path() / "config.json");
  REQUIRE(contains(folder.fault(), "config.json"));
}

TEST_CASE("weights that are not those of config.json are refused by name") {
  const ModelFolder folder;
  folder.change_config(R"({"num_hidden_layers": 1})");
  REQUIRE(contains(folder.fault(), "unexpected 9: 'model.layers.1.input_layernorm.weight'"));
  folder.change_config(R"({"num_hidden_layers": 2, "intermediate_size": 16})");
  REQUIRE(contains(folder.fault(), "mlp.gate_proj.weight' [12, 8] instead of [16, 8]"));
  folder.change_config(R"({"model_type": "gpt2"})");
  REQUIRE(contains(folder.fault(), "model_type is 'gpt2'"));
}

}  // namespace
}  // namespace forge::hf
