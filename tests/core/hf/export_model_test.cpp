#include "core/hf/export_model.h"

#include "core/base/fs.h"
#include "core/data/tokenizer_json.h"
#include "core/weights/convert.h"
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

/// A trained model in a temporary folder.
struct Source {
  Source() {
    source.model = small_model();
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), source.model);
    source.tokenizer = tests::write_sample_tokenizer(folder.path());
  }
  Exported write(const ExportOptions& options = {}) const {
    return export_model(source, folder / "out", options);
  }
  std::string fault(const ExportOptions& options = {}) const {
    return error_of([&] { write(options); });
  }
  Json json(const char* file) const { return Json::parse(read_file(folder / "out" / file)); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  TemporaryFolder folder;
  ExportSource source;
};

TEST_CASE("a model folder holds what transformers reads") {
  const Source source;
  const Exported exported = source.write();
  REQUIRE(exported.architecture == Architecture::llama);
  REQUIRE(exported.parameters == 5320);
  std::vector<std::string> names;
  for (const weights::WrittenFile& file : exported.files) {
    names.push_back(file.name);
    REQUIRE(static_cast<int64_t>(fs::file_size(source.folder / "out" / file.name)) == file.bytes);
  }
  REQUIRE(names == std::vector<std::string>{"config.json",
                                            "generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "special_tokens_map.json",
                                            "model.safetensors"});
  REQUIRE(source.json("config.json")["bos_token_id"] == 0);
  REQUIRE(source.json("config.json")["max_position_embeddings"] == 128);
  REQUIRE(source.json("generation_config.json")["pad_token_id"] == 1);
  REQUIRE(data::load_tokenizer(source.folder / "out/tokenizer.json").vocab_size() == 262);
  REQUIRE(source.entries() == std::vector<std::string>{"checkpoints", "out", "tokenizer.json"});
}

TEST_CASE("weights leave in float32 with every bit") {
  const Source source;
  source.write();
  REQUIRE(weights::content_hash(weights::ModelFiles(source.folder / "out").tensors()) ==
          weights::content_hash(weights::ModelFiles(source.source.checkpoint).tensors()));
}

TEST_CASE("weights leave in a narrower dtype on request") {
  const Source source;
  ExportOptions options;
  options.dtype = dtype_from_name("bfloat16");
  source.write(options);
  const weights::ModelFiles files(source.folder / "out");
  REQUIRE(files.tensors().at("model.norm.weight").dtype == weights::Dtype::bf16);
  REQUIRE(weights::to_float32(files.tensors().at("model.norm.weight")) ==
          std::vector<float>(8, 1.0f));
  REQUIRE(source.json("config.json")["torch_dtype"] == "bfloat16");
  REQUIRE(contains(error_of([] { dtype_from_name("bfloat"); }), "did you mean 'bfloat16'"));
}

TEST_CASE("a model beyond the limit of a file is sharded") {
  const Source source;
  ExportOptions options;
  options.shard_bytes = 9000;
  source.write(options);
  REQUIRE(fs::exists(source.folder / "out/model.safetensors.index.json"));
  REQUIRE_FALSE(fs::exists(source.folder / "out/model.safetensors"));
  REQUIRE(weights::content_hash(weights::ModelFiles(source.folder / "out").tensors()) ==
          weights::content_hash(weights::ModelFiles(source.source.checkpoint).tensors()));
}

TEST_CASE("a model without a tokenizer leaves without its files") {
  Source source;
  source.source.tokenizer.clear();
  REQUIRE(source.write().files.size() == 3);
  REQUIRE(source.json("config.json")["bos_token_id"].is_null());
  REQUIRE(source.json("generation_config.json") == Json::object());
}

TEST_CASE("an empty folder is taken and a full one refused until it may be replaced") {
  const Source source;
  make_directories(source.folder / "out");
  source.write();
  REQUIRE(contains(source.fault(), "is not empty"));
  source.folder.write("out/stale.safetensors", "x");
  ExportOptions options;
  options.replace = true;
  source.write(options);
  REQUIRE_FALSE(fs::exists(source.folder / "out/stale.safetensors"));
  REQUIRE(fs::exists(source.folder / "out/config.json"));
  REQUIRE(source.entries() == std::vector<std::string>{"checkpoints", "out", "tokenizer.json"});
}

TEST_CASE("nothing but a model folder is ever replaced") {
  ExportOptions options;
  options.replace = true;
  const Source files;
  files.folder.write("out/thesis.txt", "x");
  REQUIRE(contains(files.fault(options), "is no model folder"));
  REQUIRE(fs::exists(files.folder / "out/thesis.txt"));
  const Source folders;
  folders.folder.write("out/config.json", "{}");
  folders.folder.write("out/src/main.cpp", "x");
  REQUIRE(contains(folders.fault(options), "is no model folder"));
  const Source file;
  file.folder.write("out", "x");
  REQUIRE(contains(file.fault(options), "is a file"));
}

TEST_CASE("a damaged checkpoint and weights of another model and a large tokenizer are refused") {
  const Source damaged;
  damaged.folder.write("checkpoints/000000030/weights.safetensors", "x");
  REQUIRE(contains(damaged.fault(), "is damaged"));
  Source other;
  other.source.model.num_layers = 3;
  REQUIRE(contains(other.fault(), "missing 9: 'model.layers.2.input_layernorm.weight'"));
  Source small;
  small.source.model.vocab_size = 261;
  REQUIRE(contains(small.fault(), "has 262 entries, the model 261"));
  for (const Source* source : std::initializer_list<const Source*>{&damaged, &other, &small}) {
    REQUIRE_FALSE(fs::exists(source->folder / "out"));
    REQUIRE(source->entries() == std::vector<std::string>{"checkpoints", "tokenizer.json"});
  }
}

TEST_CASE("the name of the folder may be relative to a link or end in a slash") {
  const Source source;
  make_directories(source.folder / "real");
  fs::create_directory_symlink(source.folder / "real", source.folder / "link");
  export_model(source.source, source.folder / "link/", {});
  REQUIRE(fs::is_symlink(source.folder / "link"));
  REQUIRE(fs::exists(source.folder / "real/config.json"));
  REQUIRE(contains(error_of([&] { export_model(source.source, "", {}); }), "is empty"));
}

}  // namespace
}  // namespace forge::hf
