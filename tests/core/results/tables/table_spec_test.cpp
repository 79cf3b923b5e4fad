#include <nlohmann/json.hpp>

#include "core/results/tables/read_table.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tables {
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
  REQUIRE(table.columns[1].metric == "eval_loss");
  REQUIRE(table.columns[1].title == "Eval Loss");
  REQUIRE(table.must_be_equal ==
          std::vector<std::string>{"profile", "data", "train.seq_len", "optimizer"});
  REQUIRE(table.published == "published.yaml");
}

TEST_CASE("a table names each metric once that it may be about", "[report]") {
  const std::string error =
      error_in(with("must_be_equal",
                    "  - {kind: difference, score: eval_loss, title: Change}\n"
                    "primary: nonsense\nmust_be_equal"));
  CHECK(contains(error, "its metrics: eval_loss"));
  CHECK_FALSE(contains(error, "eval_loss, eval_loss"));
}

TEST_CASE("a table says where its speeds come from", "[report]") {
  REQUIRE(read(good_table).tokens_per_second == SpeedSource::runs);
  const std::string key = "published: published.yaml\ntokens_per_second: ";
  REQUIRE(read(with("published: published.yaml\n", key + "benchmark\n")).tokens_per_second ==
          SpeedSource::benchmark);
  const std::string error = error_in(with("published: published.yaml\n", key + "benchmarks\n"));
  REQUIRE(contains(error, "positions.yaml:11:"));
  REQUIRE(contains(error, "did you mean 'benchmark'?"));
}

TEST_CASE("a column's kind is a word or any metric", "[report]") {
  const auto column = [](const std::string& kind) {
    return read(with("kind: eval_loss", "kind: " + kind)).columns[1];
  };
  for (const std::string& name : results::run_metric_names()) {
    REQUIRE(column(name).kind == ColumnKind::metric);
    REQUIRE(column(name).metric == name);
  }
  REQUIRE(column("peak_memory").metric == "peak_memory_bytes");
  REQUIRE(column("eval_loss_at_equal_time").metric == "eval_loss_at_equal_time");
  REQUIRE(column("overhead").kind == ColumnKind::overhead);
  REQUIRE(column("difference").metric == "eval_loss");
  REQUIRE(column("published_tokens_per_second").kind == ColumnKind::published);
  REQUIRE(column("published_peak_memory").metric == "peak_memory_bytes");
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
  REQUIRE(contains(error, "did you mean 'eval_loss'"));
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
  const std::string row_list =
      text.substr(text.find("rows:"), text.find("columns:") - text.find("rows:"));
  REQUIRE(contains(error_in(with(row_list, "rows: []\n")), "no rows"));
  const std::string columns =
      text.substr(text.find("columns:"), text.find("must_be") - text.find("columns:"));
  REQUIRE(contains(error_in(with(columns, "columns: []\n")), "no columns"));
}

TEST_CASE("published metrics are read as strictly", "[report]") {
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

TEST_CASE("a column of a score names it and says how it is written", "[report]") {
  const std::string score = "{kind: score, score: answer_accuracy.hop_8, title: k = 8}";
  const std::string column = "{kind: eval_loss, title: Eval Loss}";
  const TableSpec table = read(with(column, score));
  REQUIRE(table.columns[1].kind == ColumnKind::metric);
  REQUIRE(table.columns[1].metric == "answer_accuracy.hop_8");
  REQUIRE(table.columns[1].title == "k = 8");
  REQUIRE(table.columns[1].format == ScoreFormat::by_name);
  REQUIRE(scores_of(table) == std::vector<std::string>{"answer_accuracy.hop_8"});
  REQUIRE(read(with(column, "{kind: score, score: name_loss, format: decimals, title: A}"))
              .columns[1]
              .format == ScoreFormat::decimals);
  REQUIRE(contains(error_in(with(column, "{kind: score, title: A}")), "names the score"));
  REQUIRE(contains(error_in(with(column, "{kind: eval_loss, score: a, title: A}")),
                   "'score' is for columns of kind score"));
  REQUIRE(contains(error_in(with(column, "{kind: notes, format: percent, title: A}")),
                   "'format' is for columns of kind score"));
  REQUIRE(
      contains(error_in(with(column, "{kind: score, score: name_loss, format: roman, title: A}")),
               "percent"));
}

TEST_CASE("a misspelt score is named with those that there are", "[report]") {
  const std::string column = "{kind: eval_loss, title: Eval Loss}";
  for (const char* kind : {"score", "difference"}) {
    const auto score = [&](const std::string& name) {
      return with(column, std::string("{kind: ") + kind + ", score: " + name + ", title: A}");
    };
    REQUIRE(read(score("answer_accuracy.hop_8")).columns[1].metric == "answer_accuracy.hop_8");
    REQUIRE(contains(error_in(score("token_acuracy")), "no run has a final 'token_acuracy'"));
    REQUIRE(contains(error_in(score("token_acuracy")), "token_accuracy"));
    REQUIRE(contains(error_in(score("xyzzy")), "no run has a final 'xyzzy'"));
    REQUIRE(contains(error_in(score("gradient_norm")), "no run has a final 'gradient_norm'"));
  }
  REQUIRE(contains(error_in(std::string(good_table) +
                            "claims:\n  - {config: canon_a, below: llama, score: xyzzy}\n"),
                   "no run has a final 'xyzzy'"));
}

TEST_CASE("a claim compares with another row or with a number", "[report]") {
  const auto claim = [](const std::string& words) {
    return good_table + ("claims:\n  - {config: canon_a, " + words + "}\n");
  };
  const TableSpec table = read(claim("score: token_accuracy, at_least: 0.99, profile: paper"));
  REQUIRE(table.claims[0].score == "token_accuracy");
  REQUIRE(table.claims[0].at_least == 0.99);
  REQUIRE(table.claims[0].profile == "paper");
  REQUIRE(read(claim("below: llama")).claims[0].score == "eval_loss");
  REQUIRE(read(claim("above: llama, score: token_accuracy")).claims[0].above == "llama");
  const char* one_of = "one of below, above, at_least, at_most";
  REQUIRE(contains(error_in(claim("score: token_accuracy")), one_of));
  REQUIRE(contains(error_in(claim("below: llama, score: validation_loss")),
                   "'validation_loss' chooses between runs and decides no claim"));
  REQUIRE(contains(error_in(claim("below: llama, at_most: 1")), one_of));
  REQUIRE(contains(error_in(claim("at_most: null")), one_of));
  REQUIRE(contains(error_in(claim("above: canon_b")), "'canon_b', which has no row"));
  REQUIRE(contains(error_in(claim("above: canon_a")), "'canon_a' cannot be above itself"));
}

TEST_CASE("a claim of expressions has words of its own", "[report]") {
  const auto claim = [](const std::string& lines) {
    return good_table + ("claims:\n  - {" + lines + "}\n");
  };
  const TableSpec table =
      read(claim("claim: It pays, value: \"100*(1 - eval_loss[canon_a]/baseline.eval_loss)\", "
                 "unit: \"%\", at_least: 2.3, at_most: 3.3"));
  REQUIRE(table.claims[0].claim == "It pays");
  REQUIRE(names_of(table.claims[0].expression).size() == 2);
  REQUIRE(read(claim("claim: It pays, holds: \"eval_loss[canon_a] < eval_loss[llama]\""))
              .claims[0]
              .comparison);
  const auto says = [&](const std::string& lines, const std::string& what) {
    const std::string error = error_in(claim(lines));
    INFO(error);
    REQUIRE(contains(error, what));
  };
  says("holds: \"eval_loss[canon_a] < 1\"", "says in words what it claims");
  says("claim: It pays, config: canon_a, below: llama", "says in words what it claims");
  says("claim: x, config: canon_a, holds: \"eval_loss[canon_a] < 1\"", "one of expressions none");
  says("claim: x, value: \"eval_loss[canon_a]\"", "at_least or at_most a number");
  says("claim: x, value: \"eval_loss[canon_a]\", at_least: 3, at_most: 1",
       "no value is at least 3.0 and at most 1.0");
  says("claim: x, holds: \"eval_loss[canon_aa] < 1\"", "canon_a");
  says("claim: x, holds: \"eval_los[canon_a] < 1\"", "eval_loss");
  says("claim: x, holds: \"eval_loss[canon_a]\"", "<");
}

TEST_CASE("a derived column is computed from metrics", "[report]") {
  const auto column = [](const std::string& words) {
    std::string text = good_table;
    const std::string before = "columns:\n";
    text.insert(text.find(before) + before.size(), "  - {title: T, " + words + "}\n");
    return text;
  };
  const TableSpec table =
      read(column("kind: derived, value: 100*tokens_per_second, unit: \"%\", precision: 1"));
  REQUIRE(table.columns[0].unit == "%");
  REQUIRE(table.columns[0].precision == 1);
  REQUIRE(names_of(table.columns[0].expression).size() == 1);
  REQUIRE(contains(error_in(column("kind: derived")), "has a value to compute"));
  REQUIRE(contains(error_in(column("kind: derived, value: 1 +")), "positions.yaml:"));
  REQUIRE(contains(error_in(column("kind: seeds, unit: x")), "is for columns of kind derived"));
  REQUIRE(
      contains(error_in(column("kind: derived, value: tokens_per_secnd")), "tokens_per_second"));
}

TEST_CASE("what a row is the best of is read and checked", "[report]") {
  const auto best_of = [](const std::string& words) {
    return good_table + ("best_of: {" + words + "}\n");
  };
  const std::string good = "key: optimizer.lr, values: [5e-4, 1e-3], by: name_loss, take: highest";
  const TableSpec table = read(best_of(good));
  REQUIRE(table.best_of->key == "optimizer.lr");
  REQUIRE(table.best_of->values == std::vector<double>{5e-4, 1e-3});
  REQUIRE(table.best_of->take == Extreme::highest);
  REQUIRE(scores_of(table) == std::vector<std::string>{"name_loss"});
  REQUIRE_FALSE(read(good_table).best_of.has_value());

  const std::string rest = ", values: [1], by: name_loss, take: lowest";
  REQUIRE(contains(error_in(best_of("key: optimizer.rl" + rest)), "did you mean"));
  REQUIRE(contains(error_in(best_of("key: optimizer" + rest)), "no config key 'optimizer'"));
  REQUIRE(contains(error_in(best_of("key: train.seq_len" + rest)), "vary within a row"));
  const std::string key = "key: optimizer.lr, by: name_loss, take: lowest, ";
  REQUIRE(contains(error_in(best_of(key + "values: []")), "best_of has no values"));
  REQUIRE(contains(error_in(best_of(key + "values: [1e-3, 0.001]")), "given twice"));
  REQUIRE(contains(error_in(best_of("key: optimizer.lr, values: [1], by: name_loss")),
                   "'best_of.take'"));
  const std::string varied = "{kind: varied, title: LR}";
  REQUIRE(contains(error_in(with("{kind: eval_loss, title: Eval Loss}", varied)),
                   "the table has no best_of"));
}

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
    if (!(column.kind == ColumnKind::published)) titles.push_back(column.title);
  }
  return titles;
}

TEST_CASE("the table of canon positions has its rows and columns", "[report]") {
  const TableSpec table = read_table(tables_dir() + "/positions.yaml", canon_configs);
  REQUIRE(titles_of(table) == std::vector<std::string>{"Model",
                                                       "Positions",
                                                       "Eval Loss",
                                                       "Above Floor",
                                                       "vs Llama",
                                                       "Tok/s",
                                                       "Memory",
                                                       "Overhead vs Llama"});
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
          std::vector<std::string>{
              "Model", "Eval Loss", "Above Floor", "vs Llama", "Tok/s", "Memory", "Notes"});
  std::vector<std::string> names;
  for (const RowSpec& row : table.rows) names.push_back(row.name);
  REQUIRE(names ==
          std::vector<std::string>{
              "Llama 4M", "Canon ABCD RoPE", "Canon ABCD NoPE", "Canon-A NoPE", "Llama NoPE"});
}

TEST_CASE("every row of the shipped tables has its published metrics", "[report]") {
  const Published published = read_published(tables_dir() + "/published.yaml");
  REQUIRE(published.results.size() == canon_configs.size());
  for (const std::string& config : canon_configs) {
    const PublishedResult* metric = published.find(config);
    INFO(config);
    REQUIRE(metric);
    REQUIRE(metric->eval_loss.has_value());
    REQUIRE(metric->tokens_per_second.has_value());
    REQUIRE(metric->peak_memory_gib.has_value());
  }
  REQUIRE(published.find("train_canon_b")->eval_loss == 1.2149);
  REQUIRE(published.find("train_nope")->peak_memory_gib == 2.11);
}

TEST_CASE("a table file says how its rows are tuned and what they are trained with", "[report]") {
  const std::string best =
      "best_of: {key: optimizer.lr, values: [1e-3, 2e-3], by: validation_loss, take: lowest, ";
  const auto with_best = [&](const std::string& rest) {
    return with("must_be_equal", best + rest + "}\nmust_be_equal");
  };
  const TableSpec tuned = read(with_best("tuning_seeds: [901, 902], extend: true"));
  CHECK(tuned.best_of->tuning_seeds == std::vector<int64_t>{901, 902});
  CHECK(tuned.best_of->extend);
  CHECK(contains(error_in(with_best("tuning_seeds: [901, 901]")), "each given once"));
  CHECK(contains(error_in(with("must_be_equal",
                               "best_of: {key: seed, values: [1, 2], by: eval_loss, take: lowest}\n"
                               "must_be_equal")),
                 "cannot be the best of its seeds"));
  for (const auto& [key, why] : {std::pair{"data.seed", "evaluated on other rows"},
                                 {"train.eval_rows", "evaluated on other rows"},
                                 {"train.log_every", "runs with its values are one run"},
                                 {"parallel.processes", "runs with its values are one run"},
                                 {"train.validation_rows", "evaluated on other rows"},
                                 {"tokenizer.vocab_size", "or on other tokens"},
                                 {"model.hidden_size", "another model is another config"}}) {
    const std::string of_key = std::string("best_of: {key: ") + key;
    CHECK(contains(
        error_in(with("must_be_equal",
                      of_key + ", values: [1, 2], by: eval_loss, take: lowest}\nmust_be_equal")),
        why));
  }
  CHECK(contains(error_in(with("must_be_equal",
                               "best_of: {key: optimizer.lr, values: [1e-3], by: eval_loss, take: "
                               "lowest, extend: true}\nmust_be_equal")),
                 "it needs two above 0"));
  CHECK(contains(error_in(with("must_be_equal",
                               "best_of: {key: optimizer.lr, values: [1e-3], by: eval_los, take: "
                               "lowest}\nmust_be_equal")),
                 "did you mean 'eval_loss'"));

  const TableSpec budgeted = read(with("must_be_equal", "budget: {equal: time}\nmust_be_equal"));
  CHECK(budgeted.budget->equal == Budget::time);
  CHECK(contains(error_in(with("must_be_equal", "budget: {equal: joules}\nmust_be_equal")),
                 "tokens, flops"));
  CHECK(contains(
      error_in(with("must_be_equal", "budget: {equal: flops, of: canon_b}\nmust_be_equal")),
      "which has no row"));
  CHECK(contains(error_in(with("must_be_equal: [profile,",
                               "budget: {equal: flops}\nmust_be_equal: [train.max_steps,")),
                 "cannot be equal where each row has a budget"));
  CHECK(contains(error_in(with_best("extend: true}\nbudget: {equal: flops")),
                 "best_of or budget, not both"));
}

TEST_CASE("a key that stands twice in a table file is an error at its place", "[report]") {
  CHECK(contains(error_in(with("baseline: llama\n", "baseline: llama\nbaseline: canon_a\n")),
                 "positions.yaml:3:1: error: 'baseline' is given twice"));
  CHECK(contains(error_in(with("{config: llama, name: Llama 4M}",
                               "{config: llama, name: Llama 4M, name: Other}")),
                 "'name' is given twice"));
}

TEST_CASE("a claim's expression says of which row each metric is", "[report]") {
  const auto claim = [&](const std::string& value) {
    return with(
        "must_be_equal",
        "claims:\n  - {claim: It is so, value: \"" + value + "\", at_least: 1}\nmust_be_equal");
  };
  CHECK(read(claim("eval_loss[canon_a]/baseline.eval_loss")).claims.size() == 1);
  CHECK(contains(error_in(claim("eval_loss/baseline.eval_loss")),
                 "write eval_loss[CONFIG] or baseline.eval_loss"));
}

}  // namespace
}  // namespace forge::tables
