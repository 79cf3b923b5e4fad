#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/huggingface/export_model.h"
#include "core/huggingface/import_model.h"
#include "core/model/weights/dtype.h"
#include "tests/core/huggingface/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::huggingface {
namespace {

using Json = nlohmann::json;

data::Tokenizer tokenizer() { return data::Tokenizer(data::initial_vocabulary()); }

TEST_CASE("special tokens are mapped by their role and the rest is listed") {
  REQUIRE(Json(special_tokens_map(tokenizer())) == Json::parse(R"({
    "bos_token": "<|BOS|>", "eos_token": "<|EOS|>", "unk_token": "<|UNK|>", "pad_token": "<|PAD|>",
    "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})"));
}

TEST_CASE("tokenizer_config names the class and the special tokens with their ids") {
  const Json config = tokenizer_config(tokenizer(), 512);
  REQUIRE(config["tokenizer_class"] == "PreTrainedTokenizerFast");
  REQUIRE(config["model_max_length"] == 512);
  REQUIRE(config["clean_up_tokenization_spaces"] == false);
  REQUIRE(config["eos_token"] == "<|EOS|>");
  REQUIRE(config["added_tokens_decoder"].size() == 6);
  REQUIRE(config["added_tokens_decoder"]["2"]["content"] == "<|EOS|>");
  REQUIRE(config["added_tokens_decoder"]["2"]["special"] == true);
}

TEST_CASE("generation ends at EOS and where the next document would begin") {
  REQUIRE(Json(generation_config(tokenizer())) ==
          Json::parse(R"({"bos_token_id": 0, "eos_token_id": [2, 0], "pad_token_id": 1})"));
}

TEST_CASE("a vocabulary without special tokens gives none") {
  data::Vocabulary vocabulary = data::initial_vocabulary();
  std::fill(vocabulary.special.begin(), vocabulary.special.end(), 0);
  vocabulary.bos_id = vocabulary.pad_id = vocabulary.eos_id = vocabulary.unk_id = -1;
  const data::Tokenizer plain(vocabulary);
  REQUIRE(Json(special_tokens_map(plain)) == Json::object());
  REQUIRE(Json(generation_config(plain)) == Json::object());
}

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
  source.folder.write("out/model-00001-of-00009.safetensors", "x");
  ExportOptions options;
  options.replace = true;
  source.write(options);
  REQUIRE_FALSE(fs::exists(source.folder / "out/model-00001-of-00009.safetensors"));
  REQUIRE(fs::exists(source.folder / "out/config.json"));
  REQUIRE(source.entries() == std::vector<std::string>{"checkpoints", "out", "tokenizer.json"});
}

TEST_CASE("a folder that is there keeps its rights, and an empty one stays the same folder") {
  const Source source;
  const fs::path out = source.folder / "out";
  make_directories(out);
  constexpr mode_t own = S_IFDIR | S_ISGID | S_IRWXU;
  const auto status_of = [&] {
    struct stat status {};
    REQUIRE(::stat(out.c_str(), &status) == 0);
    return status;
  };
  REQUIRE(::chmod(out.c_str(), own) == 0);
  if (::geteuid() == 0) REQUIRE(::chown(out.c_str(), 1000, 1000) == 0);
  const struct stat before = status_of();
  const fs::path here = fs::current_path();
  fs::current_path(out);
  ExportOptions options;
  const std::string first = error_of([&] { export_model(source.source, ".", options); });
  const bool is_seen = fs::exists("config.json");
  options.replace = true;
  const std::string again = error_of([&] { export_model(source.source, ".", options); });
  fs::current_path(here);
  CHECK(first.empty());
  CHECK(is_seen);
  CHECK(status_of().st_ino == before.st_ino);
  CHECK(contains(again, "is the current folder, and a model folder is replaced as a whole"));
  source.write(options);
  CHECK(status_of().st_mode == before.st_mode);
  CHECK(status_of().st_uid == before.st_uid);
  CHECK(status_of().st_gid == before.st_gid);
  CHECK(source.entries() == std::vector<std::string>{"checkpoints", "out", "tokenizer.json"});
  for (const fs::path& entry : folder_entries(out)) CHECK(fs::is_regular_file(entry));
}

TEST_CASE("a link that leads nowhere is named") {
  const Source source;
  fs::create_directory_symlink(source.folder / "away", source.folder / "out");
  const std::string fault = source.fault();
  CHECK(contains(fault, "is a link to a folder that is not there"));
  CHECK(contains(fault, "hint: make that folder"));
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
  // A project's folder has a config.json too, and a model folder may have got other files.
  const Source project;
  project.folder.write("out/config.json", R"({"my": "settings"})");
  REQUIRE(contains(project.fault(options), "because of 'config.json'"));
  for (const char* name : {"thesis.tex", ".notes", "other.safetensors"}) {
    const Source mixed;
    mixed.write();
    mixed.folder.write(std::string("out/") + name, "x");
    REQUIRE(contains(mixed.fault(options), std::string("because of '") + name + "'"));
    REQUIRE(fs::exists(mixed.folder / "out" / name));
  }
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

using tests::contains;
using tests::error_of;
using tests::small_model;
using tests::TemporaryFolder;
using Json = nlohmann::json;

/// A model folder as export_model writes it, below a temporary one.
class ModelFolder {
 public:
  explicit ModelFolder(const model::ModelConfig& model = small_model(),
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
  model::ModelConfig canon = small_model();
  canon.canon.set = "ABCD";
  canon.attention.qk_norm = model::QkNorm::per_head;
  canon.attention.position.kind = model::PositionKind::nope;
  canon.tie_embeddings = true;
  for (const model::ModelConfig& model : {small_model(), canon}) {
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

TEST_CASE("ids of config.json that are not the tokenizer's are noted") {
  const ModelFolder folder;
  folder.change_config(R"({"eos_token_id": [77, 78], "bos_token_id": null})");
  const ImportedModel model = import_model(folder.path());
  REQUIRE(model.notes.size() == 1);
  CHECK(contains(model.notes[0], "eos_token_id 77 of config.json is not that of the tokenizer"));
  CHECK(contains(model.notes[0], "forge goes by the tokenizer"));
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
  REQUIRE(contains(folder.fault(), "nested more than 100 deep"));
  folder.write("config.json", std::string(10'000'001, ' '));
  REQUIRE(contains(folder.fault(), "is too large"));
  fs::remove(folder.path() / "config.json");
  const std::string fault = folder.fault();
  REQUIRE(contains(fault, "config.json"));
  REQUIRE(fault.find("config.json") == fault.rfind("config.json"));
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
}  // namespace forge::huggingface
