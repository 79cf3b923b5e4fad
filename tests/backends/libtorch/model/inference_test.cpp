// Generation with caches against the model that reads every row anew.

#include <iostream>
#include <random>

#include <c10/core/InferenceMode.h>

#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/random.h"
#include "core/model/generation.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"
#include "tests/support/vector_case.h"

namespace forge::tests {
namespace {

using libtorch::Decoder;
using libtorch::InferenceState;
using libtorch::Model;
using libtorch::TokenIds;

Model make_model(const model::ModelConfig& config, at::ScalarType type = at::kDouble) {
  Model model(config, at::TensorOptions(test_device()).dtype(type));
  libtorch::load_initial(model, 7);
  return model;
}

TokenIds random_ids(RandomStream& random, int64_t count) {
  TokenIds ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(random.below(29)));
  return ids;
}

at::Tensor tensor_of_ids(const std::vector<TokenIds>& rows) {
  const auto width = static_cast<int64_t>(rows.at(0).size());
  at::Tensor ids = at::empty({static_cast<int64_t>(rows.size()), width}, at::kInt);
  for (size_t row = 0; row < rows.size(); ++row) {
    std::copy(rows[row].begin(), rows[row].end(), ids[row].data_ptr<int32_t>());
  }
  return ids.to(test_device());
}

/// Every architecture of small_variants with each kernel, and partial rotation in both pairings.
std::vector<model::ModelConfig> decoded_variants() {
  std::vector<model::ModelConfig> variants = small_variants();
  for (const int kernel : {2, 3, 4}) {
    for (const bool residual : {true, false}) {
      for (const auto activation : {model::Activation::none, model::Activation::silu}) {
        model::ModelConfig model = small_model("ABCD", model::PositionKind::rope);
        model.canon.kernel = kernel;
        model.canon.residual = residual;
        model.canon.activation = activation;
        variants.push_back(model);
      }
    }
  }
  for (const auto pairing : {model::RopePairing::huggingface, model::RopePairing::lingua}) {
    for (const auto qk_norm : {model::QkNorm::none, model::QkNorm::full, model::QkNorm::per_head}) {
      model::ModelConfig model = small_model("B", model::PositionKind::rope);
      model.attention.position.pairing = pairing;
      model.attention.position.rope_dim = 2;
      model.attention.qk_norm = qk_norm;
      model.tie_embeddings = qk_norm == model::QkNorm::full;
      variants.push_back(model);
      model.attention.position = {model::PositionKind::nope, 10000.0, {}, {}};
      variants.push_back(model);
    }
  }
  model::ModelConfig plain = small_model("", model::PositionKind::rope);
  plain.attention.num_kv_heads = plain.attention.num_heads;
  variants.push_back(plain);
  plain.attention.num_kv_heads = 1;
  variants.push_back(plain);
  return variants;
}

TEST_CASE("caches give the logits of the whole row for every architecture", "[model]") {
  const uint64_t seed = std::random_device()();
  RandomStream random(seed, 0);
  const c10::InferenceMode inference_mode;
  double worst = 0;
  for (const model::ModelConfig& config : decoded_variants()) {
    INFO("seed " << seed << ", canon " << config.canon.set << ", kernel " << config.canon.kernel);
    const Model model = make_model(config);
    // Longer than a block of memory, so that it grows on the way.
    const TokenIds row = random_ids(random, 70);
    const at::Tensor whole = model.logits(tensor_of_ids({row})).squeeze(0);
    Decoder decoder(model, true, 70);
    const auto prompt = static_cast<int64_t>(1 + random.below(6));
    at::Tensor logits = decoder.begin({TokenIds(row.begin(), row.begin() + prompt)});
    for (int64_t read = prompt;; ++read) {
      worst = std::max(worst, largest_difference(logits[0], whole[read - 1]));
      if (read == 70) break;
      logits = decoder.next({row[static_cast<size_t>(read)]});
    }
    REQUIRE(worst <= 1e-9);
  }
  std::cout << "cached against whole rows, " << decoded_variants().size()
            << " architectures in float64: " << worst << "\n";
}

TEST_CASE("rows of different lengths give what each gives alone", "[model]") {
  const uint64_t seed = std::random_device()();
  RandomStream random(seed, 0);
  const c10::InferenceMode inference_mode;
  double worst = 0;
  for (const model::ModelConfig& config : decoded_variants()) {
    INFO("seed " << seed << ", canon " << config.canon.set << ", kernel " << config.canon.kernel);
    const Model model = make_model(config);
    for (const bool cache : {true, false}) {
      std::vector<TokenIds> rows;
      for (const int64_t length : {3, 1, 9, 2, 5}) rows.push_back(random_ids(random, length));
      Decoder together(model, cache, 16);
      at::Tensor logits = together.begin(rows);
      const auto check = [&] {
        for (size_t row = 0; row < rows.size(); ++row) {
          Decoder alone(model, false, 16);
          const double difference =
              largest_difference(logits[static_cast<int64_t>(row)], alone.begin({rows[row]})[0]);
          REQUIRE(difference <= 1e-9);
          worst = std::max(worst, difference);
        }
      };
      const auto go_on = [&] {
        const TokenIds tokens = random_ids(random, static_cast<int64_t>(rows.size()));
        for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(tokens[row]);
        logits = together.next(tokens);
      };
      check();
      for (int i = 0; i < 3; ++i) go_on();
      check();
      together.select({4, 0, 0, 2});  // two rows end, one is sampled twice
      rows = {rows[4], rows[0], rows[0], rows[2]};
      for (int i = 0; i < 3; ++i) go_on();
      check();
      together.select({1});
      rows = {rows[1]};
      go_on();
      check();
    }
  }
  std::cout << "rows side by side against alone: " << worst << "\n";
}

TEST_CASE("a row read in parts of any size gives what it gives at once", "[model]") {
  const uint64_t seed = std::random_device()();
  RandomStream random(seed, 0);
  const c10::InferenceMode inference_mode;
  for (const model::ModelConfig& config : decoded_variants()) {
    INFO("seed " << seed << ", canon " << config.canon.set << ", kernel " << config.canon.kernel);
    const Model model = make_model(config);
    constexpr int64_t length = 20, width = 6;
    std::vector<TokenIds> rows;
    for (int i = 0; i < 3; ++i) rows.push_back(random_ids(random, length));
    const at::Tensor whole = model.logits(tensor_of_ids(rows));
    InferenceState state(model, 3, length);
    std::vector<int64_t> left = {0, 1, 2};  // rows that are not at their end
    while (!left.empty()) {
      // Each goes on by a number of tokens of its own; what stands behind them does not matter.
      std::vector<int64_t> counts, places, going_on;
      std::vector<TokenIds> parts;
      for (size_t place = 0; place < left.size(); ++place) {
        const int64_t at = state.lengths()[place];
        counts.push_back(std::min(length - at, static_cast<int64_t>(1 + random.below(width))));
        const auto begin = rows[static_cast<size_t>(left[place])].begin() + at;
        parts.emplace_back(begin, begin + counts.back());
        parts.back().resize(width, 28);
      }
      const at::Tensor logits = model.next_logits(tensor_of_ids(parts), counts, &state);
      for (size_t place = 0; place < left.size(); ++place) {
        const int64_t read = state.lengths()[place];
        REQUIRE(largest_difference(logits[static_cast<int64_t>(place)],
                                   whole[left[place]][read - 1]) <= 1e-9);
        if (read == length) continue;
        places.push_back(static_cast<int64_t>(place));
        going_on.push_back(left[place]);
      }
      state.select(places);
      left = going_on;
    }
  }
}

TEST_CASE("single precision decodes within its rounding", "[model]") {
  const c10::InferenceMode inference_mode;
  RandomStream random(3, 0);
  for (const model::ModelConfig& config : decoded_variants()) {
    const Model model = make_model(config, at::kFloat);
    const TokenIds row = random_ids(random, 24);
    const at::Tensor whole = model.logits(tensor_of_ids({row})).squeeze(0);
    Decoder decoder(model, true, 24);
    at::Tensor logits = decoder.begin({{row[0]}});
    for (int64_t read = 1; read < 24; ++read) {
      REQUIRE(logits.scalar_type() == at::kFloat);
      REQUIRE(largest_difference(logits[0], whole[read - 1]) <= 2e-5);
      logits = decoder.next({row[static_cast<size_t>(read)]});
    }
  }
}

TEST_CASE("a model that has generated can still be trained", "[model]") {
  const Model model = make_model(small_model("ABCD", model::PositionKind::rope));
  {
    const c10::InferenceMode inference_mode;
    Decoder decoder(model, true, 8);
    decoder.begin({{1, 2, 3}});
    decoder.next({4});
  }
  model.logits(tensor_of_ids({{1, 2, 3}})).sum().backward();
  REQUIRE(named_gradients(model).at(0).second.abs().sum().item<double>() > 0);
}

}  // namespace
}  // namespace forge::tests

// Greedy decoding against the reference vectors, token by token, with and without caches.

namespace forge::tests {
namespace {

using nlohmann::json;

/// Checks a case; returns the largest difference of the logits of its last token.
double check_greedy(const libtorch::Model& model, const json& expected, bool cache) {
  const auto prompt = expected.at("prompt").get<libtorch::TokenIds>();
  const auto greedy = expected.at("greedy").get<libtorch::TokenIds>();
  model::Sampler sampler({0, 0, 1});
  RandomStream unused(0, 0);
  libtorch::Decoder decoder(model, cache, static_cast<int64_t>(prompt.size() + greedy.size()));
  at::Tensor logits = decoder.begin({prompt});
  at::Tensor numbers;
  for (size_t i = 0; i < greedy.size(); ++i) {
    INFO("token " << i);
    numbers = logits.to(at::kCPU, at::kDouble).contiguous();
    const int32_t token = sampler.choose(numbers.data_ptr<double>(), numbers.size(1), unused);
    REQUIRE(token == greedy[i]);
    const auto best = std::get<0>(numbers.topk(2));
    const double margin = (best[0][0] - best[0][1]).item<double>();
    REQUIRE(std::fabs(margin - expected.at("top2_margin").at(i).get<double>()) <= 4e-5);
    if (i + 1 < greedy.size()) logits = decoder.next({token});
  }
  return largest_difference(
      numbers.flatten(),
      tensor_of(expected.at("last_logits"), {model.config().vocab_size}, at::kDouble).cpu());
}

TEST_CASE("greedy decoding gives the reference tokens with and without caches", "[vectors]") {
  const c10::InferenceMode inference_mode;
  json cases = json::array();
  for (const auto& file : vector_files("generation")) {
    for (const json& expected : read_json(file).at("cases")) cases.push_back(expected);
  }
  const json weights = read_json(shared_vector_file("llama_weights.json"));
  if (cases.empty()) cases = read_json(shared_vector_file("generation.json")).at("cases");
  REQUIRE_FALSE(cases.empty());
  double worst_double = 0, worst_single = 0;
  for (const json& expected : cases) {
    const model::ModelConfig config = read_vector_case(expected.at("config")).model;
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const libtorch::Model model(config, at::TensorOptions(test_device()).dtype(type));
      set_weights(model, weights);
      for (const bool cache : {true, false}) {
        INFO(expected.at("name") << " " << expected.at("prompt") << " " << at::toString(type)
                                 << (cache ? " cached" : " whole rows"));
        const double difference = check_greedy(model, expected, cache);
        REQUIRE(difference <= (type == at::kDouble ? 1e-9 : 2e-5));
        double& worst = type == at::kDouble ? worst_double : worst_single;
        worst = std::max(worst, difference);
      }
    }
  }
  std::cout << "greedy decoding, " << cases.size()
            << " cases, largest difference of the last logits: float64 " << worst_double
            << ", float32 " << worst_single << "\n";
}

}  // namespace
}  // namespace forge::tests
