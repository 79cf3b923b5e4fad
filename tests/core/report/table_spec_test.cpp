#include "core/report/table_spec.h"

#include "core/report/published.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::report {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

const char* const good_table = R"(title: Canon
baseline: llama
rows:
  - {config: llama, name: Llama 4M}
  - {config: canon_a, name: Canon-A, positions: A, notes: first}
columns:
  - {kind: model, title: Model}
  - {kind: eval_loss, title: Eval Loss}
must_be_equal: [profile, data, train.seq_len, optimizer]
published: published.yaml
)";

/// The good table with one piece of its text replaced.
std::string with(const std::string& old_text, const std::string& new_text) {
  std::string text = good_table;
  const size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old_text.size(), new_text);
}

TableSpec read(const std::string& text) {
  TemporaryFolder folder;
  return read_table(folder.write("positions.yaml", text).string(), {"llama", "canon_a", "canon_b"});
}

std::string error_in(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST_CASE("a table file is read with all its parts", "[report]") {
  const TableSpec table = read(good_table);
  REQUIRE(table.name == "positions");
  REQUIRE(table.title == "Canon");
  REQUIRE(table.baseline == "llama");
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.rows[1].config == "canon_a");
  REQUIRE(table.rows[1].name == "Canon-A");
  REQUIRE(table.rows[1].positions == "A");
  REQUIRE(table.rows[1].notes == "first");
  REQUIRE(table.columns.size() == 2);
  REQUIRE(table.columns[1].kind == ColumnKind::eval_loss);
  REQUIRE(table.columns[1].title == "Eval Loss");
  REQUIRE(table.must_be_equal ==
          std::vector<std::string>{"profile", "data", "train.seq_len", "optimizer"});
  REQUIRE(table.published == "published.yaml");
}

TEST_CASE("every kind of column has its word", "[report]") {
  const std::vector<std::string>& names = names_of(ColumnKind{});
  REQUIRE(names.size() == static_cast<size_t>(ColumnKind::published_peak_memory) + 1);
  REQUIRE(names[static_cast<size_t>(ColumnKind::overhead)] == "overhead");
  REQUIRE(is_published(ColumnKind::published_tokens_per_second));
  REQUIRE_FALSE(is_published(ColumnKind::tokens_per_second));
}

TEST_CASE("an unknown key of a table is told at its place", "[report]") {
  const std::string error = error_in(with("published:", "publishd:"));
  REQUIRE(contains(error, "positions.yaml:10:1"));
  REQUIRE(contains(error, "did you mean 'published'?"));
  REQUIRE(contains(error_in(with("notes:", "note:")), "positions.yaml:5:"));
}

TEST_CASE("a missing key and a wrong type of a table are errors", "[report]") {
  REQUIRE(contains(error_in(with("title: Canon\n", "")), "'title'"));
  REQUIRE(contains(error_in(with("name: Llama 4M", "positions: A")), "name"));
  REQUIRE(contains(error_in("title: [1]\n"), "positions.yaml:1:8"));
  REQUIRE(contains(error_in("- 1\n"), "a table file is a mapping, this is a sequence"));
}

TEST_CASE("an unknown kind of column is told at its place", "[report]") {
  const std::string error = error_in(with("kind: eval_loss", "kind: eval_los"));
  REQUIRE(contains(error, "positions.yaml:8:12"));
  REQUIRE(contains(error, "did you mean 'eval_loss'?"));
}

TEST_CASE("rows name configs that there are and each once", "[report]") {
  const std::string unknown = error_in(with("config: canon_a", "config: canon_q"));
  REQUIRE(contains(unknown, "positions.yaml:5:14"));
  REQUIRE(contains(unknown, "there is no config 'canon_q'"));
  REQUIRE(contains(unknown, "did you mean"));
  REQUIRE(contains(error_in(with("config: canon_a", "config: llama")), "has a row already"));
}

TEST_CASE("the baseline is one of the rows", "[report]") {
  const std::string error = error_in(with("baseline: llama", "baseline: canon_b"));
  REQUIRE(contains(error, "positions.yaml:2:11"));
  REQUIRE(contains(error, "'canon_b' is not one of the rows"));
}

TEST_CASE("what must be equal is a word of tables or a config key", "[report]") {
  const std::string error = error_in(with("train.seq_len", "train.seq_length"));
  REQUIRE(contains(error, "positions.yaml:9:32"));
  REQUIRE(contains(error, "did you mean 'train.seq_len'?"));
  REQUIRE(read(with("optimizer", "device")).must_be_equal.back() == "device");
}

TEST_CASE("a table without rows or columns is refused", "[report]") {
  const std::string text = good_table;
  const std::string rows =
      text.substr(text.find("rows:"), text.find("columns:") - text.find("rows:"));
  REQUIRE(contains(error_in(with(rows, "rows: []\n")), "no rows"));
  const std::string columns =
      text.substr(text.find("columns:"), text.find("must_be") - text.find("columns:"));
  REQUIRE(contains(error_in(with(columns, "columns: []\n")), "no columns"));
}

TEST_CASE("published figures are read as strictly", "[report]") {
  TemporaryFolder folder;
  const std::string good = "source: A paper\nfigures:\n  - {config: llama, eval_loss: 1.25}\n";
  const Published published = read_published(folder.write("p.yaml", good).string());
  REQUIRE(published.find("llama")->eval_loss == 1.25);
  REQUIRE_FALSE(published.find("llama")->tokens_per_second.has_value());
  REQUIRE(published.find("canon_a") == nullptr);
  const auto error = [&](const std::string& text) {
    return error_of([&] { read_published(folder.write("p.yaml", text).string()); });
  };
  REQUIRE(contains(error("source: x\nfigures: [{config: a, eval_los: 1}]\n"), "p.yaml:2:"));
  REQUIRE(contains(error("source: x\nfigures: [{config: a, eval_loss: -1}]\n"), "p.yaml:2:"));
}

TEST_CASE("claims are about two rows of the table", "[report]") {
  const std::string head = std::string(good_table) + "claims:\n";
  const TableSpec table = read(head + "  - {config: canon_a, below: llama}\n");
  REQUIRE(table.claims.size() == 1);
  REQUIRE(table.claims[0].profile == "full");
  REQUIRE(contains(error_in(head + "  - {config: canon_b, below: llama}\n"),
                   "the claim is about 'canon_b', which has no row"));
  REQUIRE(
      contains(error_in(head + "  - {config: canon_a, below: lama}\n"), "did you mean 'llama'?"));
  REQUIRE(contains(error_in(head + "  - {config: llama, below: llama}\n"),
                   "'llama' cannot be below itself"));
}

}  // namespace
}  // namespace forge::report
