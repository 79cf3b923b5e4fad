#include <cmath>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/weights/checkpoint.h"
#include "core/model/weights/dtype.h"
#include "core/model/weights/model_files.h"
#include "tests/core/huggingface/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;
using Json = nlohmann::json;

/// Four tensors of 40 bytes in float32: a, b, c, d.
struct FourTensors {
  FourTensors() {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8;
    for (size_t i = 0; i < 4; ++i) {
      tensors[std::string(1, static_cast<char>('a' + i))] = {
          Dtype::f32, {2, 5}, reinterpret_cast<const std::byte*>(values.data() + 10 * i), 40};
    }
  }
  std::vector<float> values = std::vector<float>(40);
  std::map<std::string, TensorView> tensors;
};

std::vector<std::string> names_of(const std::vector<WrittenFile>& files) {
  std::vector<std::string> names;
  for (const WrittenFile& file : files) names.push_back(file.name);
  return names;
}

TEST_CASE("values that are not finite are named in every dtype", "[weights]") {
  FourTensors four;
  REQUIRE(not_finite_text(four.tensors).empty());
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    FourTensors broken;
    broken.values[13] = std::nanf("");
    broken.values[17] = -std::numeric_limits<float>::infinity();
    std::vector<std::byte> converted(10 * bytes_of(dtype));
    convert(broken.tensors.at("b"), 0, 10, dtype, converted.data());
    broken.tensors["b"] = {dtype, {2, 5}, converted.data(), converted.size()};
    REQUIRE(not_finite_text(broken.tensors) == "2 of 10 values of 'b' are NaN or infinite");
    broken.values[39] = std::nanf("");
    REQUIRE(not_finite_text(broken.tensors) ==
            "2 of 10 values of 'b' are NaN or infinite, and values of 1 other tensor");
  }
  const std::vector<double> wide = {1e300, std::nan("")};
  const TensorView doubles{Dtype::f64, {2}, reinterpret_cast<const std::byte*>(wide.data()), 16};
  REQUIRE(not_finite_text({{"wide", doubles}}) == "1 of 2 values of 'wide' are NaN or infinite");
  const std::vector<int64_t> ids = {-1, 0x7ff0'0000'0000'0000};
  REQUIRE(not_finite_text(
              {{"ids", {Dtype::i64, {2}, reinterpret_cast<const std::byte*>(ids.data()), 16}}})
              .empty());
}

/// A model of two shards, whose index the test may change.
class Sharded {
 public:
  Sharded() {
    write_model_files(folder.path(), sample.tensors, std::nullopt, 80);
    index = Json::parse(read_file(folder / model_index_file));
  }
  std::string fault() const {
    write_file_atomic(folder / model_index_file, index.dump());
    return error_of([&] { ModelFiles{folder.path()}; });
  }
  TemporaryFolder folder;
  FourTensors sample;
  Json index;
};

TEST_CASE("a small model is one file with the metadata that transformers asks for") {
  const TemporaryFolder folder;
  const FourTensors sample;
  REQUIRE(names_of(write_model_files(folder.path(), sample.tensors)) ==
          std::vector<std::string>{"model.safetensors"});
  REQUIRE(SafetensorsFile(folder / "model.safetensors").metadata().at("format") == "pt");
  const ModelFiles files(folder.path());
  REQUIRE(content_hash(files.tensors()) == content_hash(sample.tensors));
}

TEST_CASE("a large model is sharded by size and comes back whole") {
  const Sharded model;
  REQUIRE(fs::exists(model.folder / "model-00001-of-00002.safetensors"));
  REQUIRE(model.index["metadata"]["total_size"] == 160);
  REQUIRE(model.index["weight_map"]["b"] == "model-00001-of-00002.safetensors");
  REQUIRE(model.index["weight_map"]["c"] == "model-00002-of-00002.safetensors");
  const ModelFiles files(model.folder.path());
  REQUIRE(files.paths().size() == 2);
  REQUIRE(content_hash(files.tensors()) == content_hash(model.sample.tensors));
}

TEST_CASE("a tensor beyond the limit has a file of its own") {
  const TemporaryFolder folder;
  const FourTensors sample;
  REQUIRE(write_model_files(folder.path(), sample.tensors, std::nullopt, 1).size() == 5);
  REQUIRE(ModelFiles(folder.path()).tensors().size() == 4);
  REQUIRE(
      contains(error_of([&] { write_model_files(folder.path(), sample.tensors, std::nullopt, 0); }),
               "0 bytes"));
}

TEST_CASE("tensors are converted on their way into the files and sizes follow") {
  const TemporaryFolder folder;
  const FourTensors sample;
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    REQUIRE(write_model_files(folder.path(), sample.tensors, dtype, 80).size() == 1);
    const ModelFiles files(folder.path());
    REQUIRE(files.tensors().at("d").dtype == dtype);
    REQUIRE(to_float32(files.tensors().at("d")) == to_float32(sample.tensors.at("d")));
  }
}

TEST_CASE("a tensor larger than one piece of the conversion keeps every value") {
  const TemporaryFolder folder;
  std::vector<float> values(200'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256);
  const TensorView tensor = {
      Dtype::f32, {200'001}, reinterpret_cast<const std::byte*>(values.data()), 4 * values.size()};
  write_model_files(folder.path(), {{"a", tensor}}, Dtype::bf16);
  REQUIRE(to_float32(ModelFiles(folder.path()).tensors().at("a")) == values);
}

TEST_CASE("a value beyond the range of the dtype names the tensor and leaves no file") {
  const TemporaryFolder folder;
  FourTensors sample;
  sample.values[25] = 1e6f;
  REQUIRE(contains(error_of([&] { write_model_files(folder.path(), sample.tensors, Dtype::f16); }),
                   "tensor 'c' has the value 1000000.0, beyond the range of F16"));
  REQUIRE(fs::is_empty(folder.path()));
}

TEST_CASE("the weights of a checkpoint are a model's too") {
  const TemporaryFolder folder;
  const FourTensors sample;
  const fs::path checkpoint = write_checkpoint(folder.path(), {}, sample.tensors, {});
  REQUIRE(content_hash(ModelFiles(checkpoint).tensors()) == content_hash(sample.tensors));
}

TEST_CASE("a folder without safetensors is refused and a pickle is explained") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_of([&] { ModelFiles{folder.path()}; }),
                   "has neither model.safetensors nor model.safetensors.index.json"));
  folder.write("pytorch_model.bin", "");
  REQUIRE(contains(error_of([&] { ModelFiles{folder.path()}; }), "is a pickle"));
}

TEST_CASE("an index that is no index is refused") {
  const Sharded model;
  const auto fault = [&](const std::string& text) {
    write_file_atomic(model.folder / model_index_file, text);
    return error_of([&] { ModelFiles{model.folder.path()}; });
  };
  REQUIRE(contains(fault("{"), "is not a JSON object"));
  REQUIRE(contains(fault("[]"), "is not a JSON object"));
  REQUIRE(contains(fault(std::string(100'000, '[')), "nested more than 100 deep"));
  REQUIRE(contains(fault("{}"), "has no object 'weight_map'"));
  REQUIRE(contains(fault(R"({"weight_map":[]})"), "has no object 'weight_map'"));
  REQUIRE(contains(fault(R"({"weight_map":{"a":1}})"), "gives 'a' a file that is no text"));
}

TEST_CASE("an index cannot name a file outside its folder") {
  Sharded model;
  for (const char* name :
       {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", ".safetensors", "x.bin", ""}) {
    model.index["weight_map"]["a"] = name;
    REQUIRE(contains(model.fault(), "which is no .safetensors file beside it"));
  }
}

TEST_CASE("an index and its files must agree") {
  Sharded model;
  model.index["weight_map"].erase("b");
  REQUIRE(contains(model.fault(), "does not place 'b' in 'model-00001-of-00002.safetensors'"));
  model.index["weight_map"]["b"] = "model-00002-of-00002.safetensors";
  REQUIRE(contains(model.fault(), "does not place 'b' in 'model-00001-of-00002.safetensors'"));
  model.index["weight_map"]["b"] = "model-00001-of-00002.safetensors";
  model.index["weight_map"]["e"] = "model-00002-of-00002.safetensors";
  REQUIRE(contains(model.fault(), "places 'e' in 'model-00002-of-00002.safetensors', which does"));
  model.index["weight_map"]["e"] = "model-00003-of-00003.safetensors";
  REQUIRE(contains(model.fault(), "model-00003-of-00003.safetensors"));
}

TEST_CASE("two files cannot hold the same tensor") {
  Sharded model;
  const FourTensors other;
  write_safetensors(model.folder / "model-00002-of-00002.safetensors", other.tensors);
  REQUIRE(contains(model.fault(), "does not place 'a' in 'model-00002-of-00002.safetensors'"));
}

TEST_CASE("the hash tells names and shapes and dtypes and values apart") {
  FourTensors sample;
  const std::string before = content_hash(sample.tensors);
  sample.tensors["a"].shape = {5, 2};
  REQUIRE(content_hash(sample.tensors) != before);
  sample.tensors["a"].shape = {2, 5};
  sample.tensors["a"].dtype = Dtype::i32;
  REQUIRE(content_hash(sample.tensors) != before);
  sample.tensors["a"].dtype = Dtype::f32;
  REQUIRE(content_hash(sample.tensors) == before);
  sample.values[3] += 1;
  REQUIRE(content_hash(sample.tensors) != before);
}

}  // namespace
}  // namespace forge::weights

namespace forge::huggingface {
namespace {

using tests::contains;
using tests::SampleWeights;
using tests::small_model;

/// What model_weights says of the sample's weights after a change, "" where it takes them.
template <class Change>
std::string fault_after(const model::ModelConfig& model, Change change) {
  SampleWeights sample(model);
  change(sample.views);
  return tests::error_of([&] { model_weights(model, sample.views); });
}

using Views = std::map<std::string, weights::TensorView>;

TEST_CASE("the weights of a model are taken as they are") {
  for (const char* set : {"", "ABCD"}) {
    model::ModelConfig model = small_model();
    model.canon.set = set;
    model.attention.qk_norm = model::QkNorm::full;
    const SampleWeights sample(model);
    REQUIRE(model_weights(model, sample.views).size() == sample.views.size());
  }
}

TEST_CASE("missing and unexpected and misshapen weights are named at once") {
  const std::string fault = fault_after(small_model(), [](Views& views) {
    views["model.layers.0.mlp.gate.weight"] = views["model.layers.0.mlp.gate_proj.weight"];
    views.erase("model.layers.0.mlp.gate_proj.weight");
    views["model.norm.weight"].shape = {2, 4};
    views["model.layers.1.self_attn.q_proj.weight"].dtype = weights::Dtype::i32;
  });
  REQUIRE(contains(fault, "missing 1: 'model.layers.0.mlp.gate_proj.weight'"));
  REQUIRE(contains(fault, "of another shape 1: 'model.norm.weight' [2, 4] instead of [8]"));
  REQUIRE(contains(fault, "numbers 1: 'model.layers.1.self_attn.q_proj.weight' I32"));
  REQUIRE(contains(fault, "unexpected 1: 'model.layers.0.mlp.gate.weight'"));
}

TEST_CASE("of many names some are shown") {
  const std::string fault = fault_after(small_model(), [](Views& views) { views.clear(); });
  REQUIRE(contains(fault, "missing 21: 'model.embed_tokens.weight', "));
  REQUIRE(contains(fault, ", …"));
}

TEST_CASE("a bias is unexpected and the reason is given") {
  const std::string fault = fault_after(small_model(), [](Views& views) {
    views["model.layers.0.self_attn.q_proj.bias"] = views["model.norm.weight"];
  });
  REQUIRE(contains(fault, "forge's layers have no bias"));
}

TEST_CASE("buffers of rotary frequencies are set aside") {
  REQUIRE(fault_after(small_model(), [](Views& views) {
            views["model.layers.0.self_attn.rotary_emb.inv_freq"] = views["model.norm.weight"];
            views["model.rotary_emb.inv_freq"] = views["model.norm.weight"];
          }).empty());
}

TEST_CASE("a tied model needs no lm_head and an untied one does") {
  model::ModelConfig tied = small_model();
  tied.tie_embeddings = true;
  REQUIRE(fault_after(tied, [](Views&) {}).empty());
  REQUIRE(fault_after(tied, [](Views& views) {
            views["lm_head.weight"] = views["model.embed_tokens.weight"];
          }).empty());
  const std::string fault =
      fault_after(small_model(), [](Views& views) { views.erase("lm_head.weight"); });
  REQUIRE(contains(fault, "missing 1: 'lm_head.weight'"));
  REQUIRE(contains(fault, "tie_word_embeddings"));
}

}  // namespace
}  // namespace forge::huggingface
