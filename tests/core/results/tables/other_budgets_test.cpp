#include "core/results/tables/other_budgets.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/core/results/tables/simulated_tables.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using simulated::most_of;
using simulated::normal;
using store::ConfiguredRun;

/// A table of two rows that are compared and of one that sets the budget at which they are.
TableSpec table_of_costs() {
  TableSpec table;
  table.name = "costs";
  table.baseline = "baseline";
  table.rows = {
      {"baseline", "Baseline", "", ""}, {"variant", "Variant", "", ""}, {"small", "Small", "", ""}};
  table.columns = {{ColumnKind::metric, "At equal FLOPs", results::loss_at_equal_flops_name},
                   {ColumnKind::metric, "At equal time", results::loss_at_equal_time_name}};
  table.primary = results::loss_at_equal_flops_name;
  table.must_be_equal = {"profile", "data", "evaluation"};
  table.parameters_within = table.flops_within = std::nullopt;
  return table;
}

constexpr int full_length = 100;

/// Runs of the project, of which those of former sizes of a row are of other models than it has.
struct Project {
  std::vector<ConfiguredRun> runs;
  AblationOptions options;
  std::map<std::string, std::vector<store::LossPoint>> curves;

  /// A run of so many steps, which was planned in that minute.
  void add(const std::string& config,
           int length,
           int64_t seed,
           const std::string& planned,
           int minute,
           const std::vector<double>& losses) {
    ConfiguredRun run;
    config::Experiment experiment = tests::MadeRun().experiment;
    experiment.profile = "full";
    experiment.train.max_steps = length;
    experiment.seed = static_cast<uint64_t>(seed);
    run.config = config::to_json(experiment);
    store::RunSummary& summary = run.summary;
    char text[64];
    summary.id = config + "-" + std::to_string(length) + "-" + std::to_string(seed);
    summary.project = "projects/costs";
    summary.config = config;
    summary.profile = "full";
    summary.seed = seed;
    summary.planned_seeds = planned;
    std::snprintf(text, sizeof text, "2026-11-20T%02d:%02d:00.000Z", 8 + minute / 60, minute % 60);
    summary.created = text;
    std::snprintf(text, sizeof text, "2026-11-20T%02d:%02d:30.000Z", 8 + minute / 60, minute % 60);
    summary.updated = text;
    summary.status = run::RunState::completed;
    summary.step = summary.max_steps = length;
    summary.tokens_per_step = 1000;
    summary.tokens = int64_t{1000} * length;
    summary.parameters = 1000000;
    summary.data_fingerprint = "d1d1d1d1d1d1";
    summary.tokenizer_fingerprint = "e2e2e2e2e2e2";
    summary.evaluation = "64 rows of 16 tokens";
    summary.backend = "fake";
    summary.device_type = "cpu";
    summary.device_name = "Test CPU";
    summary.threads = 2;
    summary.metrics["eval_loss"] = losses.back();
    summary.metrics["tokens_per_second"] = 1000;
    std::vector<store::LossPoint>& curve = curves[summary.id];
    for (size_t i = 0; i < losses.size(); ++i) {
      store::LossPoint point;
      point.step = static_cast<int64_t>(5 * (i + 1));
      point.tokens = 1000 * point.step;
      point.loss = losses[i];
      if (point.step <= length) curve.push_back(point);
    }
    runs.push_back(run);
  }

  /// The table with the row that sets the budget at this length, as after an edit of its config.
  Ablation table(int length) const {
    AblationOptions shown = options;
    std::vector<ConfiguredRun> own;
    for (const ConfiguredRun& run : runs) {
      const bool is_former = run.summary.config == "small" && run.summary.max_steps != length;
      (is_former ? shown.other_models : own).push_back(run);
    }
    shown.evaluations = [this](const std::string& id) { return curves.at(id); };
    return build_ablation(table_of_costs(), own, shown);
  }
};

/// Losses of equal rows at 20 evaluations, of which half of the variance is that of the whole
/// curve.
std::vector<double> drawn_curve(RandomStream& random) {
  const double of_curve = normal(random);
  std::vector<double> losses(full_length / 5);
  for (double& loss : losses) loss = 3 + 0.01 * (of_curve + normal(random));
  return losses;
}

Project with_rows_compared(RandomStream& random) {
  Project project;
  for (int64_t seed = 1; seed <= 5; ++seed)
    for (const char* config : {"baseline", "variant"})
      project.add(config, full_length, seed, "1,2,3,4,5", int(seed), drawn_curve(random));
  return project;
}

TEST_CASE("who runs the row that sets the budget with another length has another look",
          "[report][budget][other_budgets]") {
  RandomStream random(1, stream_number("other budgets"));
  Project project = with_rows_compared(random);
  const auto number_at = [&](int length, const char* metric) {
    const Ablation ablation = project.table(length);
    REQUIRE(ablation.rows.size() == 3);
    REQUIRE(ablation.rows[1].loss_at_equal_flops.size() == 5);
    return place_at_budget({&ablation.rows[1], &ablation.rows[0]}, {metric}, ablation).number;
  };
  const char* const flops = results::loss_at_equal_flops_name;
  project.add("small", 95, 1, "1", 10, drawn_curve(random));
  CHECK(number_at(95, flops) == 1);
  CHECK(setup_of(project.table(95), "Other budgets").empty());
  project.add("small", 80, 1, "1", 11, drawn_curve(random));
  CHECK(number_at(80, flops) == 2);
  CHECK(number_at(80, results::loss_at_equal_time_name) == 2);
  CHECK(number_at(80, "eval_loss") == 1);
  CHECK(setup_of(project.table(80), "Other budgets") == "1 earlier equal budget counted");
  CHECK(number_at(95, flops) == 1);  // what is made later changes nothing
  // With all seeds, and with one that no row shows: each is a budget.
  for (int64_t seed = 1; seed <= 5; ++seed)
    project.add("small", 60, seed, "1,2,3,4,5", 12 + int(seed), drawn_curve(random));
  CHECK(number_at(60, flops) == 3);
  project.add("small", 40, 77, "77", 20, drawn_curve(random));
  CHECK(number_at(40, flops) == 4);
  // Longer than the rows that are compared: no budget.
  project.add("small", 120, 1, "1", 21, drawn_curve(random));
  project.add("small", 35, 1, "1", 22, drawn_curve(random));
  CHECK(number_at(35, flops) == 5);
  CHECK(setup_of(project.table(35), "Other budgets") == "4 earlier equal budgets counted");
  // Hidden runs were made all the same.
  Project archived = project;
  for (size_t i = 0; i < archived.runs.size();) {
    const store::RunSummary& run = archived.runs[i].summary;
    const bool is_hidden = run.config == "small" && run.max_steps > 40;
    if (is_hidden) archived.options.archived.push_back(archived.runs[i]);
    if (is_hidden)
      archived.runs.erase(archived.runs.begin() + std::ptrdiff_t(i));
    else
      ++i;
  }
  const Ablation less = archived.table(35);
  CHECK(place_at_budget({&less.rows[1], &less.rows[0]}, {flops}, less).number == 5);
}

TEST_CASE("each call of forge bench while the runs are known is a look at equal time",
          "[report][budget][plan]") {
  RandomStream random(7, 0);
  const Project project = with_rows_compared(random);
  const auto looks = [&](const std::vector<std::string>& earlier, const std::string& newest) {
    Ablation ablation = project.table(full_length);
    ablation.table.tokens_per_second = SpeedSource::benchmark;
    for (AblationRow& row : ablation.rows) {
      if (row.runs.empty()) continue;
      benchmark::Record record;
      record.call.created = newest;
      row.speed = {record, "", earlier};
    }
    const SetupEntry entry = describe_other_budgets(ablation);
    const SetPlace place = place_at_budget(
        {&ablation.rows[0], &ablation.rows[1]}, {results::loss_at_equal_time_name}, ablation);
    CHECK(entry.name == (place.number > 1 ? "Other budgets" : ""));
    return place.number;
  };
  const std::string before = "2026-11-19T08:00:00.000Z", old = "2026-11-18T08:00:00.000Z",
                    after = "2026-11-21T08:00:00.000Z", newest = "2026-11-22T08:00:00.000Z";
  CHECK(looks({}, newest) == 1);
  CHECK(looks({old}, before) == 1);  // nothing could be seen by it
  CHECK(looks({old, before}, newest) == 2);
  CHECK(looks({after}, newest) == 2);
  CHECK(looks({before, after}, newest) == 3);
}

TEST_CASE("a learning rate of the row that sets the budget is no other budget",
          "[report][budget][other_budgets]") {
  RandomStream random(1, stream_number("other budgets"));
  Project project = with_rows_compared(random);
  project.add("small", 95, 1, "1", 10, drawn_curve(random));
  project.add("small", 95, 2, "2", 9, drawn_curve(random));
  project.runs.back().config["optimizer"]["lr"] = 0.123;
  const Ablation ablation = project.table(95);
  CHECK(place_at_budget(
            {&ablation.rows[1], &ablation.rows[0]}, {results::loss_at_equal_flops_name}, ablation)
            .number == 1);
}

/// Whether some table calls equal rows different while a third one sets other budgets.
bool differ_at_any_budget(RandomStream& random, int lengths, int& at_first) {
  Project project = with_rows_compared(random);
  bool any = false;
  for (int i = 0; i < lengths; ++i) {
    const int length = 95 - 7 * i;
    project.add("small", length, 1, "1", 10 + i, drawn_curve(random));
    const Ablation table = project.table(length);
    Ablation alone = table;
    alone.table.columns.pop_back();
    const Standing standing =
        verdicts_of(alone).cells.at(results::loss_at_equal_flops_name)[1].standing;
    const bool is_real = standing == Standing::better || standing == Standing::worse;
    if (i == 0) at_first += is_real;
    any = any || is_real;
  }
  return any;
}

TEST_CASE("who moves the budget until two equal rows differ errs in one table in twenty",
          "[report][budget][other_budgets][simulation]") {
  const int tables = simulated_tables(60);
  RandomStream random(simulation_seed(), stream_number("moved budgets"));
  int differ = 0, at_first = 0;
  for (int i = 0; i < tables; ++i) differ += differ_at_any_budget(random, 12, at_first);
  std::printf("moved budgets: %.1f %% at the first, %.1f %% at any of 12\n",
              100.0 * at_first / tables,
              100.0 * differ / tables);
  CAPTURE(simulation_seed());
  CHECK(differ / double(tables) <= most_of(tables));
}

}  // namespace
}  // namespace forge::tables
