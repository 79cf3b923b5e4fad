#include "tests/support/page_maker.h"

#include <cmath>
#include <random>

#include "core/base/text.h"
#include "core/results/metrics.h"

namespace forge::tests {
namespace {

using namespace page;
using tables::SheetCell;

constexpr size_t seeds = 3;
constexpr int64_t tokens_a_point = 16384;

Run make_run(size_t number, size_t points, const std::string& name) {
  const size_t config = number / seeds;
  Run run;
  store::RunSummary& summary = run.summary;
  summary.id = name + "_" + std::to_string(config) + "-" + std::to_string(number);
  summary.config = name + "_" + std::to_string(config);
  summary.name = "Model " + std::to_string(config);
  summary.project = "projects/" + name;
  summary.profile = "quick";
  summary.backend = "libtorch";
  summary.device_name = "Test CPU";
  summary.threads = 2;
  summary.seed = static_cast<int64_t>(number % seeds) + 1;
  summary.status = run::RunState::completed;
  summary.created = "2026-11-20T10:00:00.000Z";
  summary.command = "forge run " + summary.config;
  summary.key = "a1b2c3d4e5f6";
  summary.max_steps = summary.step = static_cast<int64_t>(points);
  summary.tokens = tokens_a_point * summary.step;
  summary.parameters = 4000000 + 1000 * static_cast<int64_t>(config);
  run.training = falling_curve(points, static_cast<unsigned>(number));
  run.total_points = points;
  for (size_t i = points / 10; i > 0 && i <= points; i += points / 10)
    run.evaluations.push_back(run.training[i - 1]);
  if (!run.evaluations.empty()) summary.metrics["eval_loss"] = run.evaluations.back().loss;
  if (!run.training.empty()) summary.metrics["train_loss"] = run.training.back().loss;
  summary.metrics["tokens_per_second"] = 4000 - 50 * static_cast<double>(config);
  summary.metrics["peak_memory_bytes"] = 130683699 + 5e6 * static_cast<double>(config);
  run.config = {
      {"model",
       {{"hidden_size", 256}, {"canon", {{"set", std::string(1, char('A' + config % 8))}}}}},
      {"train", {{"max_steps", points}, {"precision", "float32"}}},
      {"seed", summary.seed}};
  return run;
}

/// The runs of one config, one a seed, as a row shows them.
std::vector<SheetCell> make_row(const std::vector<Run>& runs,
                                size_t first,
                                const std::string& name) {
  const store::RunSummary& run = runs[first].summary;
  const double loss = run.metric("eval_loss").value_or(0);
  return {
      {name + " " + run.name, std::nullopt},
      {results::loss_text(loss), loss, first == 0},
      {results::throughput_text(*run.metric("tokens_per_second")), run.metric("tokens_per_second")},
      {human_bytes(*run.metric("peak_memory_bytes")), run.metric("peak_memory_bytes")},
      {first == 0 ? "reference" : "", std::nullopt}};
}

}  // namespace

Curve falling_curve(size_t points, unsigned seed) {
  std::mt19937 random(seed);
  Curve curve;
  for (size_t i = 1; i <= points; ++i) {
    const double noise = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
    const double done = static_cast<double>(i);
    curve.push_back({static_cast<int64_t>(i),
                     tokens_a_point * static_cast<int64_t>(i),
                     1.5 + 0.2 * (seed / seeds) + 7.5 / (1 + 0.05 * done) + 0.1 * noise,
                     0.0731 * done + 0.01 * noise});
  }
  return curve;
}

Page make_page(size_t runs, size_t points, const std::string& name) {
  Page page;
  page.title = name + " layers";
  page.project = "projects/" + name;
  for (size_t i = 0; i < runs; ++i) page.runs.push_back(make_run(i, points, name));
  Table table;
  table.name = "positions";
  table.sheet.title = name + " positions";
  table.sheet.columns = {
      {"Model"}, {"Eval Loss", true}, {"Tok/s", true}, {"Memory", true}, {"Notes", false, true}};
  table.columns = {{},
                   {results::Direction::lower_is_better},
                   {results::Direction::higher_is_better, true},
                   {results::Direction::lower_is_better, true, results::Unit::bytes},
                   {}};
  for (ColumnInfo& meaning : table.columns) meaning.intervals.resize((runs + seeds - 1) / seeds);
  if (runs > 0) table.columns[1].intervals[0] = statistics::Interval{1.5, 2.5};
  table.columns[2].doubts.resize(table.columns[2].intervals.size());
  if (runs > 3 * seeds) table.columns[2].doubts.back() = "timing unreliable: the machine was busy";
  for (size_t i = 0; i < runs; i += seeds) {
    table.sheet.rows.push_back(make_row(page.runs, i, name));
    RowSource& origin = table.row_sources.emplace_back();
    origin.name = name + " " + page.runs[i].summary.name;
    for (size_t j = i; j < std::min(i + seeds, runs); ++j)
      origin.runs.push_back(page.runs[j].summary.id);
  }
  table.sheet.footnotes = {name + " was measured in another call"};
  table.sheet.verdicts = {"not decidable: " + name + " is better (no run)"};
  table.sheet.excluded = {name + ": seed 1, this table shows 2"};
  table.sheet.commands = {"forge run " + name};
  table.setup = {{"Profile", "quick", "profile quick"}};
  page.tables.push_back(std::move(table));
  page.varied = {"model.canon.set"};
  page.commands = {"forge run --all", "forge report"};
  return page;
}

}  // namespace forge::tests
