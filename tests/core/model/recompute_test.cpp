#include "core/model/recompute.h"

#include <cmath>

#include "core/model/cost.h"
#include "tests/core/model/models.h"
#include "tests/support/catch.h"

namespace forge::model {
namespace {

TEST_CASE("what Llama 4M computes again is counted by hand", "[recompute]") {
  const ModelConfig model = tests::llama_4m();
  REQUIRE(recomputed_flops_per_token(model, 512, Recompute::none) == 0);
  // Gate and up; nothing reads what the last projection would give.
  const double mlp = 4 * 2.0 * 2 * 256 * 768;
  REQUIRE(recomputed_flops_per_token(model, 512, Recompute::mlp) == mlp);
  const double attention = 4 * 2.0 * 4 * 256 * 256 + 2 * 524'288;
  REQUIRE(recomputed_flops_per_token(model, 512, Recompute::blocks) == mlp + attention);
}

TEST_CASE("Canon layers of what is computed again are computed again", "[recompute]") {
  const auto of_canon = [](const char* set, Recompute recompute) {
    ModelConfig model = tests::llama_4m();
    const double plain = recomputed_flops_per_token(model, 512, recompute);
    model.canon.set = set;
    return recomputed_flops_per_token(model, 512, recompute) - plain;
  };
  REQUIRE(of_canon("AB", Recompute::mlp) == 0);
  REQUIRE(of_canon("CD", Recompute::mlp) == 4 * 2.0 * 4 * (256 + 1536));
  REQUIRE(of_canon("ABCD", Recompute::blocks) == 4 * 2.0 * 4 * (256 + 768 + 256 + 1536));
}

TEST_CASE("of a part that is computed again its input is kept", "[recompute]") {
  const ModelConfig model = tests::llama_4m();
  TrainingShape shape{3, 10};
  const int64_t tokens = 30, head = 256 + 1 + 256;
  // Of a block, see the test of activations without it; gate and up are the MLP's.
  const int64_t attention = 256 + 768 + 256 + 4, mlp = 256 + 1536;
  shape.recompute = Recompute::mlp;
  REQUIRE(activation_bytes(model, shape) == tokens * (4 * (4 * (attention + 256) + head) + 2 * 4));
  REQUIRE(recomputed_bytes(model, shape) == tokens * 4 * mlp);
  shape.recompute = Recompute::blocks;
  REQUIRE(activation_bytes(model, shape) == tokens * (4 * (4 * 256 + head) + 2 * 4));
  REQUIRE(recomputed_bytes(model, shape) == tokens * 4 * (attention + mlp));
  const TrainingBytes bytes = training_bytes(model, shape);
  REQUIRE(bytes.recomputed == recomputed_bytes(model, shape));
  REQUIRE(bytes.total() == bytes.weights + bytes.gradients + bytes.optimizer + bytes.activations +
                               bytes.recomputed + bytes.logits_gradient);
}

/// A published shape, and what was computed for it by another program from these formulas, in
/// 10^9 bytes. P are the weights; a row has 4,096 tokens; products are bfloat16.
struct Published {
  const char* name;
  int layers, hidden, heads, kv_heads, head_dim, intermediate, vocab;
  bool qk_norm;
  double parameters;                   ///< 10^9
  double one, two, eight, sixty_four;  ///< (6 + 12/N) P, weights float32 with bfloat16 copies
  double stochastic;                   ///< 12 P, one process
  double kept;        ///< L (2 (2h + q + (q + 2k) + 2I [+ q + k]) + 4 (H [+ 2])) + 4h + 4, a token
  double kept_mlp;    ///< the same without 2 · 2 I L, gate and up
  double with_layer;  ///< L 2h + what one layer keeps, without the head's 4h + 4
};

const Published published[] = {
    {"162M",
     16,
     768,
     8,
     8,
     96,
     2048,
     32000,
     false,
     0.162,
     2.9,
     1.9,
     1.2,
     1.0,
     1.9,
     1.16,
     0.62,
     0.17},
    {"1B",
     24,
     2048,
     32,
     32,
     64,
     5632,
     32000,
     true,
     1.364,
     24.6,
     16.4,
     10.2,
     8.4,
     16.4,
     5.48,
     3.27,
     0.63},
    {"3B",
     26,
     3072,
     24,
     24,
     128,
     8192,
     32000,
     true,
     3.141,
     56.5,
     37.7,
     23.6,
     19.4,
     37.7,
     8.79,
     5.30,
     0.99},
    {"8B",
     32,
     4096,
     32,
     8,
     128,
     14336,
     128256,
     false,
     8.030,
     144.5,
     96.4,
     60.2,
     49.7,
     96.4,
     12.43,
     4.92,
     1.46},
};

ModelConfig model_of(const Published& shape) {
  ModelConfig model;
  model.vocab_size = shape.vocab;
  model.hidden_size = shape.hidden;
  model.num_layers = shape.layers;
  model.mlp.intermediate_size = shape.intermediate;
  model.attention.num_heads = shape.heads;
  model.attention.num_kv_heads = shape.kv_heads;
  model.attention.head_dim = shape.head_dim;
  if (shape.qk_norm) model.attention.qk_norm = QkNorm::full;
  return model;
}

double billions(int64_t number) { return double(number) / 1e9; }

TEST_CASE("memory of a process is that of the published shapes", "[recompute]") {
  for (const Published& shape : published) {
    INFO(shape.name);
    const ModelConfig model = model_of(shape);
    REQUIRE(billions(parameter_count(model)) == Approx(shape.parameters).margin(0.0006));
    TrainingShape training{1, 4096, Precision::bfloat16};
    const auto state_of = [&](int processes) {
      training.processes = processes;
      const TrainingBytes bytes = training_bytes(model, training);
      const int64_t sums =
          bytes.exchange > 0 ? bytes.exchange - exchange_buckets * exchange_bucket_bytes : 0;
      return billions(bytes.weights + bytes.gradients + bytes.optimizer + sums);
    };
    REQUIRE(state_of(1) == Approx(shape.one).margin(0.06));
    REQUIRE(state_of(2) == Approx(shape.two).margin(0.06));
    REQUIRE(state_of(8) == Approx(shape.eight).margin(0.06));
    REQUIRE(state_of(64) == Approx(shape.sixty_four).margin(0.06));
    training.bfloat16_weights = Bfloat16Weights::stochastic_rounding;
    REQUIRE(state_of(1) == Approx(shape.stochastic).margin(0.06));
  }
}

TEST_CASE("activations of a row are those of the published shapes", "[recompute]") {
  for (const Published& shape : published) {
    INFO(shape.name);
    const ModelConfig model = model_of(shape);
    TrainingShape training{1, 4096, Precision::bfloat16};
    REQUIRE(billions(activation_bytes(model, training)) == Approx(shape.kept).margin(0.0065));
    training.recompute = Recompute::mlp;
    REQUIRE(billions(activation_bytes(model, training)) == Approx(shape.kept_mlp).margin(0.0065));
    training.recompute = Recompute::blocks;
    const double head = 4096 * (4.0 * shape.hidden + 4 + 8) / 1e9;
    const double held = billions(activation_bytes(model, training)) +
                        billions(recomputed_bytes(model, training)) - head;
    REQUIRE(held == Approx(shape.with_layer).margin(0.0065));
  }
}

TEST_CASE("each process keeps its part of what the optimizer updates", "[recompute]") {
  const ModelConfig model = tests::llama_4m();
  const int64_t norms = 9 * 256, matrices = 4'434'176 - norms;
  TrainingShape shape{2, 8, Precision::bfloat16};
  shape.processes = shape.gradient_slots = 4;
  const auto require_bytes = [&](Bfloat16Weights kept, int64_t weights, int64_t optimizer) {
    shape.bfloat16_weights = kept;
    const TrainingBytes bytes = training_bytes(model, shape);
    REQUIRE(bytes.weights == weights);
    REQUIRE(bytes.gradients == 0);  // they are in buckets
    REQUIRE(bytes.optimizer == optimizer);
    TrainingShape alone = shape;
    alone.processes = 1;
    REQUIRE(checkpoint_bytes(model, shape) == checkpoint_bytes(model, alone));
  };
  const int64_t moments = 2 * (matrices + norms);
  require_bytes(Bfloat16Weights::none, 6 * matrices + 4 * norms, moments);
  require_bytes(Bfloat16Weights::master_copies, 2 * matrices + 4 * norms, moments + matrices);
  require_bytes(Bfloat16Weights::stochastic_rounding, 2 * matrices + 4 * norms, moments);
  shape.bfloat16_weights = Bfloat16Weights::none;
  shape.precision = Precision::float32;
  const TrainingBytes single = training_bytes(model, shape);
  REQUIRE(single.weights == 4 * 4'434'176);
  REQUIRE(single.optimizer == 2 * 4'434'176);
}

TEST_CASE("sums of slots wait on each level of the tree", "[recompute]") {
  const ModelConfig model = tests::llama_4m();
  const int64_t all = 4 * 4'434'176;
  TrainingShape shape{1, 8};
  REQUIRE(exchange_bytes(model, shape) == 0);
  shape.gradient_slots = 8;
  REQUIRE(exchange_bytes(model, shape) == 4 * all);
  shape.processes = 2;
  REQUIRE(exchange_bytes(model, shape) ==
          3 * all / 2 + exchange_buckets * all);  // a bucket holds all of it
  shape.processes = 8;
  REQUIRE(exchange_bytes(model, shape) == all / 8 + exchange_buckets * all);
}

TEST_CASE("a large model's gradients go in buckets", "[recompute]") {
  const ModelConfig model = model_of(published[3]);
  TrainingShape shape{1, 8, Precision::bfloat16};
  shape.processes = shape.gradient_slots = 8;
  REQUIRE(exchange_bytes(model, shape) ==
          4 * parameter_count(model) / 8 + exchange_buckets * exchange_bucket_bytes);
}

}  // namespace
}  // namespace forge::model
