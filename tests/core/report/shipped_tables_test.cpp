#include <nlohmann/json.hpp>

#include "core/report/published.h"
#include "core/report/table_spec.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::report {
namespace {

const std::vector<std::string> canon_configs = {"train_baseline",
                                                "train_canon_a",
                                                "train_canon_a_nope",
                                                "train_canon_ab",
                                                "train_canon_ac",
                                                "train_canon_b",
                                                "train_canon_bd",
                                                "train_llama",
                                                "train_llama_nope",
                                                "train_nope"};

std::string tables_dir() {
  return (tests::tests_dir() / ".." / "projects" / "canon" / "tables").string();
}

std::vector<std::string> titles_of(const TableSpec& table) {
  std::vector<std::string> titles;
  for (const ColumnSpec& column : table.columns) {
    if (!is_published(column.kind)) titles.push_back(column.title);
  }
  return titles;
}

TEST_CASE("the table of canon positions has its rows and columns", "[report]") {
  const TableSpec table = read_table(tables_dir() + "/positions.yaml", canon_configs);
  REQUIRE(
      titles_of(table) ==
      std::vector<std::string>{
          "Model", "Positions", "Eval Loss", "vs Llama", "Tok/s", "Memory", "Overhead vs Llama"});
  std::vector<std::string> names;
  for (const RowSpec& row : table.rows) names.push_back(row.name);
  REQUIRE(names == std::vector<std::string>{"Llama 4M",
                                            "Canon-A",
                                            "Canon-A NoPE",
                                            "Canon-AB",
                                            "Canon-AC",
                                            "Canon-B",
                                            "Canon-BD",
                                            "Canon-ABCD"});
  REQUIRE(table.baseline == "train_llama");
}

TEST_CASE("the table of position encodings has its rows and columns", "[report]") {
  const TableSpec table = read_table(tables_dir() + "/positional.yaml", canon_configs);
  REQUIRE(titles_of(table) ==
          std::vector<std::string>{"Model", "Eval Loss", "vs Llama", "Tok/s", "Memory", "Notes"});
  std::vector<std::string> names;
  for (const RowSpec& row : table.rows) names.push_back(row.name);
  REQUIRE(names ==
          std::vector<std::string>{
              "Llama 4M", "Canon ABCD RoPE", "Canon ABCD NoPE", "Canon-A NoPE", "Llama NoPE"});
}

TEST_CASE("every row of the shipped tables has its published figures", "[report]") {
  const Published published = read_published(tables_dir() + "/published.yaml");
  REQUIRE(published.figures.size() == canon_configs.size());
  for (const std::string& config : canon_configs) {
    const PublishedFigure* figure = published.find(config);
    INFO(config);
    REQUIRE(figure);
    REQUIRE(figure->eval_loss.has_value());
    REQUIRE(figure->tokens_per_second.has_value());
    REQUIRE(figure->peak_memory_gib.has_value());
  }
  REQUIRE(published.find("train_canon_b")->eval_loss == 1.2149);
  REQUIRE(published.find("train_nope")->peak_memory_gib == 2.11);
}

}  // namespace
}  // namespace forge::report
