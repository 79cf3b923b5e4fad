#include "core/hf/model_weights.h"

#include "tests/core/hf/sample_model.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::hf {
namespace {

using tests::contains;
using tests::SampleWeights;
using tests::small_model;

/// What model_weights says of the sample's weights after a change, "" where it takes them.
template <class Change>
std::string fault_after(const config::ModelConfig& model, Change change) {
  SampleWeights sample(model);
  change(sample.views);
  return tests::error_of([&] { model_weights(model, sample.views); });
}

using Views = std::map<std::string, weights::TensorView>;

TEST_CASE("the weights of a model are taken as they are") {
  for (const char* set : {"", "ABCD"}) {
    config::ModelConfig model = small_model();
    model.canon.set = set;
    model.qk_norm = config::QkNorm::full;
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
  config::ModelConfig tied = small_model();
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
}  // namespace forge::hf
