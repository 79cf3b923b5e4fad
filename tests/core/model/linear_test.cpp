// Linear mixers: what they weigh and cost, and how their weights begin.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/random.h"
#include "core/model/cost.h"
#include "core/model/kinds.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/linear_vectors.h"

namespace forge::tests {
namespace {

using model::InitRule;
using model::ModelConfig;

ModelConfig model_of_kind(const std::string& kind, const std::string& canon_set) {
  ModelConfig model;
  model.layers = {kind};
  model.canon.set = canon_set;
  if (kind == "gla5") model.gla5.num_heads = 16;
  if (kind == "gdn2") model.gdn2.num_heads = 16;
  if (kind == "mamba2") model.mamba2.num_heads = 16;
  return model;
}

/// A model of the release. `heads` have 128 keys and 256 values each.
ModelConfig released(const std::string& kind,
                     const std::string& canon_set,
                     int layers,
                     int heads,
                     int mlp_width,
                     int vocab_size) {
  ModelConfig model = model_of_kind(kind, canon_set);
  if (kind == "gla5") model.gla5.num_heads = heads;
  if (kind == "gdn2") model.gdn2.num_heads = heads;
  if (kind == "mamba2") model.mamba2.num_heads = heads;
  model.hidden_size = 128 * heads;
  model.num_layers = layers;
  model.mlp.intermediate_size = mlp_width;
  model.vocab_size = vocab_size;
  model::complete_model(model);
  return model;
}

TEST_CASE("the released linear models have the published numbers of weights", "[linear]") {
  struct Released {
    int layers, heads, mlp_width, vocab_size;
    int64_t totals[3][3];  // of gla5, gdn2, mamba2 with no convolution, b, AbCD
  };
  const Released sizes[] = {{24,
                             16,
                             4096,
                             32000,
                             {{1343217664, 1344004096, 1345183744},
                              {1343169280, 1343955712, 1345135360},
                              {1352600704, 1353122944, 1354302592}}},
                            {26,
                             24,
                             6144,
                             32000,
                             {{3147808256, 3149086208, 3151003136},
                              {3149007584, 3150285536, 3152202464},
                              {3163698000, 3164530000, 3166446928}}},
                            {32,
                             32,
                             9472,
                             128256,
                             {{8007593984, 8009691136, 8013164544},
                              {8011659264, 8013756416, 8017229824},
                              {8034720768, 8036072448, 8039545856}}}};
  const char* kinds[] = {"gla5", "gdn2", "mamba2"};
  const char* sets[] = {"", "b", "AbCD"};
  for (const Released& size : sizes) {
    for (int kind = 0; kind < 3; ++kind) {
      for (int set = 0; set < 3; ++set) {
        INFO(kinds[kind] << " '" << sets[set] << "' of " << size.heads << " heads");
        const ModelConfig model = released(
            kinds[kind], sets[set], size.layers, size.heads, size.mlp_width, size.vocab_size);
        CHECK(model::parameter_count(model) == size.totals[kind][set]);
      }
    }
  }
}

TEST_CASE("linear models have as many weights as the vectors say", "[linear]") {
  const std::vector<LinearCase> cases = linear_cases();
  REQUIRE_FALSE(cases.empty());
  for (const LinearCase& one : cases) {
    INFO(one.name);
    CHECK(model::parameter_count(one.model) == one.expected.at("n_params"));
    CHECK(one.weights.size() == model::parameters(one.model).size());
  }
}

TEST_CASE("a linear mixer's operations and state do not grow with the row", "[linear]") {
  for (const char* kind : {"gla5", "gdn2", "mamba2"}) {
    const ModelConfig model = released(kind, "AbCD", 24, 16, 4096, 32000);
    INFO(kind);
    const model::StateSize state = model::generation_state(model);
    CHECK(state.per_token == 0);
    // 128 keys and 256 values a head, 16 heads; three inputs of each convolution: A and C of 2048
    // channels, D of twice 4096, b of q, k and v, or of x, B and C.
    const int64_t conv = kind == std::string("mamba2") ? 4096 + 2 * 128 : 2048 + 2048 + 4096;
    CHECK(state.fixed == 24 * (16 * 128 * 256 + 3 * (2 * 2048 + 2 * 4096 + conv)));
    const double short_row = model::flops_per_token(model, 64).total();
    CHECK(model::flops_per_token(model, 16384).total() == short_row);
  }
}

double mixing(const ModelConfig& model) {
  const model::TokenFlops flops = model::flops_per_token(model, 16384);
  REQUIRE(flops.mixing.size() == 1);
  return flops.mixing[0].second;
}

TEST_CASE("a linear mixer's operations are those of chunks of 64 tokens", "[linear]") {
  const double heads = 24.0 * 16, keys = 128, values = 256, chunk = 64;
  const double state = keys * values, width = keys + values;
  CHECK(mixing(released("gla5", "", 24, 16, 4096, 32000)) ==
        heads * (4 * state + 2 * chunk * width));
  CHECK(mixing(released("gdn2", "", 24, 16, 4096, 32000)) ==
        Approx(heads * (6 * state + 4 * chunk * width + 2 * chunk * chunk / 3)));
  // B and C are the same for all heads.
  CHECK(mixing(released("mamba2", "", 24, 16, 4096, 32000)) ==
        heads * (4 * state + 2 * chunk * values) + 24 * 2 * chunk * keys);
  const ModelConfig gla5 = released("gla5", "", 24, 16, 4096, 32000);
  const double d = 2048;
  // q, k, v, o, the two low-rank pairs, the MLP.
  const double matrices = 6 * d * d + (16 * d + 16 * d) + (16 * d + 16 * 2 * d) + 3 * d * 4096;
  CHECK(model::flops_per_token(gla5, 512).projections == 24 * 2 * matrices);
  CHECK(model::flops_per_token(gla5, 512).canon == 0);
  const ModelConfig mamba2 = released("mamba2", "b", 24, 16, 4096, 32000);
  CHECK(model::flops_per_token(mamba2, 512).canon == 24 * 2 * 4 * (4096 + 2 * 128));
}

const model::Parameter& weight_named(const std::vector<model::Parameter>& weights,
                                     const std::string& ending) {
  for (const model::Parameter& weight : weights) {
    const std::string& name = weight.name;
    if (name.size() >= ending.size() &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
      return weight;
  }
  throw Error("no weight " + ending);
}

ModelConfig wide(const std::string& kind, model::ModelInit init) {
  ModelConfig model = model_of_kind(kind, "AbCD");
  model.vocab_size = 64;
  model.hidden_size = 256;
  model.num_layers = 1;
  model.mlp.intermediate_size = 128;
  model.init = init;
  model::complete_model(model);
  return model;
}

std::vector<float> drawn(const model::Parameter& weight, uint64_t seed = 5) {
  std::vector<float> values(static_cast<size_t>(weight.count()));
  model::draw_initial(weight, seed, values.data());
  return values;
}

double std_of(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / count - (sum / count) * (sum / count));
}

/// Many numbers of a rule, each turned into what is uniform if the rule is right, in [0, 1].
template <class Transform>
std::vector<double> uniform_if_right(const InitRule& rule, Transform transform) {
  std::vector<double> values;
  for (const float value : drawn({"w", {20000}, rule})) values.push_back(transform(value));
  std::sort(values.begin(), values.end());
  return values;
}

/// Kolmogorov and Smirnov's distance; of 20,000 uniform numbers it is below 0.0138 but once in a
/// thousand times.
double distance_from_uniform(const std::vector<double>& sorted) {
  const auto count = static_cast<double>(sorted.size());
  double distance = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto rank = static_cast<double>(i);
    distance = std::max({distance, sorted[i] - rank / count, (rank + 1) / count - sorted[i]});
  }
  return distance;
}

TEST_CASE("decays and step sizes of linear mixers begin by their distributions", "[linear]") {
  const auto gdn2 = model::parameters(wide("gdn2", model::ModelInit::release));
  const auto mamba2 = model::parameters(wide("mamba2", model::ModelInit::release));
  const InitRule decay = weight_named(gdn2, "gdn2.A_log").init;
  CHECK(distance_from_uniform(uniform_if_right(decay, [](double a) { return std::exp(a) / 16; })) <
        0.0138);
  const InitRule other = weight_named(mamba2, "mamba2.A_log").init;
  CHECK(distance_from_uniform(
            uniform_if_right(other, [](double a) { return (std::exp(a) - 1) / 15; })) < 0.0138);
  for (const auto* weights : {&gdn2, &mamba2}) {
    const InitRule step = weight_named(*weights, ".dt_bias").init;
    CHECK(distance_from_uniform(uniform_if_right(step, [](double bias) {
            const double softplus = std::log1p(std::exp(bias));
            return (std::log(softplus) - std::log(1e-3)) / (std::log(1e-1) - std::log(1e-3));
          })) < 0.0138);
  }
  CHECK(drawn(weight_named(mamba2, "mamba2.D")) == std::vector<float>(16, 1.0F));
  // The smallest number that can be drawn is a number.
  const double smallest = open_uniform(0);
  CHECK(std::isfinite(portable_log(decay.high * smallest)));
  CHECK(decay.low == 0);
}

TEST_CASE("matrices of linear models begin as in the released code", "[linear]") {
  for (const std::string kind : {"gla5", "gdn2"}) {
    INFO(kind);
    const auto weights = model::parameters(wide(kind, model::ModelInit::release));
    for (const char* name : {".q_proj.weight",
                             ".o_proj.weight",
                             "mlp.down_proj.weight",
                             "embed_tokens.weight",
                             "lm_head.weight",
                             ".v_conv1d.weight"}) {
      INFO(name);
      CHECK(std_of(drawn(weight_named(weights, name))) == Approx(0.02).epsilon(0.05));
    }
    const double low_rank = std::sqrt(0.02) / std::pow(16, 0.25);
    for (const char* name : {".g_proj.0.weight", ".g_proj.1.weight"})
      CHECK(std_of(drawn(weight_named(weights, name))) == Approx(low_rank).epsilon(0.05));
    CHECK(std_of(drawn(weight_named(weights, ".g_proj.1.bias"))) == 0);
    CHECK(drawn(weight_named(weights, ".g_proj.1.bias"))[0] == 0);
    const std::string norm = kind == "gla5" ? ".g_norm.weight" : ".o_norm.weight";
    CHECK(drawn(weight_named(weights, norm)) == std::vector<float>(32, 1.0F));
  }
  const auto gla5 = model::parameters(wide("gla5", model::ModelInit::lingua));
  CHECK(std_of(drawn(weight_named(gla5, ".gk_proj.0.weight"))) == Approx(0.0707).epsilon(0.05));
  // The matrices of full rank follow model.init.
  CHECK(weight_named(gla5, ".q_proj.weight").init.kind == InitRule::Kind::truncated_normal);

  const auto mamba2 = model::parameters(wide("mamba2", model::ModelInit::release));
  const auto require_uniform = [&](const char* name, double bound) {
    INFO(name);
    const std::vector<float> values = drawn(weight_named(mamba2, name));
    CHECK(std_of(values) == Approx(bound / std::sqrt(3)).epsilon(0.05));
    CHECK(*std::max_element(values.begin(), values.end()) < bound);
  };
  require_uniform("mamba2.in_proj.weight", 1.0 / 16);
  require_uniform("mamba2.out_proj.weight", 1 / std::sqrt(512));
  require_uniform("mlp.down_proj.weight", 1 / std::sqrt(128));
  require_uniform("lm_head.weight", 1.0 / 16);
  require_uniform("mamba2.conv1d.weight", 0.5);
  require_uniform("mamba2.conv1d.bias", 0.5);
  CHECK(std_of(drawn(weight_named(mamba2, "embed_tokens.weight"))) == Approx(0.1).epsilon(0.05));
}

TEST_CASE("vectors of linear mixers stay in float32 or wider", "[linear]") {
  for (const char* kind : {"gla5", "gdn2", "mamba2"}) {
    for (const auto& weight : model::parameters(wide(kind, model::ModelInit::release)))
      CHECK(weight.is_matrix == (weight.shape.size() == 2));
  }
}

}  // namespace
}  // namespace forge::tests
