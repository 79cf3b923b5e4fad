// Greedy decoding against the reference vectors, token by token, with and without caches.
#include "tests/support/torch_catch.h"

#include <c10/core/InferenceMode.h>

#include <iostream>

#include "backends/libtorch/model/decoder.h"
#include "core/generation/sampler.h"
#include "tests/support/vector_case.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// Checks a case; returns the largest difference of the logits of its last token.
double check_greedy(const worker::LlamaCanon& model, const json& expected, bool cache) {
  const auto prompt = expected.at("prompt").get<worker::TokenIds>();
  const auto greedy = expected.at("greedy").get<worker::TokenIds>();
  generation::Sampler sampler({0, 0, 1});
  RandomStream unused(0, 0);
  worker::Decoder decoder(model, cache, static_cast<int64_t>(prompt.size() + greedy.size()));
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
    const config::ModelConfig config = read_vector_case(expected.at("config")).model;
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const worker::LlamaCanon model(config, at::TensorOptions(test_device()).dtype(type));
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
