#include "core/model/cost.h"

#include <nlohmann/json.hpp>

#include "tests/core/model/models.h"
#include "tests/support/catch.h"

namespace forge::model {
namespace {

using model::ModelConfig;

TEST_CASE("weights are counted by part") {
  ModelConfig model = tests::llama_4m();
  model.canon.set = "ABCD";
  model.attention.qk_norm = model::QkNorm::per_head;
  const ParameterCounts counts = count_parameters(model);
  REQUIRE(counts.of("embedding") == 2000 * 256);
  REQUIRE(counts.of("lm_head") == 2000 * 256);
  REQUIRE(counts.of("attention") == 4 * 4 * 256 * 256);
  REQUIRE(counts.of("qk_norm") == 4 * 2 * 64);
  REQUIRE(counts.of("mlp") == 4 * 3 * 256 * 768);
  REQUIRE(counts.of("canon_a") == 4 * 4 * 256);
  REQUIRE(counts.of("canon_b") == 4 * 4 * 768);
  REQUIRE(counts.of("canon_c") == 4 * 4 * 256);
  REQUIRE(counts.of("canon_d") == 4 * 4 * 1536);
  REQUIRE(counts.canon() == 4 * 4 * (256 + 768 + 256 + 1536));
  REQUIRE(counts.of("norm") == 4 * 2 * 256 + 256);
  REQUIRE(counts.total() == parameter_count(model));
}

TEST_CASE("a tied embedding is counted once") {
  ModelConfig model = tests::llama_4m();
  model.tie_embeddings = true;
  const ParameterCounts counts = count_parameters(model);
  REQUIRE(counts.of("embedding") == 512'000);
  REQUIRE(counts.of("lm_head") == 0);
}

TEST_CASE("operations of Llama 4M at 512 tokens are those counted by hand") {
  const TokenFlops flops = flops_per_token(tests::llama_4m(), 512);
  REQUIRE(flops.projections == 2 * 3'407'872);
  REQUIRE(flops.lm_head == 2 * 512'000);
  // 4 layers x 2 products x 256 channels x 256 keys on average.
  REQUIRE(flops.mixing.size() == 1);
  REQUIRE(flops.mixing[0] == std::pair<std::string, double>("attention", 2 * 524'288));
  REQUIRE(flops.canon == 0);
  REQUIRE(flops.forward() == 2 * (3'407'872 + 512'000 + 524'288));
  REQUIRE(flops.backward() == 2 * flops.forward());
  REQUIRE(flops.total() == 26'664'960);
}

TEST_CASE("Canon costs two operations a tap and channel") {
  ModelConfig model = tests::llama_4m();
  const double plain = flops_per_token(model, 512).forward();
  model.canon.set = "AC";
  model.canon.kernel = 3;
  REQUIRE(flops_per_token(model, 512).forward() - plain == 4 * 2 * 3 * (256 + 256));
}

TEST_CASE("tying the embedding saves weights and no operations") {
  ModelConfig model = tests::llama_4m();
  const double untied = flops_per_token(model, 128).forward();
  model.tie_embeddings = true;
  REQUIRE(flops_per_token(model, 128).forward() == untied);
}

TEST_CASE("fewer key heads save projections and no scores") {
  ModelConfig model = tests::llama_4m();
  const double full = flops_per_token(model, 512).forward();
  model.attention.num_kv_heads = 1;
  REQUIRE(full - flops_per_token(model, 512).forward() == 4 * 2 * 2 * 256 * 192);
}

config::TrainConfig rows_of(int batch_size, int seq_len) {
  config::TrainConfig train;
  train.batch_size = batch_size;
  train.seq_len = seq_len;
  return train;
}

TEST_CASE("bytes of weights, gradients and moments follow the precision") {
  const ModelConfig model = tests::llama_4m();
  config::TrainConfig train = rows_of(2, 8);
  const TrainingBytes single = training_bytes(model, train.shape());
  REQUIRE(single.weights == 4 * 4'434'176);
  REQUIRE(single.gradients == single.weights);
  REQUIRE(single.optimizer == 2 * single.weights);
  REQUIRE(single.logits_gradient == 4 * 16 * 2000);
  REQUIRE(single.recomputed == 0);
  REQUIRE(single.exchange == 0);
  REQUIRE(single.total() == 4 * single.weights + single.activations + single.logits_gradient);
  train.precision = model::Precision::float64;
  REQUIRE(training_bytes(model, train.shape()).weights == 2 * single.weights);
}

TEST_CASE("bfloat16 keeps float32 matrices and copies, bfloat16 ones and copies, or no copies") {
  ModelConfig model = tests::llama_4m();
  model.canon.set = "A";
  const int64_t others = 9 * 256 + 4 * 4 * 256;  // norms and taps, float32 always
  const int64_t matrices = 4'434'176 + 4 * 4 * 256 - others;
  config::TrainConfig train = rows_of(2, 8);
  train.precision = model::Precision::bfloat16;
  const auto require_bytes = [&](model::Bfloat16Weights kept, int weight, int gradient, int state) {
    train.bfloat16_weights = kept;
    const TrainingBytes bytes = training_bytes(model, train.shape());
    REQUIRE(bytes.weights == weight * matrices + 4 * others);
    REQUIRE(bytes.gradients == gradient * matrices + 4 * others);
    REQUIRE(bytes.optimizer == state * matrices + 8 * others);
  };
  require_bytes(model::Bfloat16Weights::none, 4 + 2, 4, 8);
  require_bytes(model::Bfloat16Weights::master_copies, 2, 2, 8 + 4);
  require_bytes(model::Bfloat16Weights::stochastic_rounding, 2, 2, 8);
}

TEST_CASE("in bfloat16 logits and statistics stay float32") {
  const ModelConfig model = tests::llama_4m();
  config::TrainConfig train = rows_of(2, 8);
  train.precision = model::Precision::bfloat16;
  const TrainingBytes bytes = training_bytes(model, train.shape());
  REQUIRE(bytes.logits_gradient == 4 * 16 * 2000);
  const int64_t block = 2 * (256 + 768 + 256 + 256 + 1536) + 4 * 4;
  const int64_t head = 2 * (256 + 256) + 4 * 1;
  REQUIRE(bytes.activations == 16 * (4 * block + head + 2 * 4));
}

TEST_CASE("activations of Llama 4M are those counted by hand") {
  // A block keeps for each token: its input; q, k, v; attention's output and 4 log-sum-exps; the
  // stream; gate and up. The head keeps its input, a root and the gradient of the normed input.
  const int64_t block = 256 + 768 + 256 + 4 + 256 + 1536;
  const int64_t head = 256 + 1 + 256;
  REQUIRE(activation_bytes(tests::llama_4m(), rows_of(3, 10).shape()) ==
          30 * (4 * (4 * block + head) + 2 * 4));
}

TEST_CASE("Canon layers keep nothing more, but for an activation") {
  const auto bytes = [](const std::string& set, model::Activation activation) {
    ModelConfig model = tests::llama_4m();
    model.canon.set = set;
    model.canon.activation = activation;
    return activation_bytes(model, rows_of(1, 1).shape()) / 16;  // numbers of 4 bytes a layer
  };
  const int64_t none = bytes("", model::Activation::none);
  REQUIRE(bytes("ABCD", model::Activation::none) == none);
  // A norm's root, the inputs of the layer and of the projections; or v's whole, q and k turned.
  REQUIRE(bytes("A", model::Activation::silu) == none + 1 + 256 + 256);
  REQUIRE(bytes("B", model::Activation::silu) == none + 768 + 512);
  REQUIRE(bytes("D", model::Activation::silu) == none + 1536 + 768);
}

TEST_CASE("a long row needs no more activations a token than a short one") {
  const ModelConfig model = tests::llama_4m();
  REQUIRE(activation_bytes(model, rows_of(1, 4096).shape()) ==
          activation_bytes(model, rows_of(64, 64).shape()));
}

TEST_CASE("costs as JSON have a total of each group") {
  ModelConfig model = tests::llama_4m();
  model.canon.set = "AC";
  const nlohmann::json json = cost_to_json(model, rows_of(2, 512).shape());
  REQUIRE(json.at("parameters").at("canon_a") == 4096);
  REQUIRE_FALSE(json.at("parameters").contains("canon_b"));
  REQUIRE(json.at("parameters").at("total") == 4'434'176 + 2 * 4096);
  REQUIRE(json.at("flops_per_token").at("forward").at("canon") == 2 * 2 * 4096);
  REQUIRE(json.at("flops_per_token").at("total") == 26'664'960 + 3 * 2 * 2 * 4096);
  REQUIRE(json.at("flops_per_token").at("recomputed") == 0);
  int64_t sum = 0;
  for (const auto& [name, bytes] : json.at("bytes").items()) {
    if (name != "total") sum += bytes.get<int64_t>();
  }
  REQUIRE(json.at("bytes").at("total") == sum);
}

}  // namespace
}  // namespace forge::model
