#include "core/model/arithmetic.h"

#include "core/model/parameters.h"
#include "tests/core/model/models.h"
#include "tests/support/catch.h"

namespace forge::model {
namespace {

using config::ModelConfig;

TEST_CASE("weights are counted by part") {
  ModelConfig model = tests::llama_4m();
  model.canon.set = "ABCD";
  model.qk_norm = config::QkNorm::per_head;
  const ParameterCounts counts = count_parameters(model);
  REQUIRE(counts.embedding == 2000 * 256);
  REQUIRE(counts.lm_head == 2000 * 256);
  REQUIRE(counts.attention == 4 * 4 * 256 * 256);
  REQUIRE(counts.mlp == 4 * 3 * 256 * 768);
  REQUIRE(counts.canon == 4 * 4 * (256 + 768 + 256 + 1536));
  REQUIRE(counts.norm == 4 * (2 * 256 + 2 * 64) + 256);
  REQUIRE(counts.total() == parameter_count(model));
}

TEST_CASE("a tied embedding is counted once") {
  ModelConfig model = tests::llama_4m();
  model.tie_embeddings = true;
  const ParameterCounts counts = count_parameters(model);
  REQUIRE(counts.embedding == 512'000);
  REQUIRE(counts.lm_head == 0);
}

TEST_CASE("operations of Llama 4M at 512 tokens are those counted by hand") {
  // 3,407,872 weights of the blocks' matrices, 512,000 of lm_head; scores and weighted sums:
  // 4 layers x 2 products x 256 channels x 256 keys on average = 524,288.
  const TokenFlops flops = flops_per_token(tests::llama_4m(), 512);
  REQUIRE(flops.forward == 2 * (3'407'872 + 512'000 + 524'288));
  REQUIRE(flops.backward == 2 * flops.forward);
  REQUIRE(flops.total() == 26'664'960);
}

TEST_CASE("Canon costs two operations a tap and channel") {
  ModelConfig model = tests::llama_4m();
  const double plain = flops_per_token(model, 512).forward;
  model.canon.set = "AC";
  model.canon.kernel = 3;
  REQUIRE(flops_per_token(model, 512).forward - plain == 4 * 2 * 3 * (256 + 256));
}

TEST_CASE("tying the embedding saves weights and no operations") {
  ModelConfig model = tests::llama_4m();
  const double untied = flops_per_token(model, 128).forward;
  model.tie_embeddings = true;
  REQUIRE(flops_per_token(model, 128).forward == untied);
}

TEST_CASE("fewer key heads save projections and no scores") {
  ModelConfig model = tests::llama_4m();
  const double full = flops_per_token(model, 512).forward;
  model.num_kv_heads = 1;
  REQUIRE(full - flops_per_token(model, 512).forward == 4 * 2 * 2 * 256 * 192);
}

TEST_CASE("state bytes follow the precision") {
  const ModelConfig model = tests::llama_4m();
  const StateBytes single = state_bytes(model, config::Precision::float32);
  REQUIRE(single.weights == 4 * 4'434'176);
  REQUIRE(single.gradients == single.weights);
  REQUIRE(single.adamw == 2 * single.weights);
  REQUIRE(single.total() == 16 * 4'434'176);
  REQUIRE(state_bytes(model, config::Precision::float64).total() == 2 * single.total());
  REQUIRE(2 * state_bytes(model, config::Precision::bfloat16).total() == single.total());
}

}  // namespace
}  // namespace forge::model
