#include <cstdlib>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/report/display_text.h"
#include "core/report/markdown.h"
#include "core/report/terminal.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
namespace {

using namespace tests;

/// Compares with a file of golden/; FORGE_UPDATE_GOLDEN=1 in the environment rewrites it instead.
void require_golden(const std::string& name, const std::string& text) {
  const auto file = tests_dir() / "core" / "report" / "golden" / name;
  if (std::getenv("FORGE_UPDATE_GOLDEN")) write_file_atomic(file, text);
  REQUIRE(text == read_file(file));
}

/// A table with every kind of row, and figures like those of a laptop.
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

TEST_CASE("a table with published figures at the terminal", "[report]") {
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
                             {ColumnKind::published_tokens_per_second, "Published Tok/s"});
  const std::string text = to_terminal(table, {false, 80});
  require_golden("wrapped_titles.txt", text);
  for (const std::string& line : split(text, '\n')) REQUIRE(display_width(line) <= 80);
}

/// A row whose figure stands out.
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

TEST_CASE("figures lie beside their texts in full", "[report]") {
  const Sheet sheet = make_sheet(full_table());
  CHECK(sheet.rows[0][0].text == "Llama 4M");
  CHECK_FALSE(sheet.rows[0][0].value);
  size_t figures = 0;
  for (size_t column = 0; column < sheet.columns.size(); ++column) {
    if (!sheet.columns[column].is_number || !sheet.rows[0][column].value) continue;
    ++figures;
    if (sheet.columns[column].title != "Eval Loss") continue;
    CHECK(sheet.rows[0][column].text == "3.2512");
    CHECK(*sheet.rows[0][column].value == 3.2512);
  }
  CHECK(figures >= 3);
}

TEST_CASE("headers are bold only where colour is allowed", "[report]") {
  REQUIRE(contains(to_terminal(full_table(), {true, 100}), "\x1b[1mModel"));
  REQUIRE_FALSE(contains(to_terminal(full_table()), "\x1b"));
}

TEST_CASE("words of a worker do not break a table", "[report]") {
  Lab lab;
  make_failed_run(lab.runs, Lab::run("llama", 20), 10, "\x1b[2J| <b>out</b>\nof `memory` |");
  REQUIRE_FALSE(contains(to_terminal(lab.table()), "\x1b"));
  const std::string markdown = to_markdown(lab.table());
  REQUIRE(contains(markdown, "[2J\\| \\<b\\>out\\</b\\> of \\`memory\\` \\|"));
}

}  // namespace
}  // namespace forge::report
