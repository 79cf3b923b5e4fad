// Models of the linear families against reference vectors computed in float64 by an independent
// implementation: every file of the folder, in double and in single precision. Beside FAMILY_cases
// lies FAMILY_weights, whose names are those of the released code.

#include <iostream>

#include "backends/libtorch/blocks/linear/linear_mixer.h"
#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/trainer.h"
#include "core/model/parameters.h"
#include "core/model/weights/release_names.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"
#include "tests/support/vector_case.h"

namespace forge::tests {
namespace {

using nlohmann::json;

struct LinearTolerance {
  double logits, loss, gradient;
};

/// Largest differences of a case.
struct LinearDifferences {
  double logits = 0, loss = 0, gradient = 0, state = 0;
};

/// The vectors' cases, sorted: FAMILY… _cases.json.
std::vector<std::filesystem::path> linear_case_files() {
  const std::string ending = "_cases.json";
  std::vector<std::filesystem::path> files;
  for (const char* family : {"gdn2", "gla5", "mamba2"}) {
    for (const auto& file : vector_files(family)) {
      const std::string name = file.filename().string();
      if (name.size() > ending.size() &&
          name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
        files.push_back(file);
    }
  }
  return files;
}

json weights_beside(const std::filesystem::path& cases) {
  std::string name = cases.filename().string();
  name.replace(name.rfind("_cases"), 6, "_weights");
  return read_json(shared_vector_file(name));
}

void set_released_weights(const libtorch::Model& model, const json& weights) {
  const auto places = weights::release_places(model.config());
  for (const auto& [name, weight] : model.named_weights()) {
    INFO(name);
    const weights::ReleasePlace& place = places.at(name);
    const auto shape = weights.at("shapes").at(place.name).get<std::vector<int64_t>>();
    const at::Tensor whole =
        float32_tensor_of(weights.at("data").at(place.name), shape, weight.scalar_type());
    at::Tensor(weight).copy_(whole.narrow(0, place.first_row, weight.size(0)));
  }
}

/// The model's gradients as the files have their weights: some lie on one another there.
std::map<std::string, at::Tensor> released_gradients(const libtorch::Model& model) {
  const auto places = weights::release_places(model.config());
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, gradient] : named_gradients(model)) {
    const weights::ReleasePlace& place = places.at(name);
    at::Tensor& whole = gradients[place.name];
    if (!whole.defined()) {
      std::vector<int64_t> shape = gradient.sizes().vec();
      shape[0] = place.file_rows;
      whole = at::full(shape, NAN, gradient.options());
    }
    whole.narrow(0, place.first_row, gradient.size(0)).copy_(gradient);
  }
  return gradients;
}

double check_linear_gradients(const libtorch::Model& model, const json& expected, double tolerance) {
  const auto gradients = released_gradients(model);
  REQUIRE(gradients.size() == expected.at("params").size());
  double worst = 0;
  const auto check = [&](double difference) {
    REQUIRE(difference <= tolerance);
    worst = std::max(worst, difference);
  };
  for (const auto& [name, gradient] : gradients) {
    INFO(name);
    check(std::fabs(gradient.norm().item<double>() -
                    expected.at("grad_l2").at(name).get<double>()));
    const at::Tensor head = gradient.flatten().narrow(0, 0, std::min<int64_t>(8, gradient.numel()));
    check(largest_difference(
        head, tensor_of(expected.at("grad_head8").at(name), head.sizes(), at::kDouble)));
    if (!expected.at("grads").contains(name)) continue;
    const json& entry = expected.at("grads").at(name);
    const json& full = entry.is_object() ? entry.at("data") : entry;
    check(largest_difference(gradient, tensor_of(full, gradient.sizes(), at::kDouble)));
  }
  return worst;
}

/// A state of keys x values as the files have it: that of Mamba2 is values x keys.
at::Tensor released_state(const model::ModelConfig& config, const at::Tensor& state) {
  return config.mixer(0) == "mamba2" ? state.transpose(2, 3) : state;
}

/// The rows in pieces of these lengths, one after another, with a state.
void check_generation(const libtorch::Model& model,
                      const at::Tensor& ids,
                      const at::Tensor& logits,
                      const json& expected,
                      const std::vector<int64_t>& pieces,
                      double tolerance,
                      LinearDifferences& found) {
  const at::NoGradGuard no_grad;
  const int64_t batch = ids.size(0);
  libtorch::InferenceState state(model, batch, ids.size(1));
  int64_t end = 0;
  for (const int64_t length : pieces) {
    const at::Tensor next = model.next_logits(
        ids.narrow(1, end, length).contiguous(), std::vector<int64_t>(batch, length), &state);
    end += length;
    const double difference = largest_difference(next, logits.select(1, end - 1));
    INFO("after " << end << " tokens");
    REQUIRE(difference <= tolerance);
    found.logits = std::max(found.logits, difference);
  }
  REQUIRE(end == ids.size(1));
  const auto& first = dynamic_cast<const libtorch::LinearState&>(state.block(0));
  const at::Tensor heads = released_state(model.config(), first.heads);
  const auto shape = expected.at("final_state_shape").get<std::vector<int64_t>>();
  REQUIRE(heads.sizes() == shape);
  const double difference = largest_difference(
      heads, tensor_of(expected.at("final_state_layer0"), shape, at::kDouble));
  REQUIRE(difference <= tolerance);
  found.state = std::max(found.state, difference);
}

void check_linear_case(const json& expected,
                       const json& input_ids,
                       const json& weights,
                       at::ScalarType type,
                       LinearTolerance tolerance) {
  const model::ModelConfig config = read_linear_case(expected.at("config"));
  REQUIRE(model::parameter_count(config) == expected.at("n_params"));
  const libtorch::Model model(config, at::TensorOptions(test_device()).dtype(type));
  set_released_weights(model, weights);
  const int64_t batch = input_ids.size(), length = input_ids.at(0).size();
  const at::Tensor ids = tensor_of(input_ids, {batch, length}, at::kInt);
  LinearDifferences found;

  std::vector<at::Tensor> stream;
  const at::Tensor logits = model.logits(ids, {}, &stream);
  const at::Tensor expected_logits =
      tensor_of(expected.at("logits"), {batch, length, config.vocab_size}, at::kDouble);
  found.logits = largest_difference(logits, expected_logits);
  REQUIRE(found.logits <= tolerance.logits);
  if (expected.contains("mixer_out_layer0") && !expected.at("mixer_out_layer0").is_null()) {
    const at::Tensor embedded = model.trainable()[0].index_select(0, ids.flatten().to(at::kLong));
    const at::Tensor mixed = stream[0] - embedded.view(stream[0].sizes());
    REQUIRE(largest_difference(
                mixed, tensor_of(expected.at("mixer_out_layer0"), mixed.sizes(), at::kDouble)) <=
            tolerance.logits);
  }
  const at::Tensor loss =
      ops::cross_entropy_reference(logits.narrow(1, 0, length - 1).reshape({-1, config.vocab_size}),
                                   ids.narrow(1, 1, length - 1).reshape({-1}),
                                   {});
  found.loss = std::fabs(loss.item<double>() - expected.at("loss").get<double>());
  REQUIRE(found.loss <= tolerance.loss);
  loss.backward();
  found.gradient = check_linear_gradients(model, expected, tolerance.gradient);
  for (const auto& pieces : {std::vector<int64_t>(length, 1),
                             std::vector<int64_t>{7, length - 7},
                             std::vector<int64_t>{1, length - 1},
                             std::vector<int64_t>{length}}) {
    check_generation(model, ids, expected_logits, expected, pieces, tolerance.logits, found);
  }
  std::cout << "  '" << config.canon.set << "' " << at::toString(type) << ": logits "
            << found.logits << ", loss " << found.loss << ", gradients " << found.gradient
            << ", state " << found.state << "\n";
}

TEST_CASE("every reference case of the linear families agrees in double and single precision",
          "[vectors]") {
  const std::vector<std::filesystem::path> files = linear_case_files();
  INFO(vectors_dir());
  REQUIRE_FALSE(files.empty());
  for (const auto& file : files) {
    INFO(file.filename());
    std::cout << file.filename().string() << "\n";
    const json cases = read_json(file), weights = weights_beside(file);
    for (const json& expected : cases.at("cases")) {
      INFO(expected.at("config").dump());
      const json& ids = cases.at("input_ids");
      check_linear_case(expected, ids, weights, at::kDouble, {1e-9, 1e-9, 1e-9});
      check_linear_case(expected, ids, weights, at::kFloat, {2e-5, 5e-6, 5e-6});
    }
  }
}

}  // namespace
}  // namespace forge::tests
