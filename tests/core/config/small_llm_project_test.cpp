#include "core/model/parameters.h"
#include "core/project/names.h"
#include "core/report/table_spec.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::fixed_options;
using tests::fixed_surroundings;

project::Project small_llm() {
  const auto workspace = tests::shipped_workspace();
  return project::load_project(
      workspace, workspace.root / "projects/small_llm", fixed_surroundings());
}

Experiment resolved(const std::string& config, const ResolveOptions& options = fixed_options()) {
  return resolve(small_llm(), config, options).experiment;
}

const std::vector<std::string> pretrained_variants = {
    "llama", "canon", "canon_b_rope", "canon_ac_rope"};

TEST_CASE("the medium reference is Llama with 162 million parameters") {
  const ModelConfig model = resolved("llama").model;
  CHECK(model.hidden_size == 768);
  CHECK(model.intermediate_size == 2048);
  CHECK(model.num_layers == 16);
  CHECK(model.num_heads == 8);
  CHECK(model.vocab_size == 32000);
  CHECK_FALSE(model.tie_embeddings);
  CHECK(model::parameter_count(model) == 162423552);
}

TEST_CASE("every variant trains on 20 tokens for each parameter of the reference") {
  const int64_t budget = 20 * model::parameter_count(resolved("llama").model);
  for (const std::string& variant : pretrained_variants) {
    const TrainConfig train = resolved(variant).train;
    CHECK(train.max_tokens == budget);
    const int64_t tokens_per_step = int64_t{train.batch_size} * train.seq_len;
    CHECK(train.max_steps == (budget + tokens_per_step - 1) / tokens_per_step);
  }
}

TEST_CASE("canon is Canon-A without positions and with QK-norm per head in the same shape") {
  const ModelConfig canon = resolved("canon").model;
  CHECK(canon.canon.set == "A");
  CHECK(canon.position.kind == PositionKind::nope);
  CHECK(canon.qk_norm == QkNorm::per_head);
  for (const auto& [config, set] : {std::pair("canon_b_rope", "B"), {"canon_ac_rope", "AC"}}) {
    const ModelConfig model = resolved(config).model;
    CHECK(model.canon.set == set);
    CHECK(model.position.kind == PositionKind::rope);
    CHECK(model.qk_norm == QkNorm::none);
  }
  const ModelConfig llama = resolved("llama").model;
  CHECK(canon.hidden_size == llama.hidden_size);
  CHECK(canon.num_layers == llama.num_layers);
}

TEST_CASE("the grid changes the learning rate and the name alone") {
  for (const std::string& variant : pretrained_variants) {
    for (const auto& [folder, lr] : {std::pair("lr3e-4/", 3e-4), {"lr3e-3/", 3e-3}}) {
      ResolvedConfig base = resolve(small_llm(), variant, fixed_options());
      const ResolvedConfig grid = resolve(small_llm(), folder + variant, fixed_options());
      CHECK(base.json["optimizer"]["lr"] == 1e-3);
      base.json["optimizer"]["lr"] = lr;
      base.json["name"] = grid.json.at("name");
      CHECK(base.json == grid.json);
    }
  }
}

TEST_CASE("the learning rate is an argument of every config too") {
  ResolveOptions options = fixed_options();
  templating::Variable lr;
  lr.kind = templating::Variable::Kind::real;
  lr.real = 5e-4;
  options.variables["lr"] = lr;
  CHECK(resolved("lr3e-3/canon", options).optimizer.lr == 5e-4);
}

TEST_CASE("the tiny profile needs nothing and is chosen by name alone") {
  for (const bool gpu : {false, true}) {
    CHECK(resolved("llama", fixed_options({}, gpu)).profile == "full");
  }
  for (const std::string& variant : pretrained_variants) {
    const ResolvedConfig tiny = resolve(small_llm(), variant, fixed_options({"profile=tiny"}));
    CHECK(tiny.obstacles.empty());
    CHECK(model::parameter_count(tiny.experiment.model) < 1000000);
    CHECK(tiny.experiment.train.max_steps == 40);
    CHECK(tiny.experiment.model.canon.set == resolved(variant).model.canon.set);
  }
}

TEST_CASE("the tables of the 162M project name its configs") {
  const project::Project project = small_llm();
  std::vector<std::string> configs;
  for (const project::Config& config : project.configs) configs.push_back(config.name);
  const auto read = [&](const char* name) {
    return report::read_table((project.folder / "tables" / name).string(), configs);
  };
  const report::TableSpec table = read("variants.yaml");
  CHECK(table.baseline == "llama");
  CHECK(table.rows.size() == 4);
  CHECK(table.claims.size() == 5);
  for (const report::ClaimSpec& claim : table.claims) CHECK(claim.profile == "full");
  const report::TableSpec rates = read("lr_grid.yaml"), precision = read("precision.yaml");
  CHECK(rates.rows.size() + precision.rows.size() == configs.size() + 1);  // canon is in both
  CHECK(rates.claims.size() == 1);
  CHECK(precision.claims.size() == 1);
}

}  // namespace
}  // namespace forge::config
