#include "tests/support/torch_catch.h"

#include <ATen/Parallel.h>

#include <cstring>

#include "backends/libtorch/worker/weights.h"
#include "core/model/parameters.h"
#include "tests/backends/libtorch/model/small_models.h"

namespace forge::tests {
namespace {

/// Large enough that threads share the numbers of a weight.
config::ModelConfig model_of_large_weights() {
  config::ModelConfig model = small_model("A", config::PositionKind::rope);
  model.vocab_size = 5003;
  return model;
}

TEST_CASE("weights are what one thread draws, whatever the number of threads", "[worker]") {
  const config::ModelConfig config = model_of_large_weights();
  const std::vector<model::Parameter> parameters = model::parameters(config);
  const int threads_before = at::get_num_threads();
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    worker::LlamaCanon model(config, at::TensorOptions(at::kFloat));
    worker::load_initial(model, 42);
    const worker::NamedTensors weights = model.named_weights();
    for (size_t i = 0; i < parameters.size(); ++i) {
      INFO(threads << " threads, " << parameters[i].name);
      std::vector<float> expected(static_cast<size_t>(parameters[i].count()));
      model::draw_initial(parameters[i], 42, expected.data());
      const at::Tensor drawn = weights[i].second.contiguous();
      REQUIRE(std::memcmp(drawn.data_ptr(), expected.data(), drawn.nbytes()) == 0);
    }
  }
  at::set_num_threads(threads_before);
}

}  // namespace
}  // namespace forge::tests
