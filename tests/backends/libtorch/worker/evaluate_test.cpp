#include "tests/support/torch_catch.h"

#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/data/token_file_writer.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/support.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

constexpr int seq_len = 8;
constexpr int batch_size = 3;

/// Seventeen rows of random ids, in five whole batches and a shorter one; the last row is short.
class Rows {
 public:
  explicit Rows(std::optional<int32_t> document_start) {
    data::TokenFileWriter writer(folder_ / "rows.tokens", 29, hash_hex("tokenizer"));
    RandomStream random(3, 1);
    for (int i = 0; i < 17 * seq_len - 2; ++i) {
      const auto id = static_cast<int32_t>(random.below(29));
      writer.append(&id, 1);
    }
    writer.finish();
    data::RowOptions options;
    options.seq_len = seq_len;
    options.last_row = data::LastRow::may_be_short;
    options.document_start = document_start;
    dataset_.emplace(folder_ / "rows.tokens", options);
  }

  const data::Dataset& dataset() const { return *dataset_; }

 private:
  TemporaryFolder folder_;
  std::optional<data::Dataset> dataset_;
};

const auto no_progress = [](double) {};

TEST_CASE("a loss without whole logits is the loss of the logits", "[worker]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const std::optional<int32_t> document_start : {std::optional<int32_t>(), {7}}) {
      const Rows rows(document_start);
      worker::LlamaCanon model(small_model("ABCD", config::PositionKind::rope),
                               at::TensorOptions(test_device()).dtype(type));
      worker::load_initial(model, 5);
      worker::Evaluator evaluator(model, rows.dataset(), batch_size, test_device());
      std::vector<int64_t> shown;
      const auto see = [&](int64_t row, const at::Tensor& logits, const at::Tensor& targets) {
        REQUIRE(logits.sizes() == at::IntArrayRef({targets.size(0), seq_len, 29}));
        shown.push_back(row);
      };
      const worker::EvaluationResult with_logits = evaluator.evaluate(no_progress, see);
      REQUIRE(shown == std::vector<int64_t>{0, 3, 6, 9, 12, 15});
      REQUIRE(with_logits.tokens == 17 * seq_len - 3);
      // On a GPU some of these are recorded and replayed.
      for (int i = 0; i < 3; ++i) {
        INFO(at::toString(type) << " evaluation " << i);
        const worker::EvaluationResult without = evaluator.evaluate(no_progress);
        REQUIRE(without.tokens == with_logits.tokens);
        REQUIRE(without.loss ==
                Approx(with_logits.loss).margin(0).epsilon(type == at::kDouble ? 1e-12 : 1e-5));
      }
    }
  }
}

TEST_CASE("an evaluation sees what has become of the weights and says how far it is", "[worker]") {
  const Rows rows({});
  worker::LlamaCanon model(small_model("", config::PositionKind::rope),
                           at::TensorOptions(test_device()).dtype(at::kFloat));
  worker::load_initial(model, 5);
  worker::Evaluator evaluator(model, rows.dataset(), batch_size, test_device());
  std::vector<double> said;
  const double first = evaluator.evaluate([&](double done) { said.push_back(done); }).loss;
  REQUIRE(said.size() == 6);
  REQUIRE(std::is_sorted(said.begin(), said.end()));
  REQUIRE(said.back() == 1);
  // A longer row, as generation between two evaluations may have it.
  model.logits(at::zeros({1, 100}, at::TensorOptions(test_device()).dtype(at::kInt)));
  worker::load_initial(model, 6);
  const double second = evaluator.evaluate(no_progress).loss;
  REQUIRE(second != first);
  worker::load_initial(model, 5);
  REQUIRE(evaluator.evaluate(no_progress).loss == first);
}

}  // namespace
}  // namespace forge::tests
