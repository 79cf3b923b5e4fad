// The values that weights really have at the start, against the distributions that MATHEMATICS.md
// names: standard deviation, mean, and where tails are cut.
#include <cmath>
#include <iostream>
#include <random>

#include "core/model/parameters.h"
#include "tests/core/model/models.h"
#include "tests/support/catch.h"

namespace forge::model {
namespace {

using config::InitStdFactor;
using config::ModelConfig;
using config::ModelInit;

/// A seed of its own for every run of the test, printed so that a failure can be had again.
uint64_t printed_seed() {
  const uint64_t seed = std::random_device{}();
  std::cout << "initial weights drawn with seed " << seed << "\n";
  return seed;
}

/// Standard deviation of a normal of deviation `std` whose tails beyond +-cut are thrown away.
double cut_deviation(double std, double cut) {
  const double a = cut / std;
  const double density = std::exp(-a * a / 2) / std::sqrt(2 * 3.14159265358979323846);
  return std * std::sqrt(1 - 2 * a * density / std::erf(a / std::sqrt(2.0)));
}

struct Expected {
  double std = 0;
  double cut = INFINITY;
};

/// Deviation, cut and mean of one weight lie within six standard errors of what is expected: one
/// run in a hundred million fails by chance.
void require_distribution(const ModelConfig& model,
                          const std::string& name,
                          const Expected& expected,
                          uint64_t seed) {
  INFO(name << ", seed " << seed);
  for (const Parameter& parameter : parameters(model)) {
    if (parameter.name != name + ".weight") continue;
    std::vector<float> values(static_cast<size_t>(parameter.count()));
    draw_initial(parameter, seed, values.data());
    double sum = 0, squares = 0, largest = 0;
    for (const float value : values) {
      sum += double{value};
      squares += double{value} * double{value};
      largest = std::max(largest, std::fabs(double{value}));
    }
    const auto count = static_cast<double>(values.size());
    const bool is_cut = std::isfinite(expected.cut);
    const double std = is_cut ? cut_deviation(expected.std, expected.cut) : expected.std;
    REQUIRE(std::fabs(sum / count) < 6 * std / std::sqrt(count));
    REQUIRE(std::fabs(std::sqrt(squares / count) / std - 1) < 6 / std::sqrt(2 * count));
    if (!is_cut) return;
    REQUIRE(largest <= expected.cut * (1 + 1e-6));
    REQUIRE(largest > 0.8 * std::min(expected.cut, 4 * expected.std));
    return;
  }
  FAIL("no weight " << name);
}

ModelConfig model_with(ModelInit init) {
  ModelConfig model = tests::llama_4m();
  model.num_layers = 2;
  model.init = init;
  return model;
}

const std::string block = "model.layers.1.";

TEST_CASE("forgather's initial weights have its deviations and its output projection is cut") {
  const uint64_t seed = printed_seed();
  const ModelConfig model = model_with(ModelInit::forgather);
  const double head = 1 / std::sqrt(256.0), shrunk = 0.02 / std::sqrt(2.0 * 2);
  require_distribution(model, "model.embed_tokens", {1}, seed);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    require_distribution(model, block + name, {0.02}, seed);
  }
  require_distribution(model, block + "mlp.up_proj", {0.02}, seed);
  for (const char* name : {"self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"}) {
    require_distribution(model, block + name, {shrunk}, seed);
  }
  require_distribution(model, "lm_head", {head, 3 * head}, seed);
  ModelConfig tied = model;
  tied.tie_embeddings = true;
  require_distribution(tied, "model.embed_tokens", {head, 3 * head}, seed);
}

TEST_CASE("huggingface's initial weights are normal with deviation 0.02") {
  const uint64_t seed = printed_seed();
  for (const Parameter& parameter : parameters(model_with(ModelInit::huggingface))) {
    if (parameter.part == Part::norm) continue;
    const std::string name = parameter.name.substr(0, parameter.name.size() - 7);
    require_distribution(model_with(ModelInit::huggingface), name, {0.02}, seed);
  }
}

TEST_CASE("lingua's initial weights follow its base deviation and every factor") {
  const uint64_t seed = printed_seed();
  const std::vector<std::pair<InitStdFactor, double>> factors = {
      {InitStdFactor::disabled, 1},
      {InitStdFactor::global_depth, std::sqrt(2.0 * 3)},
      {InitStdFactor::current_depth, std::sqrt(2.0 * 2)},
      {InitStdFactor::dim_ratio, 256.0 / 4096}};
  for (const std::optional<double> base : {std::optional<double>(), std::optional<double>(0.05)}) {
    for (const auto& [kind, factor] : factors) {
      ModelConfig model = model_with(ModelInit::lingua);
      model.init_base_std = base;
      model.init_std_factor = kind;
      const double ends = 1 / std::sqrt(256.0);
      const double wide = base.value_or(ends);
      const double down = base.value_or(1 / std::sqrt(768.0)) / factor;
      require_distribution(model, "model.embed_tokens", {ends, 3 * ends}, seed);
      require_distribution(model, "lm_head", {ends, 3 * ends}, seed);
      for (const char* name : {"self_attn.q_proj",
                               "self_attn.k_proj",
                               "self_attn.v_proj",
                               "mlp.gate_proj",
                               "mlp.up_proj"}) {
        require_distribution(model, block + name, {wide, 3 * wide}, seed);
      }
      require_distribution(model, block + "self_attn.o_proj", {wide / factor, 3 * wide}, seed);
      require_distribution(model, block + "mlp.down_proj", {down, 3 * down}, seed);
    }
  }
}

TEST_CASE("Canon weights are uniform between the bounds of their kernel") {
  const uint64_t seed = printed_seed();
  for (const int kernel : {2, 3, 4}) {
    ModelConfig model = model_with(ModelInit::forgather);
    model.canon.set = "BD";
    model.canon.kernel = kernel;
    const double bound = 1 / std::sqrt(double(kernel));
    for (const Parameter& parameter : parameters(model)) {
      if (parameter.part != Part::canon_d) continue;
      INFO("kernel " << kernel << ", seed " << seed);
      std::vector<float> values(static_cast<size_t>(parameter.count()));
      draw_initial(parameter, seed, values.data());
      double squares = 0, largest = 0;
      for (const float value : values) {
        squares += double{value} * double{value};
        largest = std::max(largest, std::fabs(double{value}));
      }
      const auto count = static_cast<double>(values.size());
      // The fourth moment of a uniform is 9/5 of its squared variance.
      REQUIRE(std::fabs(squares / count / (bound * bound / 3) - 1) < 6 * std::sqrt(0.8 / count));
      REQUIRE(largest <= bound);
      REQUIRE(largest > 0.98 * bound);
    }
  }
}

}  // namespace
}  // namespace forge::model
