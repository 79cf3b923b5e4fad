#include "core/hf/model_config.h"
#include "tests/core/hf/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::hf {
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
  const config::ModelConfig& model = read.model;
  REQUIRE(model.vocab_size == 32000);
  REQUIRE(model.hidden_size == 64);
  REQUIRE(model.intermediate_size == 176);
  REQUIRE(model.num_layers == 2);
  REQUIRE(model.num_heads == 8);
  REQUIRE(model.num_kv_heads == 2);
  REQUIRE(model.head_dim == 8);
  REQUIRE(model.rms_norm_eps == 1e-5);
  REQUIRE(model.position.theta == 500000);
  REQUIRE(model.tie_embeddings);
  REQUIRE(model.canon.set.empty());
  REQUIRE(read.max_positions == 4096);
  REQUIRE(read.architecture == Architecture::llama);
}

TEST_CASE("keys that old files lack have the values of the architecture's code") {
  const ReadConfig read = read_with(llama(), R"({"num_key_value_heads": null, "rope_theta": null,
      "rms_norm_eps": null, "tie_word_embeddings": null, "max_position_embeddings": null,
      "architectures": null})");
  REQUIRE(read.model.num_kv_heads == 8);
  REQUIRE(read.model.position.theta == 10000);
  REQUIRE(read.model.rms_norm_eps == 1e-6);
  REQUIRE_FALSE(read.model.tie_embeddings);
  REQUIRE(read.max_positions == 2048);
  REQUIRE(read_with(llama(), R"({"head_dim": 16})").model.head_dim == 16);
  REQUIRE(read_with(llama_canon(), R"({"intermediate_size": null})").model.intermediate_size ==
          170);
}

TEST_CASE("the keys of a LlamaCanon become its options") {
  const config::ModelConfig model =
      read_with(llama_canon(), R"({"canon_set": "DA", "canon_bias": false, "canon_kernel": 3,
          "canon_activation": true, "canon_residual": false, "qk_norm": true, "rope_dim": 4,
          "partial_rotary_factor": 0.5, "rope_version": "lingua"})")
          .model;
  REQUIRE(model.canon.set == "AD");
  REQUIRE(model.canon.kernel == 3);
  REQUIRE(model.canon.activation == config::Activation::silu);
  REQUIRE_FALSE(model.canon.residual);
  REQUIRE(model.qk_norm == config::QkNorm::full);
  REQUIRE(model.position.rope_dim == 4);
  REQUIRE(model.position.pairing == config::RopePairing::lingua);
  const config::ModelConfig plain = read_config(llama_canon()).model;
  REQUIRE(plain.canon.set.empty());
  REQUIRE(plain.canon.kernel == 4);
  REQUIRE(plain.qk_norm == config::QkNorm::none);
  REQUIRE_FALSE(plain.position.rope_dim);
  REQUIRE_FALSE(read_with(llama_canon(), R"({"rope_dim": 8})").model.position.rope_dim);
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
  REQUIRE(read_with(llama(), change).model.position.theta == 1e6);
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
  REQUIRE(contains(fault_of(R"({"model_type": null})"), "forge reads llama and LlamaCanon"));
  REQUIRE(contains(fault_of(R"({"architectures": ["LlamaForSequenceClassification"]})"),
                   "architectures is \"LlamaForSequenceClassification\" where model_type llama"));
  REQUIRE(contains(fault_of(R"({"architectures": "LlamaForCausalLM"})"), "architectures is"));
  REQUIRE(contains(fault_of(R"({"architectures": []})"), "architectures is a list"));
}

TEST_CASE("a value under which transformers computes something else is refused with the reason") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"hidden_act": "gelu"})", "'hidden_act' is \"gelu\""},
      {R"({"attention_bias": true})", "'attention_bias' is true"},
      {R"({"mlp_bias": true})", "projections have no bias"},
      {R"({"sliding_window": 4096})", "attention sees the whole row"},
      {R"({"quantization_config": {"bits": 4}})", "'quantization_config' is an object"},
      {R"({"partial_rotary_factor": 0.5})", "Llama rotates whole heads"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})", "'rope_scaling' has factor"},
      {R"({"rope_scaling": {"type": "linear"}})", "'rope_scaling' has type \"linear\""},
      {R"({"rope_parameters": {"rope_type": "yarn"}})", "has rope_type \"yarn\""},
      {R"({"rope_scaling": 2})", "'rope_scaling' is 2"}};
  for (const auto& [change, reason] : cases) {
    INFO(change);
    REQUIRE(contains(fault_of(change), reason));
  }
  REQUIRE(contains(fault_of(llama_canon(), R"({"canon_bias": true})"), "'canon_bias' is true"));
  REQUIRE(contains(fault_of(llama_canon(), R"({"canon_set": "A", "canon_kernel": 7})"),
                   "'canon_kernel' is 7"));
  REQUIRE(
      read_with(llama(), R"({"hidden_act": "swish", "attention_bias": false})").model.num_heads ==
      8);
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
      {R"({"head_dim": 7})", "rotate 7 of a head's 7 channels"},
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
  REQUIRE(
      read_with(json, R"({"forge_model": {"position": {"kind": "nope"}}})").model.position.kind ==
      config::PositionKind::nope);
  REQUIRE(contains(fault(R"({"forge_model": {"colour": 1}})"), "unknown key 'model.colour'"));
  REQUIRE(contains(fault(R"({"forge_model": {"qk_norm": "both"}})"), "'both' is not one of"));
  REQUIRE(contains(fault(R"({"forge_model": 3})"), "'forge_model'"));
  REQUIRE(contains(fault(R"({"forge_model": {"num_layers": 0}})"), "model.num_layers would be"));
  REQUIRE(contains(fault(R"({"forge_model": {"num_kv_heads": 3}})"), "cannot be shared evenly"));
  REQUIRE(contains(fault(R"({"forge_model": {"position": {"rope_dim": 64}}})"), "rotate 64 of"));
  REQUIRE(contains(fault(R"({"forge_model": {"canon": {"set": "CA"}}})"), "canon.set is 'CA'"));
  REQUIRE(contains(fault(R"({"forge_model": {"canon": {"kernel": 9}}})"), "model.kernel"));
}

}  // namespace
}  // namespace forge::hf
