#include "core/results/tables/pivot.h"

#include "core/base/display_text.h"
#include "core/base/text.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// Runs of two rates and two Canon sets, with three seeds where the rate is 0.001.
struct PivotLab : Lab {
  PivotLab() {
    int day = 1;
    for (const char* set : {"A", "AC"}) {
      for (const int seed : {1, 2, 3}) add(set, 1e-3, seed, 3 + 0.1 * seed, day++);
      add(set, 2e-3, 1, 2.5, day++);
    }
  }
  void add(const std::string& set, double lr, int seed, double loss, int day) {
    MadeRun made = run("canon", day);
    made.experiment.model.canon.set = set;
    made.experiment.optimizer.lr = lr;
    made.experiment.seed = static_cast<uint64_t>(seed);
    make_completed_run(runs, made, {loss, 4000, 1000, {}});
  }
};

TEST_CASE("a pivot has a cell for every pair of values with what its seeds say",
          "[report][pivot]") {
  const PivotLab lab;
  const Pivot pivot = build_pivot(lab.read(), {"model.canon.set", "optimizer.lr", "eval_loss"});
  REQUIRE(pivot.row_values == std::vector<std::string>{"A", "AC"});
  REQUIRE(pivot.column_values == std::vector<std::string>{"0.001", "0.002"});
  const PivotCell& cell = pivot.cells[0][0];
  REQUIRE(cell.runs.size() == 3);
  CHECK(cell.summary.mean == Approx(3.2));
  CHECK(cell.summary.interval);
  CHECK(pivot.cells[1][1].summary.n == 1);
  CHECK(pivot.excluded.empty());
  CHECK(pivot.differ_between_cells.empty());
  const std::string text = table_lines(make_sheet(pivot), {false, 200});
  CHECK(contains(text, "A                3.2000 \u00b1 0.2484 (3)  2.5000\n"));
  CHECK(to_json(pivot)["cells"].size() == 4);
}

TEST_CASE("a cell of a pivot holds runs that differ in nothing but the seed", "[report][pivot]") {
  PivotLab lab;
  const PivotOptions by_set{"model.canon.set", "", "eval_loss"};
  const Pivot pivot = build_pivot(lab.read(), by_set);
  CHECK(pivot.cells[0][0].runs.size() == 3);
  CHECK(pivot.cells[0][0].summary.mean == Approx(3.2));
  REQUIRE(pivot.excluded.size() == 1);  // one config and reason
  CHECK(pivot.excluded[0].reason == "optimizer.lr 0.002, the run shown has 0.001");
  CHECK(pivot.excluded[0].runs.size() == 2);
  CHECK(contains(to_terminal(make_sheet(pivot)), "Left out\n  canon: optimizer.lr 0.002, "));
  CHECK(to_json(pivot)["left_out"][0]["runs"] == 2);
  const auto of_one_rate = store::select(lab.read(), {"optimizer.lr=0.001"});
  CHECK(build_pivot(of_one_rate, by_set).excluded.empty());
  lab.add("A", 1e-3, 3, 9, 25);  // made again: the first result counts
  const Pivot again = build_pivot(lab.read(), by_set);
  CHECK(again.cells[0][0].runs.size() == 3);
  CHECK(again.cells[0][0].summary.mean == Approx(3.2));
}

TEST_CASE("a pivot names its filter and counts what that leaves out", "[report][pivot]") {
  const PivotLab lab;
  const std::vector<store::ConfiguredRun> all = lab.read();
  std::vector<store::ConfiguredRun> shown, others;
  for (const store::ConfiguredRun& run : all)
    (*run.summary.metric("eval_loss") < 3.25 ? shown : others).push_back(run);
  const PivotOptions options{"model.canon.set", "optimizer.lr", "eval_loss", {"eval_loss<3.25"}};
  const Pivot pivot = build_pivot(shown, options, others);
  CHECK(pivot.cells[0][0].runs.size() == 2);
  CHECK(pivot.cells[0][0].left_out == 1);
  REQUIRE(pivot.excluded.size() == 1);
  CHECK(pivot.excluded[0].reason == "does not meet eval_loss<3.25");
  CHECK(pivot.excluded[0].runs.size() == 2);
  CHECK(contains(to_terminal(make_sheet(pivot)), "only runs with eval_loss<3.25\n"));
  CHECK(contains(to_markdown(make_sheet(pivot)), "only runs with eval"));
  CHECK(to_json(pivot)["filter"] == "eval_loss<3.25");
  const std::vector<std::string> lines = split(to_csv(pivot), '\n');
  CHECK(contains(lines[0], ",runs,left_out,filter\r"));
  CHECK(contains(lines[1], ",2,1,eval_loss<3.25\r"));
  CHECK(contains(lines[2], ",1,0,eval_loss<3.25\r"));
}

TEST_CASE("a pivot says which seeds of a cell were stopped", "[report][pivot]") {
  PivotLab lab;
  MadeRun stopped = Lab::run("canon", 26);
  stopped.experiment.model.canon.set = "A";
  stopped.experiment.optimizer.lr = 1e-3;
  stopped.experiment.seed = 4;
  make_stopped_run(lab.runs, stopped, 10);
  stopped.experiment.seed = 3;  // which completed in another run
  stopped.id += "-3";
  make_stopped_run(lab.runs, stopped, 10);
  const Pivot pivot = build_pivot(lab.read(), {"model.canon.set", "optimizer.lr", "eval_loss"});
  REQUIRE(pivot.excluded.size() == 1);
  CHECK(starts_with(pivot.excluded[0].reason, "stopped at "));
  CHECK(pivot.excluded[0].runs == std::vector<std::string>{"canon-26"});
  CHECK(pivot.cells[0][0].left_out == 1);
}

TEST_CASE("timings of a busy machine are marked in a pivot as in a table", "[report][pivot]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  for (const auto& [config, busy] : {std::pair("canon_a", 0.21), std::pair("canon_b", 0.66)}) {
    Outcome outcome;
    outcome.busy_elsewhere = busy;
    make_completed_run(lab.runs, Lab::run(config, 20), outcome);
  }
  const std::string note =
      "canon_a, canon_b: other processes kept 66.0 % of the machine busy at the most: timing "
      "unreliable; measure with 'forge bench' on an idle machine";
  for (const char* metric : {"tokens_per_second", "wall_seconds"}) {
    const Pivot pivot = build_pivot(lab.read(), {"config", "", metric});
    const Sheet sheet = make_sheet(pivot);
    INFO(to_terminal(sheet, {false, 300}));
    CHECK(contains(to_terminal(sheet, {false, 300}), "[1] " + note));
    CHECK(contains(sheet.rows[0][1].text, " [1]"));
    CHECK_FALSE(contains(sheet.rows[2][1].text, " [1]"));  // llama's
    CHECK(remarks(pivot) == std::vector<std::string>{note});
    CHECK(to_json(pivot)["cells"][0]["disturbance"] ==
          "other processes kept 21.0 % of the machine busy");
    CHECK_FALSE(to_json(pivot)["cells"][2].contains("disturbance"));
  }
  CHECK(make_sheet(build_pivot(lab.read(), {"config", "", "eval_loss"})).footnotes.empty());
}

TEST_CASE("runs from other initial weights are no sample", "[report][pivot]") {
  Lab lab;
  int day = 1;
  for (const char* hash : {"aa", "bb"}) {
    for (const int seed : {1, 2}) {
      MadeRun made = Lab::run("llama", day++);
      made.experiment.train.initial_weights = "/models/llama";
      made.experiment.seed = static_cast<uint64_t>(seed);
      made.initial_weights = hash;
      make_completed_run(lab.runs, made);
    }
  }
  const Pivot pivot = build_pivot(lab.read(), {"config", "", "eval_loss"});
  CHECK(pivot.cells[0][0].runs.size() == 2);
  REQUIRE(pivot.excluded.size() == 1);
  CHECK(pivot.excluded[0].reason == "other initial_weights");
  CHECK(lab.table().rows[0].runs.size() == 2);
  CHECK(lab.read()[0].summary.initial_weights_hash == "bb");
}

TEST_CASE("timings of two devices are no sample", "[report][pivot]") {
  Lab lab;
  for (const int seed : {1, 2}) {
    MadeRun made = Lab::run("llama", seed);
    made.experiment.seed = static_cast<uint64_t>(seed);
    made.device_name = "CPU " + std::to_string(seed);
    make_completed_run(lab.runs, made);
  }
  const auto runs_of = [&](const char* metric) {
    return build_pivot(lab.read(), {"config", "", metric}).cells[0][0].runs.size();
  };
  CHECK(runs_of("eval_loss") == 2);
  CHECK(runs_of("tokens_per_second") == 1);
}

TEST_CASE("timings by other numbers of processes are no sample", "[report][pivot]") {
  Lab lab;
  for (const int seed : {1, 2}) {
    MadeRun made = Lab::run("llama", seed);
    made.experiment.seed = static_cast<uint64_t>(seed);
    const run::RunFolder run = make_completed_run(lab.runs, made);
    if (seed == 2) divide_among_two(run);
  }
  const auto pivot_of = [&](const char* metric) {
    return build_pivot(lab.read(), {"config", "", metric});
  };
  CHECK(pivot_of("eval_loss").cells[0][0].runs.size() == 2);
  const Pivot speeds = pivot_of("tokens_per_second");
  CHECK(speeds.cells[0][0].runs.size() == 1);
  REQUIRE(speeds.excluded.size() == 1);
  CHECK(speeds.excluded[0].reason == "parallel.processes 1, the run shown has 2");
  const Pivot rows = build_pivot(lab.read(), {"id", "", "tokens_per_second"});
  CHECK(rows.differ_between_cells == std::vector<std::string>{"parallel.processes"});
}

TEST_CASE("memory and speed of other ways to compute a step are no sample", "[report][pivot]") {
  Lab lab;
  for (const int seed : {1, 2}) {
    MadeRun made = Lab::run("llama", seed);
    made.experiment.seed = static_cast<uint64_t>(seed);
    make_completed_run(lab.runs, made);
  }
  std::vector<store::ConfiguredRun> runs = lab.read();
  const auto reason_for = [&](const char* metric) {
    const Pivot pivot = build_pivot(runs, {"config", "", metric});
    return pivot.excluded.empty() ? "" : pivot.excluded[0].reason;
  };
  runs[0].summary.micro_batch_size = 4;
  CHECK(reason_for("eval_loss") == "");
  CHECK(reason_for("peak_memory_bytes") == "train.micro_batch_size null, the run shown has 4");
  runs[0].summary.micro_batch_size.reset();
  runs[0].summary.recompute = "layers";
  CHECK(reason_for("tokens_per_second") ==
        "train.recompute \"none\", the run shown has \"layers\"");
  // The numbers of attempts that differ are those of neither.
  runs[0].summary.recompute = "none and layers";
  CHECK(reason_for("eval_loss") == "");
  CHECK(reason_for("wall_seconds") ==
        "its attempts ran on Test CPU with train.recompute none and layers");
  CHECK(build_pivot(runs, {"config", "", "wall_seconds"}).cells[0][0].runs.size() == 1);
}

TEST_CASE("training losses of other log intervals are no sample", "[report][pivot]") {
  Lab lab;
  for (const int seed : {1, 2, 3}) {
    MadeRun made = Lab::run("llama", seed);
    made.experiment.seed = static_cast<uint64_t>(seed);
    made.experiment.train.log_every = seed == 3 ? 3 : 10;
    make_completed_run(lab.runs, made);
  }
  const auto pivot_of = [&](const char* rows, const char* metric) {
    return build_pivot(lab.read(), {rows, "", metric});
  };
  CHECK(pivot_of("config", "eval_loss").cells[0][0].runs.size() == 3);
  const Pivot losses = pivot_of("config", "train_loss");
  CHECK(losses.cells[0][0].runs.size() == 2);
  REQUIRE(losses.excluded.size() == 1);
  CHECK(losses.excluded[0].reason == "train.log_every 3, the run shown has 10");
  CHECK(pivot_of("id", "train_loss").differ_between_cells ==
        std::vector<std::string>{"train.log_every"});
  CHECK(pivot_of("train.log_every", "train_loss").differ_between_cells.empty());
}

TEST_CASE("a pivot says what else its cells differ in", "[report][pivot]") {
  const PivotLab lab;
  const auto a_or_ac = store::select(lab.read(), {"seed=1"});
  const Pivot pivot = build_pivot(a_or_ac, {"id", "", "eval_loss"});
  CHECK(pivot.differ_between_cells == std::vector<std::string>{"model.canon.set", "optimizer.lr"});
  CHECK(contains(to_terminal(make_sheet(pivot)), "more than the table shows: model.canon.set"));
}

TEST_CASE("nothing and an empty text have labels of their own", "[report][pivot]") {
  PivotLab lab;
  lab.add("", 1e-3, 1, 3.5, 20);
  const Pivot pivot = build_pivot(lab.read(), {"model.canon.set", "validation_loss", "eval_loss"});
  CHECK(pivot.row_values == std::vector<std::string>{"\"\"", "A", "AC"});
  CHECK(pivot.column_values == std::vector<std::string>{"\u2014"});
}

TEST_CASE("a pivot refuses keys and metrics that there are not", "[report][pivot]") {
  const PivotLab lab;
  const auto error = [&](const PivotOptions& options) {
    return error_of([&] { build_pivot(lab.read(), options); });
  };
  CHECK(contains(error({"model.canon.sett", "", "eval_loss"}), "did you mean 'model.canon.set'"));
  CHECK(contains(error({"config", "sed", "eval_loss"}), "did you mean 'seed'"));
  CHECK(contains(error({"config", "", "eval_los"}), "did you mean 'eval_loss'"));
}

TEST_CASE("conditions may be on columns and on keys of the config", "[report][pivot]") {
  const PivotLab lab;
  CHECK(store::select(lab.read(), {"model.canon.set=AC"}).size() == 4);
  CHECK(store::select(lab.read(), {"model.canon.set!=AC", "optimizer.lr>0.001"}).size() == 1);
  CHECK(store::select(lab.read(), {"seed<3", "model.canon.set=A"}).size() == 3);
  CHECK(store::select(lab.read(), {"train.deterministic=nonsense"}).empty());
  CHECK(contains(error_of([&] { store::select(lab.read(), {"model.canon.sett=A"}); }),
                 "did you mean 'model.canon.set'"));
}

TEST_CASE("a Pareto front says which rows it lacks and why", "[report][pareto]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000, {}});
  make_failed_run(lab.runs, Lab::run("canon_a", 10), 10, "out of memory");
  const ParetoFront front = pareto(lab.table(), "eval_loss", "tokens_per_second");
  CHECK(front.points.size() == 1);
  CHECK(front.missing == std::vector<std::string>{"Canon-A (failed)", "Canon-B (missing)"});
  CHECK(pareto(lab.table(), "validation_loss", "tokens_per_second").missing.at(0) ==
        "Llama 4M (no validation_loss)");
}

TEST_CASE("a row is dominated where another is better in one and no worse in the other",
          "[report][pareto]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000, {}});
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.0, 3000, 1000, {}});
  make_completed_run(lab.runs, Lab::run("canon_b", 10), {3.6, 3000, 1000, {}});
  const ParetoFront front = pareto(lab.table(), "eval_loss", "tokens_per_second");
  CHECK(front.missing.empty());
  const std::vector<ParetoPoint>& points = front.points;
  REQUIRE(points.size() == 3);
  CHECK(points[0].config == "canon_a");
  CHECK(points[0].dominated_by.empty());
  CHECK(points[1].dominated_by.empty());
  CHECK(points[2].dominated_by == std::vector<std::string>{"Llama 4M", "Canon-A"});
  tests::Outcome busy{3.6, 3000, 1000, {}};
  busy.busy_elsewhere = 0.21;
  make_completed_run(lab.runs, Lab::run("canon_b", 11), busy);
  const ParetoFront while_busy = pareto(lab.table(), "eval_loss", "tokens_per_second");
  CHECK(while_busy.points.size() == 2);
  CHECK(while_busy.missing == std::vector<std::string>{"Canon-B (the machine did other work)"});
  CHECK(pareto(lab.table(), "eval_loss", "peak_memory_bytes").points.size() == 3);
  const TableSpec table = small_table();
  CHECK(metric_by_word(table, "quality") == "eval_loss");
  CHECK(metric_by_word(table, "speed") == "tokens_per_second");
  CHECK(metric_by_word(table, "memory") == "peak_memory_bytes");
  CHECK(contains(error_of([&] { metric_by_word(table, "qualty"); }), "did you mean 'quality'"));
  CHECK(contains(error_of([&] { metric_by_word(table, "train_loss"); }),
                 "the table 'small' compares no training losses: its runs may differ in "
                 "train.log_every"));
  TableSpec of_losses = table;
  of_losses.columns.push_back({ColumnKind::metric, "Train loss", "train_loss"});
  CHECK(metric_by_word(of_losses, "train_loss") == "train_loss");
}

TEST_CASE("a plot draws each curve with its letter within its axes", "[report][plot]") {
  const std::vector<Curve> curves = {{"falling", {{0, 9}, {50, 2}, {100, 1}}},
                                     {"flat", {{0, 3}, {50, 3}, {100, 3}}}};
  const std::string text = plot(curves, {40, 5, false, "tokens"});
  INFO(text);
  CHECK(contains(text, "  3.0000 \u2502"));
  CHECK(contains(text, "  1.0000 \u2502"));
  CHECK(contains(text, "100 tokens\n"));
  CHECK(contains(text, "  A  falling\n  B  flat\n"));
  CHECK(contains(text, "B"));
  CHECK_FALSE(contains(text, "9.0"));  // the fall of the beginning is not what the axis is for
  CHECK(plot({}) == "nothing to plot yet\n");
  CHECK(plot({{"x", {{1, std::nan("")}}}}) == "nothing to plot yet\n");
  CHECK(contains(plot({{"one", {{5, 2}}}}), "A"));
}

TEST_CASE("curves that lie on each other are all seen in a plot", "[report][plot]") {
  std::vector<Curve> curves;
  for (const char* name : {"a", "b", "c", "d"}) curves.push_back({name, {{0, 2}, {100, 1}}});
  const std::string text = plot(curves, {80, 8, true, "tokens"});
  const std::string drawing = text.substr(0, text.find("\u2514"));
  for (const char* letter : {"A", "B", "C", "D"}) CHECK(contains(drawing, letter));
  CHECK(contains(drawing, "\x1b[38;5;33mA\x1b[0m"));
  for (const std::string& line : split(drawing, '\n')) CHECK(display_width(line) <= 80);
}

TEST_CASE("a pivot as CSV has a line for each cell with its interval", "[report][pivot]") {
  const PivotLab lab;
  const std::string csv =
      to_csv(build_pivot(lab.read(), {"model.canon.set", "optimizer.lr", "eval_loss"}));
  CHECK(
      contains(csv,
               "model.canon.set,optimizer.lr,eval_loss,eval_loss_low,eval_loss_high,runs,left_out,"
               "filter\r\nA,0.001,3.1"));
  CHECK(contains(csv, "\r\nAC,0.002,2.4"));
  CHECK(contains(csv, ",,,1,0,\r\n"));
  const Pivot by_set = build_pivot(lab.read(), {"model.canon.set", "", "eval_loss"});
  const std::vector<std::string> line = split(split(to_csv(by_set), '\n').at(1), ',');
  REQUIRE(line.size() == 7);
  CHECK(std::stod(line[2]) == Approx(2.9516).margin(1e-4));
  CHECK(std::stod(line[3]) == Approx(3.4484).margin(1e-4));
  CHECK(line[4] == "3");
  CHECK(line[5] == "1");
  CHECK(line[6] == "\r");
}

TEST_CASE("a pivot's remarks name what is left out and what differs", "[report][pivot]") {
  const PivotLab lab;
  const std::vector<std::string> left_out =
      remarks(build_pivot(lab.read(), {"model.canon.set", "", "eval_loss"}));
  REQUIRE(left_out.size() == 1);
  CHECK(contains(left_out[0], "Left out: canon: optimizer.lr 0.002, the run shown has 0.001 (2 "));
  const auto of_one_seed = store::select(lab.read(), {"seed=1"});
  const std::vector<std::string> differ =
      remarks(build_pivot(of_one_seed, {"id", "", "eval_loss"}));
  REQUIRE(differ.size() == 1);
  CHECK(contains(differ[0], "more than the table shows: model.canon.set, optimizer.lr"));
}

/// Three seeds with the same accuracy over two hundred cases.
struct ScoreLab : Lab {
  ScoreLab() {
    for (const int seed : {1, 2, 3}) {
      MadeRun made = run("llama", seed);
      made.experiment.seed = static_cast<uint64_t>(seed);
      tests::Outcome outcome{3 + 0.1 * seed, 4000.0 + seed, 1000, {}};
      outcome.scores["answer_accuracy"] = {0.99, 200};
      make_completed_run(runs, made, outcome);
    }
  }
};

TEST_CASE("a pivot's interval is that of a table's row", "[report][pivot]") {
  const ScoreLab lab;
  TableSpec table = small_table();
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::metric, "Answers", "answer_accuracy"},
                   {ColumnKind::metric, "Tok/s", "tokens_per_second"},
                   {ColumnKind::metric, "Memory", "peak_memory_bytes"}};
  const Ablation declared = build_ablation(table, lab.read());
  const Sheet sheet = make_sheet(declared);
  size_t column = 0;
  for (const char* metric : {"answer_accuracy", "tokens_per_second", "peak_memory_bytes"}) {
    CAPTURE(metric);
    const Pivot pivot = build_pivot(lab.read(), {"config", "", metric});
    const statistics::Summary summary = compared_cells(declared, metric)[0].summary;
    REQUIRE(pivot.cells[0][0].summary.interval);
    CHECK(pivot.cells[0][0].summary.interval->low == summary.interval->low);
    CHECK(pivot.cells[0][0].summary.interval->high == summary.interval->high);
    CHECK(make_sheet(pivot).rows[0][1].text == sheet.rows[0][++column].text + " (3)");
  }
  const Pivot pivot = build_pivot(lab.read(), {"config", "", "answer_accuracy"});
  CHECK(contains(make_sheet(pivot).rows[0][1].text, "99.0 % \u00b1 1.7 %"));
  CHECK(to_json(pivot)["cells"][0]["count"] == 200);
  CHECK(contains(to_csv(pivot), "answer_accuracy,answer_accuracy_count,answer_accuracy_low,"));
}

}  // namespace
}  // namespace forge::tables
