// What the pages of shipped projects say of their runs: projects/*/RESULTS*.json have the values of
// every seed, and this version must come to the verdicts that stand beside them. With
// FORGE_UPDATE_GOLDEN it writes them anew; the pages, which say the same in words, are for people.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/tables/read_table.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using Json = nlohmann::ordered_json;

/// When a seed's run of a row was made, if rows were trained in turn, there and back.
std::string time_in_turn(size_t seed, size_t row, size_t rows) {
  const size_t place = seed % 2 == 0 ? row : rows - 1 - row;
  return "2026-11-24T" + std::to_string(1000 + 100 * seed + place);
}

/// The runs of a row, of whose settings it is known only that they are alike.
std::vector<store::RunSummary> runs_of(const Json& row, size_t place, size_t rows, bool on_cpu) {
  std::vector<store::RunSummary> runs;
  for (const Json& published : row.at("runs")) {
    const size_t i = runs.size();
    store::RunSummary run;
    run.id = published.at("run_id");
    run.config = row.at("config");
    run.seed = published.at("seed");
    run.status = run::RunState::completed;
    run.created = time_in_turn(i, place, rows);
    run.metrics[results::eval_loss_name] = published.at("eval_loss");
    run.metrics[results::tokens_per_second_name] = published.at("tokens_per_second");
    for (const char* mean : {results::peak_memory_name, results::wall_seconds_name})
      if (row.contains(mean) && row.at(mean).is_number()) run.metrics[mean] = row.at(mean);
    // On a CPU it varies, and by how much is not shipped: as here, it says nothing.
    if (on_cpu) run.metrics[results::peak_memory_name] *= i % 2 == 0 ? 0.5 : 1.5;
    run.parameters = row.at("parameters");
    if (row.at("disturbance") != "") run.busy_elsewhere = 1;
    runs.push_back(std::move(run));
  }
  return runs;
}

/// The published values of a metric, one a seed.
std::vector<double> values_in(const Json& row, const char* metric) {
  const Json& all = row.at("statistics");
  return all.contains(metric) ? all.at(metric).at("values").get<std::vector<double>>()
                              : std::vector<double>();
}

/// How much of a published interval is due to the rows of text that were evaluated, whose losses
/// are not shipped: it reaches as far as the root of the squares of both errors.
double error_of_rows(const Json& difference,
                     const std::vector<double>& own,
                     const std::vector<double>& baseline,
                     size_t evaluated) {
  const auto of_seeds = statistics::paired_test(own, baseline);
  if (!of_seeds) return 0;
  const double published =
      (difference.at("high").get<double>() - difference.at("low").get<double>()) / 2;
  const double alone = (of_seeds->interval.high - of_seeds->interval.low) / 2;
  const double reach = std::sqrt(std::max(0.0, published * published - alone * alone));
  return reach / statistics::student_t_critical_value(0.95, double(evaluated) - 1);
}

/// Losses of rows of text of this mean whose differences to those of another place, or of the
/// baseline at place 0, have this error.
std::vector<double> losses_of_rows(double mean, double error, size_t place, size_t rows) {
  std::vector<double> losses(rows, mean);
  const double pi = std::acos(-1.0), n = double(rows);
  for (size_t k = 0; k < rows; ++k)
    losses[k] += error * std::sqrt(2 * (n - 1)) * std::cos(2 * pi * double(place * k) / n);
  return losses;
}

RunSet set_of(const Json& json) {
  RunSet set;
  set.second_run = json.at("second_run");
  set.second_begun = json.value("second_begun", "");
  set.conditions = json.at("conditions");
  return set;
}

/// What else was tried of a row's config.
RunSets sets_of(const Json& row) {
  RunSets sets;
  if (!row.contains("sets")) return sets;
  const Json& published = row.at("sets");
  sets.shown = set_of(published);
  for (const Json& other : published.at("others")) sets.others.push_back(set_of(other));
  sets.tables = published.at("tables").get<std::set<std::string>>();
  return sets;
}

Ablation published_table(const std::filesystem::path& project, const Json& json) {
  std::vector<std::string> configs;
  for (const Json& row : json.at("rows")) configs.push_back(row.at("config"));
  Ablation ablation;
  ablation.table = read_table(
      (project / "tables" / (json.at("table").get<std::string>() + ".yaml")).string(), configs);
  ablation.profile = json.at("profile");
  const Json& setup = json.at("setup");
  const size_t evaluated =
      setup.contains("Evaluation") ? std::stoul(setup.at("Evaluation").get<std::string>()) : 0;
  const bool on_cpu = tests::contains(setup.value("Device", ""), " threads");
  const Json* baseline = nullptr;
  for (const Json& row : json.at("rows"))
    if (row.at("config") == ablation.table.baseline) baseline = &row;
  double floor = std::nan("");
  for (const Json& published : json.at("rows")) {
    const size_t place = ablation.rows.size();
    AblationRow row;
    row.spec.config = published.at("config");
    row.spec.name = published.at("name");
    row.runs = runs_of(published, place, json.at("rows").size(), on_cpu);
    if (!row.runs.empty()) row.run = row.runs.back();
    row.first_runs = row.runs;
    row.planned_seeds =
        published.at("planned_seeds").is_null() ? 0 : size_t(published.at("planned_seeds"));
    row.sets = sets_of(published);
    row.violations = published.at("breaks").get<std::vector<std::string>>();
    row.differs_from_config = published.at("differs_from_config").get<std::vector<std::string>>();
    row.loss_at_equal_time = values_in(published, results::loss_at_equal_time_name);
    row.loss_at_equal_flops = values_in(published, results::loss_at_equal_flops_name);
    const std::vector<double> losses = values_in(published, results::eval_loss_name);
    if (const auto above = values_in(published, results::loss_above_floor_name); !above.empty()) {
      if (std::isnan(floor)) floor = losses[0] - above[0];
      for (store::RunSummary& run : row.runs) run.entropy_floor = floor;
    }
    if (published.contains("best_of")) {
      for (const Json& point : published.at("best_of").at("points")) {
        SweepPoint each;
        each.value = point.at("value");
        if (!point.at("figure").is_null()) each.runs.emplace_back();
        row.points.push_back(std::move(each));
      }
    }
    if (losses.size() > 1) {
      const Json& statistics = published.at("statistics").at(results::eval_loss_name);
      const double error = statistics.contains("difference")
                               ? error_of_rows(statistics.at("difference"),
                                               losses,
                                               values_in(*baseline, results::eval_loss_name),
                                               evaluated)
                               : 0;
      const double mean = statistics.at("mean");
      const bool is_baseline = row.spec.config == ablation.table.baseline;
      row.evaluation_rows = {losses_of_rows(mean, is_baseline ? 0 : error, place + 1, evaluated),
                             std::vector<int64_t>(evaluated, 1)};
    }
    ablation.rows.push_back(std::move(row));
  }
  return ablation;
}

/// Whether two numbers are the same as far as the rows of text, which are made up, let it be known:
/// in expressions what they add to two differences has nothing in common here, and Holm's procedure
/// hands that on to other numbers.
bool are_near(const Json& published, const std::optional<double>& found) {
  if (published.is_null() || !found) return published.is_null() && !found;
  const double p = published;
  constexpr double nothing = 1e-4;
  return std::fabs(p - *found) <= std::max(nothing, 0.4 * std::max(p, *found));
}

/// Writes what this version finds. Intervals of plain differences stay: they are computed as ever,
/// from losses of rows of text that are not shipped. Those of expressions are as if what the rows
/// of text add to two differences had nothing in common, so rather too wide.
void update(const Ablation& ablation, const Verdicts& verdicts, Json& published) {
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    for (auto& [metric, of_row] : published.at("rows").at(i).at("statistics").items()) {
      const Cell& cell = verdicts.cells.at(metric).at(i);
      of_row["standing"] = name_of(cell.standing);
      of_row["best"] = cell.best;
      if (!of_row.contains("difference")) continue;
      Json& p = of_row["difference"]["p_adjusted"];
      if (!are_near(p, cell.p)) p = *cell.p;
    }
  }
  for (size_t i = 0; i < verdicts.claims.size(); ++i) {
    Json& claim = published.at("claims").at(i);
    const JudgedClaim& judged = verdicts.claims[i];
    claim["verdict"] = name_of(judged.verdict);
    if (!ablation.table.claims[i].has_own_words() || !judged.p) continue;
    claim["p_adjusted"] = *judged.p;
    claim["reason"] = judged.reason;
  }
}

/// RESULTS.json of each project, and those of earlier sets of runs, RESULTS_2026-11-24.json.
std::vector<std::filesystem::path> published_files() {
  using std::filesystem::directory_iterator;
  std::vector<std::filesystem::path> files;
  for (const auto& project : directory_iterator(tests::tests_dir() / ".." / "projects")) {
    for (const auto& file : directory_iterator(project)) {
      const std::string name = file.path().filename();
      if (starts_with(name, "RESULTS") && file.path().extension() == ".json") files.push_back(file);
    }
  }
  return files;
}

void check(const Ablation& ablation, const Verdicts& verdicts, const Json& published) {
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    for (const auto& [metric, of_row] : published.at("rows").at(i).at("statistics").items()) {
      const Cell& cell = verdicts.cells.at(metric).at(i);
      INFO(ablation.rows[i].spec.config << ", " << metric << ", adjusted p "
                                        << cell.p.value_or(-1));
      CHECK(of_row.at("standing") == name_of(cell.standing));
      CHECK(of_row.at("best") == cell.best);
      if (of_row.contains("difference"))
        CHECK(are_near(of_row.at("difference").at("p_adjusted"), cell.p));
    }
  }
  if (!published.contains("claims")) return;
  REQUIRE(published.at("claims").size() == verdicts.claims.size());
  for (size_t i = 0; i < verdicts.claims.size(); ++i) {
    const Json& claim = published.at("claims").at(i);
    const JudgedClaim& judged = verdicts.claims[i];
    INFO(claim.at("claim") << ": " << claim.at("reason") << "; found " << judged.reason);
    CHECK(claim.at("verdict") == name_of(judged.verdict));
    CHECK(are_near(claim.at("p_adjusted"), judged.p));
  }
}

TEST_CASE("the verdicts that projects publish are those of this version", "[verdicts][published]") {
  for (const std::filesystem::path& file : published_files()) {
    Json all = Json::parse(read_file(file));
    const bool is_list = all.is_array();
    if (!is_list) all = Json::array({std::move(all)});
    for (Json& published : all) {
      if (published.at("setup").empty()) continue;  // without runs
      INFO(file.string() << ", table " << published.at("table"));
      const Ablation ablation = published_table(file.parent_path(), published);
      const Verdicts verdicts = verdicts_of(ablation);
      if (std::getenv("FORGE_UPDATE_GOLDEN")) update(ablation, verdicts, published);
      check(ablation, verdicts, published);
    }
    if (std::getenv("FORGE_UPDATE_GOLDEN"))
      write_file_atomic(file, json_text(is_list ? all : all.front(), 2) + "\n");
  }
  CHECK(published_files().size() >= 5);
}

}  // namespace
}  // namespace forge::tables
