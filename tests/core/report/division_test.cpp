#include "core/report/ablation.h"
#include "core/report/comparison.h"
#include "core/report/machine_formats.h"
#include "core/report/sheet.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::report {
namespace {

using namespace tests;

TableSpec table() {
  TableSpec table;
  table.name = "t";
  table.title = "T";
  table.baseline = "llama";
  table.rows = {{"llama", "Llama", "", ""}, {"canon", "Canon", "A", ""}};
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::eval_loss, "Eval Loss"},
                   {ColumnKind::overhead, "Overhead"}};
  return table;
}

store::ConfiguredRun run_of(const std::string& config, const std::string& backend, double speed) {
  store::ConfiguredRun run;
  run.summary.id = config + "-" + backend;
  run.summary.config = config;
  run.summary.backend = backend;
  run.summary.profile = "quick";
  run.summary.seed = 1;
  run.summary.created = "2026-01-01T00:00:00Z";
  run.summary.status = run::RunState::completed;
  run.summary.eval_loss = 2;
  run.summary.tokens_per_second = speed;
  run.config = {{"seed", 1}, {"optimizer", {{"lr", backend == "b" ? 0.2 : 0.1}}}};
  return run;
}

const std::vector<store::ConfiguredRun> runs = {run_of("llama", "a", 100),
                                                run_of("canon", "a", 50),
                                                run_of("llama", "b", 10),
                                                run_of("canon", "b", 9)};

TEST_CASE("runs of two backends do not mix in one table", "[report]") {
  const Ablation ablation = build_ablation(table(), runs);
  REQUIRE(ablation.rows.size() == 2);
  CHECK(ablation.rows[0].run->backend == ablation.rows[1].run->backend);
  REQUIRE(ablation.left_out.size() == 2);
  CHECK(contains(ablation.left_out[0].reason, "backend "));
}

TEST_CASE("a table that is divided by backend has a row for each, against its own baseline",
          "[report]") {
  TableSpec divided = table();
  divide_by(divided, "backend");
  const Ablation ablation = build_ablation(divided, runs);
  REQUIRE(ablation.rows.size() == 4);
  CHECK(ablation.left_out.empty());
  CHECK(ablation.rows[0].division == "a");
  CHECK(ablation.rows[1].division == "b");
  CHECK(*ablation.rows[2].throughput_change == Approx(-0.5));
  CHECK(*ablation.rows[3].throughput_change == Approx(-0.1));
  const Sheet sheet = make_sheet(ablation);
  CHECK(sheet.columns[1].title == "Backend");
  CHECK(sheet.rows[3][1].text == "b");
  CHECK(to_json(ablation).at("by") == "backend");
  CHECK(to_json(ablation).at("rows")[3].at("backend") == "b");
  CHECK(contains(to_csv(ablation), ",backend\r\n"));
}

TEST_CASE("a table can be divided by any key, and a config without runs stays one row",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"optimizer"};
  divided.rows.push_back({"none", "None", "", ""});
  divide_by(divided, "optimizer.lr");
  std::vector<store::ConfiguredRun> same = runs;
  for (store::ConfiguredRun& run : same) run.summary.backend = "a";
  const Ablation ablation = build_ablation(divided, same);
  REQUIRE(ablation.rows.size() == 5);
  CHECK(ablation.rows[0].division == "0.1");
  CHECK(ablation.rows[4].division.empty());
  CHECK_FALSE(ablation.rows[4].run);
  CHECK(contains(error_of([] {
                   TableSpec wrong = table();
                   divide_by(wrong, "optimizer.lrr");
                 }),
                 "optimizer.lr"));
}

TEST_CASE("a run that does not compare is left out once, whatever the rows are divided by",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"device"};
  divide_by(divided, "backend");
  std::vector<store::ConfiguredRun> more = runs;
  more.push_back(run_of("llama", "c", 1));
  more.back().summary.threads = 7;
  const Ablation ablation = build_ablation(divided, more);
  CHECK(ablation.rows.size() == 4);
  REQUIRE(ablation.left_out.size() == 1);
  CHECK(ablation.left_out[0].runs == 1);
}

}  // namespace
}  // namespace forge::report
