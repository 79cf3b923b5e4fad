// The Python worker's linear mixers against the reference vectors: logits, loss, gradients, the
// first mixer's outputs and its last state.

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/model/kinds.h"
#include "core/model/parameters.h"
#include "core/worker/messages.h"
#include "tests/support/catch.h"
#include "tests/support/linear_vectors.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;
using Numbers = std::vector<double>;

json request_of(const LinearCase& one, const std::string& precision) {
  config::Experiment experiment;
  experiment.model = one.model;
  return {{"model", config::to_json(experiment).at("model")},
          {"weights", one.weights},
          {"input_ids", one.input_ids},
          {"precision", precision}};
}

/// What a script of this folder says to the requests; null where there is no PyTorch.
json answers_of(const char* name, const json& requests) {
  if (std::system("/usr/bin/python3 -c 'import torch, numpy' 2>&-") != 0) return nullptr;
  const TemporaryFolder folder;
  const std::string in = (folder / "in").string(), out = (folder / "out").string();
  write_file_atomic(in, requests.dump());
  const auto script = tests_dir() / "backends/pytorch" / name;
  const std::string command = "/usr/bin/python3 -B " + script.string() + " <" + in + " >" + out;
  REQUIRE(std::system(command.c_str()) == 0);
  return json::parse(read_file(out));
}

/// Every number of an array, whatever it is nested in.
Numbers flat(const json& array) {
  if (!array.is_array()) return {array.get<double>()};
  Numbers numbers;
  for (const json& item : array) {
    const Numbers inner = flat(item);
    numbers.insert(numbers.end(), inner.begin(), inner.end());
  }
  return numbers;
}

double largest_difference(const Numbers& got, const Numbers& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double apart = std::fabs(got[i] - expected[i]);
    if (!(apart <= largest)) largest = apart;  // also where it is no number
  }
  return largest;
}

double norm_of(const Numbers& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

struct Bounds {
  double logits, gradients, states;
};

/// Returns the largest differences of logits and gradients.
std::pair<double, double> require_equal(const LinearCase& one, const json& answer, Bounds bounds) {
  const json& expected = one.expected;
  const double logits = largest_difference(flat(answer.at("logits")), flat(expected.at("logits")));
  CHECK(logits <= bounds.logits);
  CHECK(std::fabs(answer.at("loss").get<double>() - expected.at("loss").get<double>()) <=
        bounds.gradients);
  std::map<std::string, Numbers> gradients;
  for (const auto& [name, values] : answer.at("gradients").items())
    gradients[name] = values.get<Numbers>();
  double worst = 0;
  for (const auto& [name, whole] : expected.at("grads").items()) {
    INFO(name);
    const Numbers got = under_file_name(one.model, gradients, name);
    worst = std::max(worst, largest_difference(got, flat(whole.at("data"))));
  }
  REQUIRE(expected.at("grad_head8").size() == expected.at("params").size());
  for (const auto& [name, head] : expected.at("grad_head8").items()) {
    INFO(name);
    Numbers got = under_file_name(one.model, gradients, name);
    const double length = expected.at("grad_l2").at(name);
    CHECK(std::fabs(norm_of(got) - length) <= bounds.gradients * (1 + length));
    got.resize(head.size());
    worst = std::max(worst, largest_difference(got, flat(head)));
  }
  CHECK(worst <= bounds.gradients);
  for (const auto& [ours, theirs] : {std::pair("mixer_out", "mixer_out_layer0"),
                                     std::pair("final_state", "final_state_layer0")}) {
    if (!expected.contains(theirs) || expected.at(theirs).is_null()) continue;
    INFO(ours);
    CHECK(largest_difference(flat(answer.at(ours)), flat(expected.at(theirs))) <= bounds.states);
  }
  return {logits, worst};
}

void require_vectors(const std::string& precision, Bounds bounds) {
  const std::vector<LinearCase> cases = linear_cases();
  REQUIRE(!cases.empty());
  json requests = json::array();
  for (const LinearCase& one : cases) requests.push_back(request_of(one, precision));
  const json answers = answers_of("model_answers.py", requests);
  if (answers.is_null()) {
    WARN("no python3-torch here: nothing is compared");
    return;
  }
  double logits = 0, gradients = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].name);
    const auto worst = require_equal(cases[i], answers[i], bounds);
    logits = std::max(logits, worst.first);
    gradients = std::max(gradients, worst.second);
  }
  std::cout << cases.size() << " cases in " << precision << ": logits " << logits << ", gradients "
            << gradients << "\n";
}

TEST_CASE("the Python worker draws the initial values of linear mixers to the last bit",
          "[linear]") {
  model::ModelConfig model;
  model.vocab_size = 11;
  model.hidden_size = 96;
  model.num_layers = 2;
  model.layers = {"gdn2", "mamba2"};
  model.gdn2.num_heads = 48;
  model.mamba2.num_heads = 48;
  model.mlp.intermediate_size = 8;
  model.canon.set = "AbBCD";
  model.init = model::ModelInit::release;
  model::complete_model(model);
  const json drawn =
      answers_of("initial_values.py", {{"weights", worker::weights_json(model)}, {"seed", 9}});
  if (drawn.is_null()) {
    WARN("no python3-torch here: nothing is compared");
    return;
  }
  const std::vector<model::Parameter> weights = model::parameters(model);
  REQUIRE(drawn.size() == weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    INFO(weights[i].name);
    std::vector<float> own(static_cast<size_t>(weights[i].count()));
    model::draw_initial(weights[i], 9, own.data());
    CHECK(drawn[i].get<std::vector<float>>() == own);
  }
}

TEST_CASE("linear mixers in plain PyTorch have the numbers of the vectors in float64", "[linear]") {
  require_vectors("float64", {1e-9, 1e-9, 1e-9});
}

TEST_CASE("linear mixers in plain PyTorch have the numbers of the vectors in float32", "[linear]") {
  // Measured: logits 5.1e-5, gradients 9.6e-6, outputs of the first mixer 4.7e-5. The logits are up
  // to 5; a head's outputs are normed each for itself, which enlarges what was rounded of small
  // ones.
  require_vectors("float32", {1e-4, 2e-5, 1e-4});
}

}  // namespace
}  // namespace forge::tests
