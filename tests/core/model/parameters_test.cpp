#include "core/model/parameters.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "tests/core/model/models.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"

namespace forge::model {
namespace {

using config::InitStdFactor;
using config::ModelConfig;
using config::ModelInit;
using config::QkNorm;
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
  model.qk_norm = QkNorm::full;
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
  model.head_dim = 16;
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
    if (parameter.part != Part::norm) require_normal(parameter.init, 0.02);
  }
}

TEST_CASE("lingua initialisation takes its deviation from the width and cuts at three") {
  ModelConfig model = tests::tiny_canon();
  model.init = ModelInit::lingua;
  model.head_dim = 16;  // so that the attention output's fan-in is not hidden_size
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
    model.qk_norm = QkNorm::per_head;
    model.init = init;
    model.canon.kernel = 3;
    for (const Parameter& parameter : parameters(model)) {
      if (parameter.part == Part::norm || parameter.part == Part::qk_norm) {
        REQUIRE(parameter.init.kind == InitRule::Kind::constant);
        REQUIRE(parameter.init.value == 1);
      }
      if (name_of(parameter.part).find("canon") == 0) {
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
  model.num_heads = model.head_dim = model.hidden_size = 2'000'000'000;
  REQUIRE(tests::error_of([&] { parameters(model); }).find("2^48") != std::string::npos);
}

}  // namespace
}  // namespace forge::model
