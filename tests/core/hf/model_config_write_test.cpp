#include "core/config/json.h"
#include "core/hf/model_config.h"
#include "tests/core/hf/sample_model.h"
#include "tests/support/catch.h"

namespace forge::hf {
namespace {

using config::ModelConfig;
using Json = nlohmann::json;
using tests::small_model;

const ConfigFacts facts = {512, "float32", 0, 2, 1};

Json written(const ModelConfig& model) { return Json(write_config(model, facts).json); }

Json tree_of(const ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment)["model"];
}

ModelConfig canon_model() {
  ModelConfig model = small_model();
  model.canon.set = "ABCD";
  return model;
}

TEST_CASE("a plain Llama has the keys of transformers and none of LlamaCanon or forge") {
  const WrittenConfig config = write_config(small_model(), facts);
  REQUIRE(config.architecture == Architecture::llama);
  REQUIRE(config.forge_keys.empty());
  REQUIRE(Json(config.json) == Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 270, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "hidden_act": "silu",
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "rope_scaling": null, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
    "tie_word_embeddings": false, "initializer_range": 0.02, "use_cache": true,
    "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "torch_dtype": "float32"})"));
}

TEST_CASE("a model without a tokenizer has no special tokens") {
  const Json json = write_config(small_model(), {512, "bfloat16", -1, -1, -1}).json;
  REQUIRE(json["bos_token_id"].is_null());
  REQUIRE(json["pad_token_id"].is_null());
  REQUIRE(json["torch_dtype"] == "bfloat16");
}

TEST_CASE("Canon layers are written with the keys of LlamaCanon") {
  ModelConfig model = canon_model();
  model.canon.set = "AC";
  model.canon.kernel = 3;
  model.canon.residual = false;
  model.canon.activation = config::Activation::silu;
  model.qk_norm = config::QkNorm::full;
  model.position.rope_dim = 2;
  model.position.pairing = config::RopePairing::lingua;
  const Json json = written(model);
  REQUIRE(json["architectures"] == Json{"LlamaCanonForCausalLM"});
  REQUIRE(json["model_type"] == "LlamaCanon");
  REQUIRE(json["canon_set"] == "AC");
  REQUIRE(json["canon_kernel"] == 3);
  REQUIRE(json["canon_residual"] == false);
  REQUIRE(json["canon_activation"] == true);
  REQUIRE(json["canon_bias"] == false);
  REQUIRE(json["qk_norm"] == true);
  REQUIRE(json["rope_version"] == "lingua");
  REQUIRE(json["rope_dim"] == 2);
  REQUIRE(json["partial_rotary_factor"] == 0.5);
  REQUIRE_FALSE(json.contains("forge_model"));
}

TEST_CASE("a model without Canon layers that stock Llama cannot compute is a LlamaCanon") {
  for (int option = 0; option < 3; ++option) {
    ModelConfig model = small_model();
    if (option == 0) model.qk_norm = config::QkNorm::full;
    if (option == 1) model.position.rope_dim = 2;
    if (option == 2) model.position.pairing = config::RopePairing::lingua;
    REQUIRE(write_config(model, facts).architecture == Architecture::llama_canon);
  }
}

TEST_CASE("what has no effect does not make a model another one") {
  ModelConfig model = small_model();
  model.position.rope_dim = model.head_dim;
  model.canon.kernel = 2;
  model.canon.residual = false;
  model.init = config::ModelInit::lingua;
  REQUIRE(written(model) == written(small_model()));
}

TEST_CASE("options without a key elsewhere get keys of forge's and a model_type of its own") {
  ModelConfig model = canon_model();
  model.position.kind = config::PositionKind::nope;
  model.qk_norm = config::QkNorm::per_head;
  const WrittenConfig config = write_config(model, facts);
  REQUIRE(config.architecture == Architecture::forge);
  REQUIRE(config.forge_keys ==
          std::vector<std::string>{"model.position.kind: nope", "model.qk_norm: per_head"});
  const Json json = config.json;
  REQUIRE(json["model_type"] == "forge_llama_canon");
  REQUIRE(json["architectures"] == Json{"ForgeLlamaCanonForCausalLM"});
  REQUIRE(json["forge_model"] ==
          Json::parse(R"({"position": {"kind": "nope"}, "qk_norm": "per_head"})"));
}

TEST_CASE("every combination of options comes back from its config.json") {
  int seen = 0;
  for (const char* set : {"", "A", "BD", "ABCD"}) {
    for (int bits = 0; bits < 256; ++bits) {
      ModelConfig model = small_model();
      model.canon.set = set;
      if (bits & 1 && *set) model.canon.kernel = 2;
      if (bits & 2 && *set) model.canon.residual = false;
      if (bits & 4 && *set) model.canon.activation = config::Activation::silu;
      if (bits & 8) model.position.kind = config::PositionKind::nope;
      if (bits & 16) model.position.pairing = config::RopePairing::lingua;
      if (bits & 32) model.position.rope_dim = 2;
      if (bits & 64) model.qk_norm = config::QkNorm::full;
      if (bits & 128) {
        model.qk_norm = config::QkNorm::per_head;
        model.tie_embeddings = true;
        model.position.theta = 1e5;
        model.rms_norm_eps = 1e-6;
      }
      const ReadConfig read = read_config(written(model));
      REQUIRE(tree_of(read.model) == tree_of(model));
      REQUIRE(read.max_positions == 512);
      REQUIRE(read.unknown.empty());
      REQUIRE(read.notes.empty());
      ++seen;
    }
  }
  REQUIRE(seen == 1024);
}

}  // namespace
}  // namespace forge::hf
