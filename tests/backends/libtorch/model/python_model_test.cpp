// Losses and gradients of every variant against plain PyTorch: the Python worker's model and its
// autograd, in float64.

#include <cstdlib>
#include <iostream>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/files.h"
#include "core/base/random.h"
#include "core/worker/messages.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

constexpr int64_t batch = 2, length = 11;
constexpr uint64_t seed = 7;

json random_ids(uint64_t stream) {
  RandomStream random(stream, 0);
  json rows = json::array();
  for (int64_t row = 0; row < batch; ++row) {
    json ids = json::array();
    for (int64_t t = 0; t < length; ++t) ids.push_back(random.below(29));
    rows.push_back(std::move(ids));
  }
  return rows;
}

json case_of(const model::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return {{"model", config::to_json(experiment).at("model")},
          {"weights", worker::weights_json(model)},
          {"seed", seed},
          {"inputs", random_ids(1)},
          {"targets", random_ids(2)}};
}

/// What the Python model says to the cases; null where there is no PyTorch.
json python_answers(const json& cases) {
  if (std::system("/usr/bin/python3 -c 'import torch, numpy' 2>&-") != 0) return nullptr;
  const TemporaryFolder folder;
  const std::string in = (folder / "in").string(), out = (folder / "out").string();
  write_file_atomic(in, cases.dump());
  const auto script = tests_dir() / "backends/libtorch/model/python_losses.py";
  const std::string command = "/usr/bin/python3 -B " + script.string() + " <" + in + " >" + out;
  REQUIRE(std::system(command.c_str()) == 0);
  return json::parse(read_file(out));
}

TEST_CASE("every variant has the loss and the gradients of plain PyTorch", "[model]") {
  const std::vector<model::ModelConfig> variants = small_variants();
  json cases = json::array();
  for (const model::ModelConfig& model : variants) cases.push_back(case_of(model));
  const json answers = python_answers(cases);
  if (answers.is_null()) {
    WARN("no python3-torch here: nothing is compared");
    return;
  }
  double worst = 0;
  for (size_t i = 0; i < variants.size(); ++i) {
    INFO(cases[i].at("model").dump());
    libtorch::Model model(variants[i], at::TensorOptions(test_device()).dtype(at::kDouble));
    libtorch::load_initial(model, seed);
    const at::Tensor loss = model.loss(tensor_of(cases[i].at("inputs"), {batch, length}, at::kInt),
                                       {},
                                       tensor_of(cases[i].at("targets"), {batch, length}, at::kInt),
                                       {});
    loss.backward();
    const double difference = std::fabs(loss.item<double>() - answers[i].at("loss").get<double>());
    REQUIRE(difference <= 1e-9);
    worst = std::max(worst, difference);
    const json& expected = answers[i].at("gradients");
    REQUIRE(named_gradients(model).size() == expected.size());
    for (const auto& [name, gradient] : named_gradients(model)) {
      INFO(name);
      const double apart =
          largest_difference(gradient, tensor_of(expected.at(name), gradient.sizes(), at::kDouble));
      REQUIRE(apart <= 1e-9);
      worst = std::max(worst, apart);
    }
  }
  std::cout << variants.size() << " variants against plain PyTorch: " << worst << "\n";
}

}  // namespace
}  // namespace forge::tests
