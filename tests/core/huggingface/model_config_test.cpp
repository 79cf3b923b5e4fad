#include "core/huggingface/model_config.h"
#include "core/config/experiment.h"
#include "tests/core/huggingface/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::huggingface {
namespace {

using Json = nlohmann::json;
using tests::contains;

Json llama() {
  return Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 32000, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": true, "max_position_embeddings": 4096})");
}

Json llama_canon() {
  Json json = llama();
  json["architectures"] = {"LlamaCanonForCausalLM"};
  json["model_type"] = "LlamaCanon";
  return json;
}

ReadConfig read_with(Json json, const char* change) {
  json.merge_patch(Json::parse(change));
  return read_config(json);
}

std::string fault_of(Json json, const char* change) {
  json.merge_patch(Json::parse(change));
  return tests::error_of([&] { read_config(json); });
}

std::string fault_of(const char* change) { return fault_of(llama(), change); }

TEST_CASE("the keys of a Llama become a model") {
  const ReadConfig read = read_config(llama());
  const model::ModelConfig& model = read.model;
  REQUIRE(model.vocab_size == 32000);
  REQUIRE(model.hidden_size == 64);
  REQUIRE(model.mlp.intermediate_size == 176);
  REQUIRE(model.num_layers == 2);
  REQUIRE(model.attention.num_heads == 8);
  REQUIRE(model.attention.num_kv_heads == 2);
  REQUIRE(model.attention.head_dim == 8);
  REQUIRE(model.norm.eps == 1e-5);
  REQUIRE(model.attention.position.theta == 500000);
  REQUIRE(model.tie_embeddings);
  REQUIRE(model.canon.set.empty());
  REQUIRE(read.max_positions == 4096);
  REQUIRE(read.architecture == Architecture::llama);
}

TEST_CASE("keys that old files lack have the values of the architecture's code") {
  const ReadConfig read = read_with(llama(), R"({"num_key_value_heads": null, "rope_theta": null,
      "rms_norm_eps": null, "tie_word_embeddings": null, "max_position_embeddings": null,
      "architectures": null})");
  REQUIRE(read.model.attention.num_kv_heads == 8);
  REQUIRE(read.model.attention.position.theta == 10000);
  REQUIRE(read.model.norm.eps == 1e-6);
  REQUIRE_FALSE(read.model.tie_embeddings);
  REQUIRE(read.max_positions == 2048);
  REQUIRE(read_with(llama(), R"({"head_dim": 16})").model.attention.head_dim == 16);
  REQUIRE(read_with(llama_canon(), R"({"intermediate_size": null})").model.mlp.intermediate_size ==
          170);
}

TEST_CASE("the keys of a LlamaCanon become its options") {
  const model::ModelConfig model =
      read_with(llama_canon(), R"({"canon_set": "DA", "canon_bias": false, "canon_kernel": 3,
          "canon_activation": true, "canon_residual": false, "qk_norm": true, "rope_dim": 4,
          "partial_rotary_factor": 0.5, "rope_version": "lingua"})")
          .model;
  REQUIRE(model.canon.set == "AD");
  REQUIRE(model.canon.kernel == 3);
  REQUIRE(model.canon.activation == model::Activation::silu);
  REQUIRE_FALSE(model.canon.residual);
  REQUIRE(model.attention.qk_norm == model::QkNorm::full);
  REQUIRE(model.attention.position.rope_dim == 4);
  REQUIRE(model.attention.position.pairing == model::RopePairing::lingua);
  const model::ModelConfig plain = read_config(llama_canon()).model;
  REQUIRE(plain.canon.set.empty());
  REQUIRE(plain.canon.kernel == 4);
  REQUIRE(plain.attention.qk_norm == model::QkNorm::none);
  REQUIRE_FALSE(plain.attention.position.rope_dim);
  REQUIRE_FALSE(read_with(llama_canon(), R"({"rope_dim": 8})").model.attention.position.rope_dim);
}

TEST_CASE("letters that LlamaCanon passes over are passed over and noted") {
  const ReadConfig read = read_with(llama_canon(), R"({"canon_set": "AbbCA"})");
  REQUIRE(read.model.canon.set == "AC");
  REQUIRE(read.notes.size() == 1);
  REQUIRE(contains(read.notes[0], "canon_set 'AbbCA' is 'AC'"));
}

TEST_CASE("rope_parameters of transformers 5 is read") {
  const char* change =
      R"({"rope_theta": null, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}})";
  REQUIRE(read_with(llama(), change).model.attention.position.theta == 1e6);
  REQUIRE(read_with(llama(), R"({"rope_scaling": {"type": "default"}})").model.num_layers == 2);
}

TEST_CASE("keys without effect are silent and unknown ones are named") {
  const ReadConfig read = read_with(llama(), R"({"torch_dtype": "bfloat16", "use_cache": false,
      "transformers_version": "4.47.0", "pretraining_tp": 1, "bos_token_id": [1, 2],
      "my_key": 1, "other": {"deep": []}})");
  REQUIRE(read.unknown == std::vector<std::string>{"my_key", "other"});
  REQUIRE(read.notes.empty());
  REQUIRE(read_with(llama(), R"({"attention_dropout": 0.1})").notes.size() == 1);
}

TEST_CASE("another architecture is refused") {
  REQUIRE(contains(fault_of(R"({"model_type": "mistral"})"), "model_type is 'mistral'"));
  REQUIRE(contains(fault_of(R"({"model_type": null})"), "forge reads llama, LlamaCanon, GLACanon"));
  REQUIRE(contains(fault_of(R"({"architectures": ["LlamaForSequenceClassification"]})"),
                   "architectures is \"LlamaForSequenceClassification\" where model_type llama"));
  REQUIRE(contains(fault_of(R"({"architectures": "LlamaForCausalLM"})"), "architectures is"));
  REQUIRE(contains(fault_of(R"({"architectures": []})"), "architectures is a list"));
}

TEST_CASE("a value under which transformers computes something else is refused with the reason") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"hidden_act": "gelu_new"})", "'hidden_act' is \"gelu_new\""},
      {R"({"attention_bias": true})", "'attention_bias' is true"},
      {R"({"mlp_bias": true})", "projections have no bias"},
      {R"({"sliding_window": 4096})", "attention sees the whole row"},
      {R"({"quantization_config": {"bits": 4}})", "'quantization_config' is an object"},
      {R"({"partial_rotary_factor": 0.5})", "Llama rotates whole heads"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})", "'rope_scaling' has factor"},
      {R"({"rope_scaling": {"type": "linear"}})", "'rope_scaling' has type \"linear\""},
      {R"({"rope_parameters": {"rope_type": "yarn"}})", "has rope_type \"yarn\""},
      {R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}})",
       "rope_theta is 10000, and in rope_parameters 500000"},
      {R"({"rope_scaling": 2})", "'rope_scaling' is 2"}};
  for (const auto& [change, reason] : cases) {
    INFO(change);
    REQUIRE(contains(fault_of(change), reason));
  }
  REQUIRE(contains(fault_of(llama_canon(), R"({"canon_bias": true})"), "'canon_bias' is true"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"canon_set": "A", "canon_kernel": 7})"),
                   "'canon_kernel' is 7"));
  REQUIRE(read_with(llama(), R"({"hidden_act": "swish", "attention_bias": false})")
              .model.attention.num_heads == 8);
}

TEST_CASE("sizes that make no model are refused by name") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"hidden_size": null})", "'hidden_size' is missing"},
      {R"({"vocab_size": 0})", "'vocab_size' is 0, not a size from 1 on"},
      {R"({"vocab_size": -5})", "'vocab_size' is -5"},
      {R"({"num_hidden_layers": 2.5})", "'num_hidden_layers' is 2.5"},
      {R"({"num_hidden_layers": "two"})", "'num_hidden_layers' is \"two\""},
      {R"({"hidden_size": 18446744073709551615})", "'hidden_size' is 18446744073709551615"},
      {R"({"num_hidden_layers": 1000000})", "model.num_layers would be"},
      {R"({"num_attention_heads": 6, "num_key_value_heads": 3})", "does not divide hidden_size 64"},
      {R"({"num_key_value_heads": 3})", "does not divide num_attention_heads 8"},
      {R"({"head_dim": 7})", "model.attention.head_dim 7 is odd"},
      {R"({"rms_norm_eps": 0})", "'rms_norm_eps' is 0, not a number above 0"},
      {R"({"rope_theta": "big"})", "'rope_theta' is \"big\""},
      {R"({"tie_word_embeddings": 1})", "'tie_word_embeddings' is 1, not true or false"}};
  for (const auto& [change, reason] : cases) {
    INFO(change);
    REQUIRE(contains(fault_of(change), reason));
  }
  REQUIRE(contains(tests::error_of([] { read_config(Json::array()); }), "not a JSON object"));
}

TEST_CASE("rope_dim must be an even part of the head and agree with its factor") {
  REQUIRE(contains(fault_of(llama_canon(), R"({"rope_dim": 3})"), "'rope_dim' is 3"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"rope_dim": 10})"), "up to head_dim 8"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"rope_dim": 0})"), "'rope_dim' is 0"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"rope_dim": 4, "partial_rotary_factor": 0.25})"),
                   "disagrees with rope_dim 4"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"partial_rotary_factor": 0.25})"),
                   "disagrees with rope_dim null"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"rope_version": "meta"})"), "'rope_version'"));
}

TEST_CASE("keys of forge's own are held against its schema") {
  Json json = llama_canon();
  json["model_type"] = "forge_llama_canon";
  json["architectures"] = {"ForgeLlamaCanonForCausalLM"};
  const auto fault = [&](const char* change) { return fault_of(json, change); };
  REQUIRE(read_with(json, R"({"forge_model": {"attention": {"position": {"kind": "nope"}}}})")
              .model.attention.position.kind == model::PositionKind::nope);
  REQUIRE(contains(fault(R"({"forge_model": {"colour": 1}})"), "unknown key 'model.colour'"));
  REQUIRE(contains(fault(R"({"forge_model": {"attention": {"qk_norm": "both"}}})"),
                   "'both' is not one of"));
  REQUIRE(contains(fault(R"({"forge_model": 3})"), "'forge_model'"));
  REQUIRE(contains(fault(R"({"forge_model": {"num_layers": 0}})"), "model.num_layers would be"));
  REQUIRE(
      contains(fault(R"({"forge_model": {"attention": {"num_kv_heads": 3}}})"), "does not divide"));
  REQUIRE(contains(fault(R"({"forge_model": {"attention": {"position": {"rope_dim": 64}}}})"),
                   "rope_dim 64 is more than"));
  REQUIRE(read_with(json, R"({"forge_model": {"canon": {"set": "CA"}}})").model.canon.set == "AC");
  REQUIRE(contains(fault(R"({"forge_model": {"canon": {"set": "AA"}}})"), "'AA' has 'A' twice"));
  REQUIRE(contains(fault(R"({"forge_model": {"canon": {"kernel": 9}}})"), "model.canon.kernel"));
}

using model::ModelConfig;
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
  model.canon.activation = model::Activation::silu;
  model.attention.qk_norm = model::QkNorm::full;
  model.attention.position.rope_dim = 2;
  model.attention.position.pairing = model::RopePairing::lingua;
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
    if (option == 0) model.attention.qk_norm = model::QkNorm::full;
    if (option == 1) model.attention.position.rope_dim = 2;
    if (option == 2) model.attention.position.pairing = model::RopePairing::lingua;
    REQUIRE(write_config(model, facts).architecture == Architecture::llama_canon);
  }
}

TEST_CASE("what has no effect does not make a model another one") {
  ModelConfig model = small_model();
  model.attention.position.rope_dim = model.attention.head_dim;
  model.canon.kernel = 2;
  model.canon.residual = false;
  model.init = model::ModelInit::lingua;
  REQUIRE(written(model) == written(small_model()));
}

TEST_CASE("a rotation of all channels is kept where a layer with wider heads inherits it") {
  ModelConfig model = small_model();
  model.attention.position.rope_dim = model.attention.head_dim;
  const Json wider = {{"attention", {{"head_dim", 2 * *model.attention.position.rope_dim}}}};
  model.layers = {"attention", "attention"};
  model.layers[1].settings = wider.dump();
  const ReadConfig read = read_config(written(model));
  CHECK(read.model.attention.position.rope_dim == model.attention.position.rope_dim);
}

TEST_CASE("options without a key elsewhere get keys of forge's and a model_type of its own") {
  ModelConfig model = canon_model();
  model.attention.position.kind = model::PositionKind::nope;
  model.attention.qk_norm = model::QkNorm::per_head;
  const WrittenConfig config = write_config(model, facts);
  REQUIRE(config.architecture == Architecture::forge);
  REQUIRE(config.forge_keys == std::vector<std::string>{"model.attention.position.kind: nope",
                                                        "model.attention.qk_norm: per_head"});
  const Json json = config.json;
  REQUIRE(json["model_type"] == "forge_llama_canon");
  REQUIRE(json["architectures"] == Json{"ForgeLlamaCanonForCausalLM"});
  REQUIRE(json["forge_model"] ==
          Json::parse(R"({"attention": {"position": {"kind": "nope"}, "qk_norm": "per_head"}})"));
}

TEST_CASE("every combination of options comes back from its config.json") {
  int seen = 0;
  for (const char* set : {"", "A", "BD", "ABCD"}) {
    for (int bits = 0; bits < 256; ++bits) {
      ModelConfig model = small_model();
      model.canon.set = set;
      if (bits & 1 && *set) model.canon.kernel = 2;
      if (bits & 2 && *set) model.canon.residual = false;
      if (bits & 4 && *set) model.canon.activation = model::Activation::silu;
      // Settings of a rotation mean nothing without one.
      const bool rotates = !(bits & 8);
      if (!rotates) model.attention.position.kind = model::PositionKind::nope;
      if (rotates && bits & 16) model.attention.position.pairing = model::RopePairing::lingua;
      if (rotates && bits & 32) model.attention.position.rope_dim = 2;
      if (bits & 64) model.attention.qk_norm = model::QkNorm::full;
      if (bits & 128) {
        model.attention.qk_norm = model::QkNorm::per_head;
        model.tie_embeddings = true;
        if (rotates) model.attention.position.theta = 1e5;
        model.norm.eps = 1e-6;
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
}  // namespace forge::huggingface
