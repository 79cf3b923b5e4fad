#include <cmath>
#include <cstdlib>

#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/manage/written_files.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// Compares with a file of golden/; FORGE_UPDATE_GOLDEN=1 in the environment rewrites it instead.
void require_golden(const std::string& name, const std::string& text) {
  const auto file = tests_dir() / "core" / "report" / "golden" / name;
  if (std::getenv("FORGE_UPDATE_GOLDEN")) write_file_atomic(file, text);
  REQUIRE(text == read_file(file));
}

/// A table with every kind of row, and metrics like those of a laptop.
Ablation mixed_table(const std::optional<Published>& published = std::nullopt) {
  const MixedLab lab;
  return build_ablation(small_table(), lab.read(), {"", published});
}

Ablation full_table() {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.2512, 4312.4, int64_t{3} << 29});
  make_completed_run(lab.runs, Lab::run("canon_a", 20), {3.18, 3911, int64_t{2} << 30});
  MadeRun canon_b = Lab::run("canon_b", 20);
  canon_b.parameters = 4479232;
  make_completed_run(lab.runs, canon_b, {3.2071, 4398, int64_t{1} << 30});
  return lab.table();
}

TEST_CASE("a full table at the terminal", "[report]") {
  require_golden("full_terminal.txt", to_terminal(full_table()));
}

TEST_CASE("a table with runs that are missing and failed at the terminal", "[report]") {
  require_golden("mixed_terminal.txt", to_terminal(mixed_table()));
}

TEST_CASE("a table with published metrics at the terminal", "[report]") {
  require_golden("published_terminal.txt", to_terminal(mixed_table(small_published())));
}

TEST_CASE("a results document", "[report]") {
  Ablation second = full_table();
  second.table.name = "second";
  second.table.title = "Second table";
  require_golden("results.md", export_markdown("Results of canon", {full_table(), second}));
}

TEST_CASE("a results document of tables with setups of their own", "[report]") {
  const Ablation empty = build_ablation(small_table(), {});
  require_golden("mixed_results.md",
                 export_markdown("Results", {mixed_table(small_published()), empty}));
}

TEST_CASE("prose is wrapped where the terminal is narrow", "[report]") {
  const std::string text = to_terminal(full_table(), {false, 72});
  require_golden("narrow_terminal.txt", text);
  for (const std::string& line : split(text, '\n')) REQUIRE(display_width(line) <= 72);
}

TEST_CASE("titles go over several lines where a table is too wide", "[report]") {
  Ablation table = mixed_table(small_published());
  table.table.columns.insert(table.table.columns.begin() + 5,
                             {ColumnKind::published, "Published Tok/s", "tokens_per_second"});
  const std::string text = to_terminal(table, {false, 80});
  require_golden("wrapped_titles.txt", text);
  for (const std::string& line : split(text, '\n')) REQUIRE(display_width(line) <= 80);
}

/// A row whose metric stands out.
Sheet emphatic_sheet() {
  Sheet sheet;
  sheet.columns = {{"Model"}, {"Loss", true}};
  sheet.rows = {{{"a|b", std::nullopt}, {"3.25", 3.25, true}}};
  return sheet;
}

TEST_CASE("a cell that stands out is bold, its blanks are not", "[report]") {
  const Sheet sheet = emphatic_sheet();
  CHECK(table_lines(sheet) == "Model  Loss\na|b    3.25\n");
  CHECK(contains(table_lines(sheet, {true, 100}), "\na|b    \x1b[1m3.25\x1b[0m\n"));
  CHECK(contains(markdown_table(sheet), "\n| a\\|b | **3.25** |\n"));
}

TEST_CASE("metrics lie beside their texts in full", "[report]") {
  const Sheet sheet = make_sheet(full_table());
  CHECK(sheet.rows[0][0].text == "Llama 4M");
  CHECK_FALSE(sheet.rows[0][0].value);
  size_t metrics = 0;
  for (size_t column = 0; column < sheet.columns.size(); ++column) {
    if (!sheet.columns[column].is_number || !sheet.rows[0][column].value) continue;
    ++metrics;
    if (sheet.columns[column].title != "Eval Loss") continue;
    CHECK(sheet.rows[0][column].text == "3.2512");
    CHECK(*sheet.rows[0][column].value == 3.2512);
  }
  CHECK(metrics >= 3);
}

TEST_CASE("headers are bold only where colour is allowed", "[report]") {
  REQUIRE(contains(to_terminal(full_table(), {true, 100}), "\x1b[1mModel"));
  REQUIRE_FALSE(contains(to_terminal(full_table()), "\x1b"));
}

TEST_CASE("a table in Markdown says what its numbers hold for", "[report]") {
  REQUIRE(contains(to_markdown(full_table()), "\n\nprofile quick"));
  // With the whole setup below it needs no summary.
  const std::string exported = export_markdown("Canon", {full_table()});
  REQUIRE(contains(exported, "| Profile | quick |"));
  REQUIRE_FALSE(contains(exported, "profile quick"));
}

TEST_CASE("names of others are no links, images or tags in Markdown", "[report][hostile]") {
  Sheet sheet = emphatic_sheet();
  sheet.title = "<svg onload=alert(1)>";
  sheet.rows[0][0].text = "![i](http://x/y.png) [y](javascript:z)";
  sheet.excluded = {"# [a]: http://x"};
  const std::string text = to_markdown(sheet);
  CHECK(contains(text, "## \\<svg onload=alert(1)\\>\n"));
  CHECK(contains(text, "\n| \\!\\[i\\](http://x/y.png) \\[y\\](javascript:z) | **3.25** |\n"));
  CHECK(contains(text, "\n- \\# \\[a\\]: http://x\n"));
}

TEST_CASE("words of a worker do not break a table", "[report]") {
  Lab lab;
  make_failed_run(lab.runs, Lab::run("llama", 20), 10, "\x1b[2J| <b>out</b>\nof `memory` |");
  REQUIRE_FALSE(contains(to_terminal(lab.table()), "\x1b"));
  const std::string markdown = to_markdown(lab.table());
  REQUIRE(contains(markdown, "\\[2J\\| \\<b\\>out\\</b\\> of \\`memory\\` \\|"));
}

TEST_CASE("a cell of CSV is no formula and moves no cursor", "[hostile]") {
  for (const char* formula :
       {"=HYPERLINK(1)", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"}) {
    CAPTURE(formula);
    REQUIRE(csv_field(formula)[0] == '\'');
  }
  REQUIRE(csv_field("=a,b") == "\"'=a,b\"");
  // Where a semicolon or a tab parts cells, and before or as a character of another width.
  CHECK(csv_field("a;=1") == "\"a;'=1\"");
  CHECK(csv_field("a; \"@x\"") == "\"a; \"\"'@x\"\"\"");
  CHECK(csv_field("a\t-x") == "\"a\t'-x\"");
  CHECK(csv_field("\uFF1D1+1") == "'\uFF1D1+1");
  CHECK(csv_field("\u00A0=1") == "\u00A0'=1");
  CHECK(csv_field("a;-1.5; b") == "\"a;-1.5; b\"");
  for (const char* number : {"-1.5", "+2", "-inf", "1e-3", "-1e+06", "nan"})
    REQUIRE(csv_field(number) == number);
  REQUIRE(csv_field("a\x1b[2Jb") == "a[2Jb");
}

using tests::contains;

TEST_CASE("LaTeX shows every character as it stands", "[latex]") {
  REQUIRE(latex_escaped("a_b & 5 % of $3 #1 {x} ^2 ~y \\z") ==
          "a\\_b \\& 5~\\% of \\$3 \\#1 \\{x\\} \\textasciicircum{}2 \\textasciitilde{}y "
          "\\textbackslash{}z");
  REQUIRE(latex_escaped("<|>\"`'") == "$<$$|$$>$''\\textasciigrave{}'");
  REQUIRE(latex_escaped("1.30 ± 0.01 ≈ −2 × 3 — 4…") ==
          "1.30 $\\pm$ 0.01 $\\approx$ $-$2 $\\times$ 3 --- 4\\dots{}");
  REQUIRE(latex_escaped("Größe µ") == "Größe µ");
  REQUIRE(latex_escaped("a\nb\x1b[31m\xff") == "a b{[}31m\xef\xbf\xbd");
  REQUIRE(latex_escaped("").empty());
}

TEST_CASE("nothing at the start of a row is an argument of the row before", "[latex]") {
  REQUIRE(latex_escaped("[1] *x*") == "{[}1] {*}x{*}");
}

TEST_CASE("a table in LaTeX", "[latex]") {
  Sheet sheet;
  sheet.title = "Canon & friends";
  sheet.columns = {{"Model"}, {"Eval Loss", true}, {"Notes", false, true}};
  sheet.rows = {{{"Llama", {}}, {"1.3011 ± 0.0041", 1.3011}, {"reference", {}}},
                {{"Canon_A", {}}, {"1.2755 [1]", 1.2755, true}, {"—", {}}}};
  sheet.footnotes = {"the best of 2 of 4", "100 % measured"};
  sheet.verdicts = {"holds: 1 < 2\nor not"};
  sheet.excluded = {"train_x: other data"};
  sheet.setup = "profile full · ± of 3 seeds";
  REQUIRE(to_latex(sheet, "positions") ==
          "% claim: holds: 1 < 2 or not\n"
          "\\begin{table}\n"
          "  \\centering\n"
          "  \\caption{Canon \\& friends}\n"
          "  \\label{tab:positions}\n"
          "  \\sbox0{\\begin{tabular}{lrp{0.25\\linewidth}}\n"
          "    \\toprule\n"
          "    Model & Eval Loss & Notes \\\\\n"
          "    \\midrule\n"
          "    Llama & 1.3011 $\\pm$ 0.0041 & reference \\\\\n"
          "    Canon\\_A & \\textbf{1.2755 {[}1]} & --- \\\\\n"
          "    \\bottomrule\n"
          "  \\end{tabular}}%\n"
          "  \\ifdim\\wd0>\\linewidth\\resizebox{\\linewidth}{!}{\\usebox0}"
          "\\else\\usebox0\\fi\n"
          "  \\par\\smallskip\\parbox{\\linewidth}{\\footnotesize "
          "profile full $\\cdot$ $\\pm$ of 3 seeds\\\\\n"
          "    {[}1] the best of 2 of 4\\\\\n"
          "    {[}2] 100~\\% measured\\\\\n"
          "    Left out: train\\_x: other data}\n"
          "\\end{table}\n");
}

TEST_CASE("a table without notes ends with its rule", "[latex]") {
  Sheet sheet;
  sheet.columns = {{"Model"}};
  sheet.rows = {{{"Llama", {}}}};
  REQUIRE(contains(to_latex(sheet, "x"), "\\else\\usebox0\\fi\n\\end{table}\n"));
}

TEST_CASE("the name of a table's file runs nothing in LaTeX", "[latex][hostile]") {
  Sheet sheet;
  sheet.columns = {{"Model"}};
  REQUIRE(contains(to_latex(sheet, "a_b}\\input{x"), "\\label{tab:a_b--input-x}\n"));
}

TEST_CASE("several tables say once what they need", "[latex]") {
  const std::string text = latex_document_part({"A\n", "B\n"});
  REQUIRE(contains(text, "\\usepackage{booktabs}"));
  REQUIRE(contains(text, "\n\nA\n\nB\n"));
}

using namespace tests;

TEST_CASE("JSON gives metrics in full and null for what is not there", "[report]") {
  const MixedLab lab;
  const auto json = to_json(build_ablation(small_table(), lab.read(), {"", small_published()}));
  REQUIRE(json["table"] == "small");
  REQUIRE(json["profile"] == "quick");
  REQUIRE(json["setup"]["Seed"] == "42");
  const auto& llama = json["rows"][0];
  REQUIRE(llama["config"] == "llama");
  REQUIRE(llama["status"] == "completed");
  REQUIRE(llama["run_id"] == "llama-20");
  REQUIRE(llama["eval_loss"] == 3.25);
  REQUIRE(llama["peak_memory_bytes"] == int64_t{3} << 29);
  REQUIRE(llama["throughput_change"].is_null());
  REQUIRE(llama["published"]["eval_loss"] == 1.3011);
  const auto& failed = json["rows"][1];
  REQUIRE(failed["status"] == "failed");
  REQUIRE(failed["failure_reason"] == "worker killed by SIGKILL");
  REQUIRE(failed["progress_percent"] == 66);
  REQUIRE(failed["eval_loss"].is_null());
  const auto& missing = json["rows"][2];
  REQUIRE(missing["status"] == "missing");
  REQUIRE(missing["command"] == "forge run canon_b --set profile=quick");
  REQUIRE(missing["published"].is_null());
  REQUIRE(json["left_out"][0]["config"] == "canon_b");
  REQUIRE(json["left_out"][0]["runs"] == 1);
}

TEST_CASE("a loss that is no number is said so by machines too", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {std::nan(""), 4000, 1000});
  REQUIRE(to_json(lab.table())["rows"][0]["eval_loss"] == "nan");
}

TEST_CASE("machines are told of every test that people see", "[report]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    for (const int seed : {1, 2, 3}) {
      MadeRun made = Lab::run(config, 9 + seed);
      made.id += "-" + std::to_string(seed);
      made.experiment.seed = uint64_t(seed);
      const bool is_baseline = config[0] == 'l';
      Outcome outcome{3 + 0.01 * seed * (is_baseline ? 1 : seed) + is_baseline, 4000.0 + seed};
      outcome.peak_memory_bytes += seed * (is_baseline ? 1000 : seed);
      make_completed_run(lab.runs, made, outcome);
    }
  }
  TableSpec table = small_table();
  table.columns = {{ColumnKind::model, "Model"}};
  for (const char* metric : {"eval_loss", "train_loss", "peak_memory_bytes", "parameters"})
    table.columns.push_back({ColumnKind::metric, metric, metric});
  table.columns.push_back({ColumnKind::difference, "Time", "wall_seconds"});
  const Ablation ablation = build_ablation(table, lab.read());
  const auto statistics = to_json(ablation)["rows"][1]["statistics"];
  const Verdicts verdicts = verdicts_of(ablation);
  for (const char* metric : {"eval_loss", "train_loss", "peak_memory_bytes", "wall_seconds"}) {
    INFO(metric);
    REQUIRE(statistics.contains(metric));
    CHECK(statistics[metric]["standing"] == name_of(verdicts.cells.at(metric)[1].standing));
    CHECK(contains(to_csv(ablation), std::string(metric) + "_standing"));
  }
  CHECK(statistics["eval_loss"]["difference"].contains("p_adjusted"));
  CHECK_FALSE(statistics["peak_memory_bytes"].contains("difference"));  // memory is not tested
  CHECK_FALSE(statistics.contains("parameters"));                       // no seed changes them
}

TEST_CASE("a column's name with a comma is one name of the CSV", "[report][hostile]") {
  MixedLab lab;
  TableSpec table = small_table();
  ColumnSpec derived{ColumnKind::derived, "Larger"};
  derived.value = "max(eval_loss, train_loss)";
  derived.expression = parse_expression(derived.value, {});
  table.columns.push_back(derived);
  const std::string csv = to_csv(build_ablation(table, lab.read()));
  CHECK(contains(csv, ",\"derived[max(eval_loss, train_loss)]\","));
  TemporaryFolder folder;
  CHECK(manage::is_as_written(folder.write("table.csv", csv)));  // all lines have as many fields
}

TEST_CASE("CSV has a header and a line a row with every field in its place", "[report]") {
  MixedLab lab;
  TableSpec table = small_table();
  table.rows[0].name = "Llama, \"4M\"";
  Ablation ablation = build_ablation(table, lab.read(), {"", small_published()});
  ablation.setup = {{"Setup", "in full", "in short"}};
  const std::string csv = to_csv(ablation);
  const std::vector<std::string> lines = split(csv, '\n');
  REQUIRE(lines.size() == 5);
  REQUIRE(lines[0] ==
          "config,name,positions,notes,status,run_id,eval_loss,train_loss,tokens_per_second,"
          "peak_memory_bytes,peak_resident_bytes,wall_seconds,parameters,throughput_change,"
          "memory_change,micro_batch_size,disturbance,changed_inputs,seeds,eval_loss_sd,"
          "eval_loss_low,eval_loss_high,eval_loss_difference,eval_loss_difference_low,eval_loss_"
          "difference_high,"
          "eval_loss_p,eval_loss_standing,peak_memory_bytes_sd,peak_memory_bytes_low,"
          "peak_memory_bytes_high,peak_memory_bytes_difference,peak_memory_bytes_difference_low,"
          "peak_memory_bytes_difference_high,peak_memory_bytes_p,peak_memory_bytes_standing,"
          "tokens_per_second_sd,tokens_per_second_low,"
          "tokens_per_second_high,tokens_per_second_difference,tokens_per_second_difference_low,"
          "tokens_per_second_difference_high,tokens_per_second_p,tokens_per_second_standing,"
          "plan,table,repetitions,other_runs,filter,setup,left_out,breaks,differs_from_config,"
          "published_eval_loss,published_tokens_per_second,published_peak_memory_gib\r");
  REQUIRE(lines[1] ==
          "llama,\"Llama, "
          "\"\"4M\"\"\",,reference,completed,llama-20,3.25,3.5,4300.0,1610612736,1820327936,"
          "75.0,4434176,,,,,,1,,,,,,,,baseline,,,,,,,,baseline,,,,,,,,baseline,,,,,,in "
          "short,,,,1.3011,291000.0,1.5\r");
  REQUIRE(lines[2] ==
          "canon_a,Canon-A,A,before "
          "attention,failed,canon_a-20,,,,,,,,,,,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,in "
          "short,,,,1.2643,316000.0,1.56\r");
  REQUIRE(lines[3] ==
          "canon_b,Canon-B,B,\"on queries, keys and "
          "values\",missing,,,,,,,,,,,,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,in short,"
          "\"profile full, this table shows quick (1 run)\",,,,,\r");
  REQUIRE(lines[4].empty());
}

/// The fields of a line, of which those with commas are quoted.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted)
      fields.emplace_back();
    else if (c != '"')
      fields.back() += c;
  }
  return fields;
}

/// The fields of a line of CSV by the names of their columns.
std::map<std::string, std::string> csv_line_by_name(const std::string& csv, size_t line) {
  const std::vector<std::string> lines = split(csv, '\n');
  const std::vector<std::string> header = csv_fields(lines.at(0));
  const std::vector<std::string> fields = csv_fields(lines.at(line));
  REQUIRE(header.size() == fields.size());
  std::map<std::string, std::string> by_name;
  for (size_t i = 0; i < header.size(); ++i) by_name[header[i]] = fields[i];
  return by_name;
}

TEST_CASE("machines get every column of a table under a name", "[report]") {
  Lab lab;
  for (const auto& [config, loss] : {std::pair("llama", 3.2), {"canon_a", 3.0}}) {
    for (const int seed : {1, 2, 3}) {
      MadeRun made = Lab::run(config, seed);
      made.experiment.seed = static_cast<uint64_t>(seed);
      tests::Outcome outcome{loss + 0.01 * seed, 4000.0 + 10 * seed, 1000, {}};
      outcome.validation_loss = loss + 0.02 * seed;
      make_completed_run(lab.runs, made, outcome);
    }
  }
  TableSpec table = small_table();
  table.rows[1].notes = "with Canon";
  table.rows[2].notes = "";
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::metric, "Validation", results::validation_loss_name},
                   {ColumnKind::metric, "Equal time", results::loss_at_equal_time_name},
                   {ColumnKind::difference, "vs Llama", results::loss_at_equal_flops_name}};
  ColumnSpec derived{ColumnKind::derived, "How much less"};
  derived.value = "100*(1 -\n  eval_loss/baseline.eval_loss)";
  derived.unit = "%";
  derived.expression = parse_expression(derived.value, {});
  table.columns.push_back(derived);
  Ablation ablation = build_ablation(table, lab.read());
  ablation.rows[1].loss_at_equal_time = {3.3, 3.4, 3.5};
  ablation.rows[1].loss_at_equal_flops = {3.5, 3.6, 3.7};
  ablation.setup.push_back({"Other runs", "\u2026", "4 earlier sets of runs counted"});
  ablation.setup.push_back({"Repetitions", "\u2026", "3 of 6 runs repeat older ones"});
  const std::string key = "100*(1 - eval_loss/baseline.eval_loss)";

  const auto fields = csv_line_by_name(to_csv(ablation), 2);
  CHECK(fields.at("notes") == "with Canon");
  CHECK(fields.at("other_runs") == "4 earlier sets of runs counted");
  CHECK(fields.at("repetitions") == "3 of 6 runs repeat older ones");
  ablation.setup.push_back({"Something new", "\u2026", "what nobody has thought of"});
  CHECK(csv_line_by_name(to_csv(ablation), 1).at("setup") == make_sheet(ablation).setup);
  CHECK(contains(make_sheet(ablation).setup, " \u00b7 what nobody has thought of"));
  CHECK(std::stod(fields.at("validation_loss")) == Approx(3.04));
  CHECK_FALSE(fields.at("validation_loss_low").empty());
  CHECK(std::stod(fields.at("eval_loss_at_equal_time")) == Approx(3.4));
  CHECK(std::stod(fields.at("eval_loss_at_equal_flops")) == Approx(3.6));
  CHECK(std::stod(fields.at("derived[" + key + "]")) ==
        Approx(100 * (1 - 3.02 / 3.22)).margin(1e-3));
  CHECK(std::stod(fields.at("derived_low[" + key + "]")) <
        std::stod(fields.at("derived_high[" + key + "]")));
  const auto missing = csv_line_by_name(to_csv(ablation), 3);
  CHECK(missing.at("derived[" + key + "]").empty());
  CHECK(missing.at("eval_loss_at_equal_time").empty());

  const nlohmann::json rows = to_json(ablation)["rows"];
  const nlohmann::json& row = rows[1];
  CHECK(row.at("notes") == "with Canon");
  CHECK(row.at("validation_loss").get<double>() == Approx(3.04));
  CHECK(row.at("eval_loss_at_equal_time").get<double>() == Approx(3.4));
  CHECK(row.at("eval_loss_at_equal_flops").get<double>() == Approx(3.6));
  CHECK(row.at("derived").at(key).at("title") == "How much less");
  CHECK(row.at("derived").at(key).at("unit") == "%");
  CHECK(row.at("derived").at(key).at("value").get<double>() ==
        Approx(std::stod(fields.at("derived[" + key + "]"))));
  CHECK(row.at("derived").at(key).at("low").is_number());
  CHECK(rows[2].at("derived").at(key).at("value").is_null());
}

}  // namespace
}  // namespace forge::tables
