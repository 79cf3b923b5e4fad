#include <cmath>
#include <iostream>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/model/parameters.h"
#include "tests/core/model/models.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"

namespace forge::model {
namespace {

using model::InitStdFactor;
using model::ModelConfig;
using model::ModelInit;
using model::QkNorm;
using Json = nlohmann::json;
using Shapes = std::map<std::string, std::vector<int64_t>>;

Shapes shapes_of(const ModelConfig& model) {
  Shapes shapes;
  for (const Parameter& parameter : parameters(model)) shapes[parameter.name] = parameter.shape;
  return shapes;
}

std::vector<std::string> names_of(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters(model)) names.push_back(parameter.name);
  return names;
}

InitRule rule_of(const ModelConfig& model, const std::string& ending) {
  for (const Parameter& parameter : parameters(model)) {
    if (ends_with(parameter.name, ending + ".weight")) return parameter.init;
  }
  FAIL("no parameter ends with " << ending);
  return {};
}

void require_normal(const InitRule& rule, double std) {
  REQUIRE(rule.kind == InitRule::Kind::normal);
  REQUIRE(rule.std == Approx(std).epsilon(1e-14));
}

void require_truncated(const InitRule& rule, double std, double cut) {
  REQUIRE(rule.kind == InitRule::Kind::truncated_normal);
  REQUIRE(rule.std == Approx(std).epsilon(1e-14));
  REQUIRE(rule.cut == Approx(cut).epsilon(1e-14));
}

TEST_CASE("Llama 4M has 4434176 parameters and Canon ABCD adds 45056") {
  ModelConfig model = tests::llama_4m();
  REQUIRE(parameter_count(model) == 4'434'176);
  model.canon.set = "ABCD";
  REQUIRE(parameter_count(model) == 4'434'176 + 45'056);
}

TEST_CASE("parameters come in the order of the modules") {
  ModelConfig model = tests::tiny_canon();
  model.num_layers = 1;
  model.attention.qk_norm = QkNorm::full;
  REQUIRE(names_of(model) ==
          std::vector<std::string>{"model.embed_tokens.weight",
                                   "model.layers.0.input_layernorm.weight",
                                   "model.layers.0.canonA.weight",
                                   "model.layers.0.self_attn.q_proj.weight",
                                   "model.layers.0.self_attn.k_proj.weight",
                                   "model.layers.0.self_attn.v_proj.weight",
                                   "model.layers.0.self_attn.o_proj.weight",
                                   "model.layers.0.self_attn.q_norm.weight",
                                   "model.layers.0.self_attn.k_norm.weight",
                                   "model.layers.0.self_attn.canonB.weight",
                                   "model.layers.0.post_attention_layernorm.weight",
                                   "model.layers.0.canonC.weight",
                                   "model.layers.0.mlp.gate_proj.weight",
                                   "model.layers.0.mlp.up_proj.weight",
                                   "model.layers.0.mlp.down_proj.weight",
                                   "model.layers.0.mlp.canonD.weight",
                                   "model.norm.weight",
                                   "lm_head.weight"});
}

TEST_CASE("every reference case has the same names and shapes and number of weights") {
  const fs::path folder = tests::vectors_dir();
  const Json reference =
      Json::parse(read_file(tests::shared_vector_file("llama_weights.json"))).at("shapes");
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!starts_with(entry.path().filename().string(), "case_")) continue;
    INFO(entry.path());
    const Json vector = Json::parse(read_file(entry.path()));
    const ModelConfig model = tests::read_vector_case(vector.at("config")).model;
    Shapes expected;
    for (const std::string name : vector.at("params")) {
      expected[name] = reference.at(name).get<std::vector<int64_t>>();
    }
    Shapes shapes;
    for (const auto& [name, shape] : shapes_of(model)) {
      shapes[tests::vector_weight_name(name, model)] = shape;
    }
    REQUIRE(shapes == expected);
    REQUIRE(parameter_count(model) == vector.at("n_params"));
    ++cases;
  }
  REQUIRE(cases > 0);
}

TEST_CASE("each Canon position adds its own weight of its own width") {
  const ModelConfig plain = [] {
    ModelConfig model = tests::tiny_canon();
    model.canon.set = "";
    return model;
  }();
  const auto added = [&](const std::string& set) {
    ModelConfig model = tests::tiny_canon();
    model.canon.set = set;
    model.canon.kernel = 3;
    Shapes shapes = shapes_of(model);
    for (const auto& [name, shape] : shapes_of(plain)) shapes.erase(name);
    REQUIRE(shapes.size() == 2);
    return *shapes.begin();
  };
  using Named = std::pair<const std::string, std::vector<int64_t>>;
  REQUIRE(added("A") == Named{"model.layers.0.canonA.weight", {32, 1, 3}});
  REQUIRE(added("B") == Named{"model.layers.0.self_attn.canonB.weight", {64, 1, 3}});
  REQUIRE(added("C") == Named{"model.layers.0.canonC.weight", {32, 1, 3}});
  REQUIRE(added("D") == Named{"model.layers.0.mlp.canonD.weight", {96, 1, 3}});
}

TEST_CASE("heads of another width than hidden over heads give projections of that width") {
  ModelConfig model = tests::tiny_canon();
  model.attention.head_dim = 16;
  Shapes shapes = shapes_of(model);
  REQUIRE(shapes["model.layers.1.self_attn.q_proj.weight"] == std::vector<int64_t>{64, 32});
  REQUIRE(shapes["model.layers.1.self_attn.k_proj.weight"] == std::vector<int64_t>{32, 32});
  REQUIRE(shapes["model.layers.1.self_attn.o_proj.weight"] == std::vector<int64_t>{32, 64});
  REQUIRE(shapes["model.layers.1.self_attn.canonB.weight"] == std::vector<int64_t>{128, 1, 4});
}

TEST_CASE("forgather initialisation shrinks the gate and the ends of the residual branches") {
  const ModelConfig model = tests::llama_4m();
  const double shrunk = 0.02 / std::sqrt(8.0);
  require_normal(rule_of(model, "embed_tokens"), 1);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "up_proj"}) {
    require_truncated(rule_of(model, name), 0.02, 2);
  }
  for (const char* name : {"o_proj", "gate_proj", "down_proj"}) {
    require_truncated(rule_of(model, name), shrunk, 2);
  }
  require_truncated(rule_of(model, "lm_head"), 1.0 / 16, 3.0 / 16);
}

TEST_CASE("tied embeddings under forgather are drawn like the output projection") {
  ModelConfig model = tests::llama_4m();
  model.tie_embeddings = true;
  REQUIRE(shapes_of(model).count("lm_head.weight") == 0);
  require_truncated(rule_of(model, "embed_tokens"), 1.0 / 16, 3.0 / 16);
}

TEST_CASE("huggingface initialisation is one normal for every matrix") {
  ModelConfig model = tests::llama_4m();
  model.init = ModelInit::huggingface;
  for (const Parameter& parameter : parameters(model)) {
    INFO(parameter.name);
    if (parameter.part != "norm") require_normal(parameter.init, 0.02);
  }
}

TEST_CASE("lingua initialisation takes its deviation from the width and cuts at three") {
  ModelConfig model = tests::tiny_canon();
  model.init = ModelInit::lingua;
  model.attention.head_dim = 16;  // so that the attention output's fan-in is not hidden_size
  const double wide = 1 / std::sqrt(32.0);
  for (const char* name : {"embed_tokens",
                           "q_proj",
                           "k_proj",
                           "v_proj",
                           "o_proj",
                           "gate_proj",
                           "up_proj",
                           "lm_head"}) {
    require_truncated(rule_of(model, name), wide, 3 * wide);
  }
  require_truncated(rule_of(model, "down_proj"), 1 / std::sqrt(48.0), 3 / std::sqrt(48.0));
}

TEST_CASE("lingua's base deviation reaches all but the embedding and the output projection") {
  ModelConfig model = tests::tiny_canon();
  model.init = ModelInit::lingua;
  model.init_base_std = 0.05;
  for (const char* name : {"q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}) {
    require_truncated(rule_of(model, name), 0.05, 0.15);
  }
  const double wide = 1 / std::sqrt(32.0);
  for (const char* name : {"embed_tokens", "lm_head"}) {
    require_truncated(rule_of(model, name), wide, 3 * wide);
  }
}

TEST_CASE("lingua's factor divides the ends of the residual branches") {
  ModelConfig model = tests::tiny_canon();
  model.init = ModelInit::lingua;
  const double wide = 1 / std::sqrt(32.0), narrow = 1 / std::sqrt(48.0);
  const auto require_factor = [&](InitStdFactor kind, int layer, double factor) {
    model.init_std_factor = kind;
    const std::string block = "layers." + std::to_string(layer) + ".";
    // The attention output keeps its cut, the MLP's takes its own.
    require_truncated(rule_of(model, block + "self_attn.o_proj"), wide / factor, 3 * wide);
    require_truncated(
        rule_of(model, block + "mlp.down_proj"), narrow / factor, 3 * narrow / factor);
    for (const char* name : {"self_attn.q_proj", "mlp.gate_proj", "mlp.up_proj"}) {
      require_truncated(rule_of(model, block + name), wide, 3 * wide);
    }
  };
  require_factor(InitStdFactor::disabled, 1, 1);
  require_factor(InitStdFactor::global_depth, 0, std::sqrt(2.0 * 3));
  require_factor(InitStdFactor::global_depth, 1, std::sqrt(2.0 * 3));
  require_factor(InitStdFactor::current_depth, 0, std::sqrt(2.0 * 1));
  require_factor(InitStdFactor::current_depth, 1, std::sqrt(2.0 * 2));
  require_factor(InitStdFactor::dim_ratio, 1, 32.0 / 4096);
}

TEST_CASE("norms start at one and Canon weights are uniform under every initialisation") {
  for (const ModelInit init : {ModelInit::forgather, ModelInit::huggingface, ModelInit::lingua}) {
    ModelConfig model = tests::tiny_canon();
    model.attention.qk_norm = QkNorm::per_head;
    model.init = init;
    model.canon.kernel = 3;
    for (const Parameter& parameter : parameters(model)) {
      if (parameter.part == "norm" || parameter.part == "qk_norm") {
        REQUIRE(parameter.init.kind == InitRule::Kind::constant);
        REQUIRE(parameter.init.value == 1);
      }
      if (parameter.part.find("canon") == 0) {
        REQUIRE(parameter.init.kind == InitRule::Kind::uniform);
        REQUIRE(parameter.init.bound == Approx(1 / std::sqrt(3.0)).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("an impossibly large model is refused before anything is allocated") {
  ModelConfig model = tests::llama_4m();
  model.num_layers = 2'000'000'000;
  REQUIRE(tests::error_of([&] { parameters(model); }).find("num_layers") != std::string::npos);
  model = tests::llama_4m();
  model.attention.num_heads = model.attention.head_dim = model.hidden_size = 2'000'000'000;
  REQUIRE(tests::error_of([&] { parameters(model); }).find("2^48") != std::string::npos);
}

using model::ModelConfig;
using model::ModelInit;
using Kind = InitRule::Kind;

InitRule rule(Kind kind, double std, double cut, double bound) {
  InitRule rule;
  rule.kind = kind;
  rule.std = std;
  rule.cut = cut;
  rule.bound = bound;
  return rule;
}

std::vector<float> draw(const std::string& name,
                        int64_t count,
                        const InitRule& init,
                        uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  draw_initial({name, {count}, init}, seed, values.data());
  return values;
}

std::string hash_of_weights(const ModelConfig& model, uint64_t seed) {
  Hasher hasher;
  for (const Parameter& parameter : parameters(model)) {
    std::vector<float> values(static_cast<size_t>(parameter.count()));
    draw_initial(parameter, seed, values.data());
    hasher.update(values.data(), values.size() * sizeof(float));
  }
  return hasher.hex();
}

double std_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  return std::sqrt(squares / static_cast<double>(values.size()));
}

void require_near(const std::vector<float>& values, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    REQUIRE(values[i] == Approx(expected[i]).epsilon(1e-7));
}

// Computed with a Philox and an FNV-1a in Python and its statistics.NormalDist().inv_cdf.
TEST_CASE("first values of three weights agree with an independent generator") {
  require_near(draw("model.embed_tokens.weight", 6, rule(Kind::normal, 0.02, 0, 0), 42),
               {0.011561310850083828,
                -0.002387430053204298,
                0.0016719462582841516,
                0.002724240068346262,
                -0.006927746348083019,
                -0.02568083442747593});
  require_near(draw("lm_head.weight", 6, rule(Kind::truncated_normal, 1.0 / 16, 3.0 / 16, 0), 42),
               {0.08109141886234283,
                -0.06913652271032333,
                -0.023651735857129097,
                0.026782261207699776,
                -0.0258916188031435,
                0.002531824167817831});
  require_near(draw("model.layers.0.canonA.weight", 6, rule(Kind::uniform, 0, 0, 0.5), 42),
               {-0.4707818925380707,
                -0.4295494556427002,
                -0.005115100182592869,
                0.17412595450878143,
                -0.12338279187679291,
                0.2193024605512619});
}

// A change here changes the losses of every run: raise numerics_version of the backends with it.
TEST_CASE("weights of a small model are the same bits for ever") {
  ModelConfig model = tests::tiny_canon();
  REQUIRE(hash_of_weights(model, 42) == "bef3e939ad84c7378f784a8ba5580d9e");
  model.init = ModelInit::huggingface;
  REQUIRE(hash_of_weights(model, 42) == "01316d6a30ce6252fa1ca05dfd81ce85");
  model.init = ModelInit::lingua;
  REQUIRE(hash_of_weights(model, 42) == "868b239cb6c83223cda1c828730cb879");
}

TEST_CASE("a weight depends on the seed and on its name alone") {
  const InitRule normal = rule(Kind::normal, 1, 0, 0);
  const auto values = draw("a", 9, normal, 1);
  REQUIRE(values != draw("b", 9, normal, 1));
  REQUIRE(values != draw("a", 9, normal, 2));
  // Counts that are no multiple of the generator's four words give the same beginning.
  for (int64_t count = 0; count < 9; ++count) {
    const auto beginning = draw("a", count, normal, 1);
    REQUIRE(std::equal(beginning.begin(), beginning.end(), values.begin()));
  }
}

TEST_CASE("parts of a weight are what they are in the whole") {
  for (const Kind kind : {Kind::constant, Kind::normal, Kind::truncated_normal, Kind::uniform}) {
    const Parameter parameter{"a", {41}, rule(kind, 1, 2, 0.5)};
    std::vector<float> whole(41);
    draw_initial(parameter, 1, whole.data());
    for (int64_t first = 0; first <= 41; ++first) {
      for (int64_t count = 0; count <= 41 - first; ++count) {
        std::vector<float> part(static_cast<size_t>(count));
        draw_initial(parameter, 1, first, count, part.data());
        REQUIRE(std::equal(part.begin(), part.end(), whole.begin() + first));
      }
    }
  }
}

TEST_CASE("nothing is written behind the last value") {
  std::vector<float> values(6, 7.0f);
  draw_initial({"a", {5}, rule(Kind::uniform, 0, 0, 1)}, 1, values.data());
  REQUIRE(values[5] == 7.0f);
}

TEST_CASE("drawn values have the moments of their distribution") {
  constexpr int64_t count = 200'000;
  REQUIRE(std_of(draw("n", count, rule(Kind::normal, 0.02, 0, 0), 3)) ==
          Approx(0.02).epsilon(0.01));
  REQUIRE(std_of(draw("u", count, rule(Kind::uniform, 0, 0, 0.5), 3)) ==
          Approx(0.5 / std::sqrt(3.0)).epsilon(0.01));
  double sum = 0;
  for (const float value : draw("n", count, rule(Kind::normal, 1, 0, 0), 3)) sum += double{value};
  REQUIRE(std::fabs(sum / count) < 5 / std::sqrt(double{count}));
}

TEST_CASE("a truncated normal stays within its cut and loses the tails") {
  const auto values = draw("t", 200'000, rule(Kind::truncated_normal, 1, 3, 0), 3);
  for (const float value : values) REQUIRE_FALSE(std::fabs(value) > 3);
  REQUIRE(std_of(values) == Approx(0.98658).epsilon(0.005));  // of a normal cut at +-3
  REQUIRE(std_of(draw("t", 200'000, rule(Kind::truncated_normal, 1, 1, 0), 3)) ==
          Approx(0.53956).epsilon(0.01));
}

}  // namespace
}  // namespace forge::model

// The values that weights really have at the start, against the distributions that MATHEMATICS.md
// names: standard deviation, mean, and where tails are cut.

namespace forge::model {
namespace {

using model::InitStdFactor;
using model::ModelConfig;
using model::ModelInit;

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
    if (parameter.part == "norm") continue;
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
      if (parameter.part != "canon_d") continue;
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
