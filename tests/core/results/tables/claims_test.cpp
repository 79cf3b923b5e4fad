#include "core/results/tables/estimate.h"

#include "core/results/tables/sheet.h"
#include "core/results/tables/table_design.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;

using Losses = std::vector<double>;

/// Completed runs of the seeds 1, 2, … with these losses.
Sample runs_of(const Losses& losses) {
  Sample sample;
  for (const double loss : losses) {
    store::RunSummary run;
    run.status = run::RunState::completed;
    run.seed = static_cast<int64_t>(sample.runs.size()) + 1;
    run.metrics["eval_loss"] = loss;
    sample.runs.push_back(run);
  }
  if (!losses.empty()) sample.run = sample.runs.back();
  return sample;
}

/// A table of the three rows with one claim, and the losses of its runs.
Ablation ablation(const Losses& llama, const Losses& canon_a, const std::string& profile = "full") {
  Ablation ablation;
  ablation.table = tests::small_table();
  ablation.table.claims = {{"canon_a", "llama", "", {}, {}, "eval_loss", "full"}};
  for (const RowSpec& spec : ablation.table.rows) {
    AblationRow row;
    if (spec.config == "llama") static_cast<Sample&>(row) = runs_of(llama);
    if (spec.config == "canon_a") static_cast<Sample&>(row) = runs_of(canon_a);
    row.spec = spec;
    row.planned_seeds = row.runs.size();
    if (row.completed()) ablation.profile = profile;
    ablation.rows.push_back(row);
  }
  return ablation;
}

std::string verdict(const Ablation& ablation) {
  const std::vector<JudgedClaim> verdicts = judge_claims(ablation);
  REQUIRE(verdicts.size() == 1);
  return verdict_line(verdicts.front());
}

TEST_CASE("a claim is not decidable without the runs that it is about", "[report]") {
  CHECK(contains(verdict(ablation({}, {})), "not decidable: "));
  CHECK(contains(verdict(ablation({}, {})),
                 "(no completed run of canon_a and llama in profile full)"));
  CHECK(contains(verdict(ablation({1.5}, {})), "(no completed run of canon_a in profile full)"));
  CHECK(contains(verdict(ablation({}, {1.5})), "(no completed run of llama in profile full)"));
  CHECK(contains(verdict(ablation({1.5}, {1.25}, "tiny")), "not decidable: "));
  CHECK(contains(verdict(ablation({1.5}, {1.25}, "tiny")),
                 "(it is about profile full, shown is tiny, where it is \u22120.2500; one seed"));
  CHECK(
      contains(verdict(ablation({1.5}, {}, "tiny")), "(it is about profile full, shown is tiny)"));
  Ablation lacking = ablation({1.5, 1.6}, {1.25, 1.3});
  lacking.rows[1].runs[1].metrics.clear();
  CHECK(contains(verdict(lacking), "not decidable: "));
  CHECK(contains(verdict(lacking), "(no eval_loss of canon_a in profile full)"));
}

TEST_CASE("a claim about runs that diverged says in how many of them", "[report]") {
  const Losses good = {1.5, 1.6, 1.4};
  CHECK(verdict(ablation(good, {1.25, INFINITY, 1.2})) ==
        "not decidable: Canon-A has a lower eval loss than Llama 4M (canon_a diverged in 1 of 3 "
        "runs: its eval_loss is inf or NaN)");
  CHECK(contains(verdict(ablation({1.5}, {std::nan("")})), "(canon_a diverged in 1 of 1 run: "));
  const std::string both = verdict(ablation({std::nan(""), 1.6, INFINITY}, {1.25, 1.3, INFINITY}));
  CHECK(contains(both, "canon_a diverged in 1 of 3 runs: its eval_loss is inf or NaN, llama "));
  CHECK(contains(both, "llama diverged in 2 of 3 runs"));

  Ablation table = ablation(good, {1.25, INFINITY, 1.2});
  ClaimSpec claim;
  claim.claim = "Canon lowers the loss";
  claim.holds = "eval_loss[canon_a] < eval_loss[llama]";
  claim.comparison = parse_comparison(claim.holds);
  claim.expression = difference_of(*claim.comparison);
  table.table.claims = {claim};
  CHECK(verdict(table) ==
        "not decidable: Canon lowers the loss (canon_a diverged in 1 of 3 runs: its eval_loss is "
        "inf or NaN)");
}

TEST_CASE("one run of each decides nothing and says which way it went", "[report]") {
  CHECK(contains(verdict(ablation({1.5}, {1.25})),
                 "not decidable: Canon-A has a lower eval loss than Llama 4M (\u22120.2500; one "
                 "seed, for it: a verdict takes several)"));
  CHECK(contains(verdict(ablation({1.25}, {1.5})), "one seed, against it"));
  CHECK(contains(verdict(ablation({1.25, 1.3}, {1.5})), "one seed, against it"));
}

TEST_CASE("several seeds decide a claim where the difference stands", "[report]") {
  // Differences of \u22120.25, \u22120.26, \u22120.27 between the same seeds.
  CHECK(verdict(ablation({1.50, 1.60, 1.40}, {1.25, 1.34, 1.13})) ==
        "holds: Canon-A has a lower eval loss than Llama 4M (\u22120.2600 (95 %: \u22120.2848 to "
        "\u22120.2352), 3 and 3 seeds, p 0.004)");
  CHECK(contains(verdict(ablation({1.25, 1.34, 1.13}, {1.50, 1.60, 1.40})), "fails: "));
  CHECK(contains(verdict(ablation({1.5, 1.6, 1.4}, {1.5, 1.7, 1.3})), "not decidable: "));
  CHECK(contains(verdict(ablation({1.5, 1.6, 1.4}, {1.5, 1.7, 1.3})), "; within noise)"));
  // Of other seeds the samples are compared: their spread hides what the pairs showed.
  const std::vector<double> more = {1.50, 1.60, 1.40, 1.5, 1.5};
  CHECK(contains(verdict(ablation(more, {1.35, 1.44, 1.23})), "not decidable: "));
}

TEST_CASE("a claim that is newer than its runs says so", "[report]") {
  Ablation table = ablation({1.50, 1.60, 1.40}, {1.25, 1.34, 1.13});
  const auto record = [&](const std::string& claims) {
    for (AblationRow& row : table.rows) {
      for (store::RunSummary& run : row.runs) {
        run.planned_seeds = "1,2,3";
        run.planned_claims = claims;
      }
      row.first_runs = row.runs;
    }
  };
  const std::string key = claim_key(table.table.claims[0]);
  record("0123456789ab," + key);
  CHECK_FALSE(contains(verdict(table), "asked after"));
  table.table.claims[0].claim = "in other words";
  CHECK(claim_key(table.table.claims[0]) == key);
  table.table.claims[0].at_most = 1;
  CHECK(claim_key(table.table.claims[0]) != key);
  table.table.claims[0].at_most.reset();
  record("0123456789ab");
  CHECK(contains(verdict(table), "holds: "));
  CHECK(contains(verdict(table), "p 0.004; asked after runs were made)"));
  // Older runs do not say what was asked then.
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.first_runs) run.planned_seeds.clear();
  CHECK_FALSE(contains(verdict(table), "asked after"));
}

TEST_CASE("a claim on a row that breaks the comparison is not decidable", "[report]") {
  Ablation table = ablation({1.5, 1.5, 1.6}, {1.2, 1.2, 1.3});
  table.rows[1].violations = {"train.seq_len 256, this table shows 512"};
  CHECK(contains(verdict(table),
                 "(canon_a cannot be compared: train.seq_len 256, this table shows 512)"));
}

/// A table with one claim on a score of canon_a and llama.
Ablation scored(const ClaimSpec& claim,
                std::optional<worker::Score> llama,
                std::optional<worker::Score> canon_a) {
  Ablation table = ablation({1.5}, {1.25});
  table.table.claims = {claim};
  if (llama) table.rows[0].runs[0].scores[claim.score] = *llama;
  if (canon_a) table.rows[1].runs[0].scores[claim.score] = *canon_a;
  return table;
}

ClaimSpec on_score(const std::string& score) {
  ClaimSpec claim;
  claim.config = "canon_a";
  claim.score = score;
  return claim;
}

TEST_CASE("one seed's accuracy speaks for nothing while the intervals meet", "[report]") {
  ClaimSpec claim = on_score("token_accuracy");
  claim.above = "llama";
  const auto result = [&](worker::Score llama, worker::Score canon_a) {
    return verdict(scored(claim, llama, canon_a));
  };
  CHECK(result({0.5, 1000}, {0.75, 1000}) ==
        "not decidable: Canon-A has a higher token_accuracy than Llama 4M (75.0 % (95 %: 72.2 % "
        "to 77.6 %) of 1,000 cases against 50.0 % (95 %: 46.9 % to 53.1 %) of 1,000 cases; one "
        "seed, for it: a verdict takes several)");
  CHECK(contains(result({0.75, 1000}, {0.5, 1000}), "one seed, against it: "));
  CHECK(contains(result({0.5, 10}, {0.75, 10}), "; one seed, too few cases: "));
  CHECK(contains(verdict(scored(claim, worker::Score{0.5, 10}, {})),
                 "not decidable: Canon-A has a higher token_accuracy than Llama 4M (no "
                 "token_accuracy of canon_a in profile full)"));
  claim.above.clear();
  claim.below = "llama";
  CHECK(contains(result({0.5, 1000}, {0.75, 1000}), "one seed, against it"));
}

TEST_CASE("a claim may be on a number that a score reaches or does not exceed", "[report]") {
  ClaimSpec claim = on_score("answer_accuracy.hop_8");
  const auto result = [&](double value, int64_t count) {
    return verdict(scored(claim, {}, worker::Score{value, count}));
  };
  claim.at_least = 0.99;
  CHECK(contains(result(1, 1000),
                 "not decidable: Canon-A has answer_accuracy.hop_8 of at least 99 % (100.0 % (95 "
                 "%: 99.6 % to 100.0 %) of 1,000 cases; one seed, for it"));
  CHECK(contains(result(1, 100), "one seed, too few cases"));
  CHECK(contains(result(0.5, 100), "one seed, against it"));
  claim.at_least.reset();
  claim.at_most = 0.05;
  CHECK(contains(result(0, 1000), "one seed, for it"));
  CHECK(contains(result(0, 10), "one seed, too few cases"));
  CHECK(contains(result(0.5, 10), "Canon-A has answer_accuracy.hop_8 of at most 5 %"));
}

TEST_CASE("a number is reached where the interval over seeds lies beyond it", "[report]") {
  Ablation table = ablation({1.5}, {1.21, 1.22, 1.23});
  ClaimSpec claim = on_score("eval_loss");
  claim.at_most = 1.3;
  table.table.claims = {claim};
  CHECK(verdict(table) ==
        "holds: Canon-A has eval loss of at most 1.3 (1.2200 (95 %: 1.1952 to 1.2448) over 3 "
        "seeds, p 0.046)");
  table.table.claims[0].at_most = 1.1;
  CHECK(contains(verdict(table), "fails: "));
  table.table.claims[0].at_most = 1.23;
  CHECK(contains(verdict(table), "; within noise)"));
  // Other rows of text would give another number.
  table.table.claims[0].at_most = 1.3;
  table.rows[1].evaluation_rows = {{1.0, 1.1, 1.3, 1.48}, {10, 10, 10, 10}};
  CHECK(contains(verdict(table), "not decidable: "));
  CHECK(contains(verdict(table), "1.2200 (95 %: 0.8"));
  table.rows[1].evaluation_rows = {{1.22}, {10}};
  CHECK(contains(verdict(table), "1.2448) over 3 seeds; one row of text was evaluated"));
}

TEST_CASE("rows of text that some rows share are shared whichever a claim names first",
          "[report]") {
  const auto p_of = [](const std::string& holds) {
    Ablation table = ablation({1.5, 1.52, 1.54}, {1.5, 1.53, 1.52});
    static_cast<Sample&>(table.rows[2]) = runs_of({1.51, 1.5, 1.53});
    table.rows[2].planned_seeds = 3;
    table.rows[0].evaluation_rows = {{1.1, 1.9, 1.4, 1.6, 1.2}, {10, 10, 10, 10, 10}};
    table.rows[1].evaluation_rows = {{1.0, 2.0, 1.5}, {10, 10, 10}};
    table.rows[2].evaluation_rows = {{1.1, 2.1, 1.4}, {10, 10, 10}};
    ClaimSpec& claim = table.table.claims[0];
    claim.holds = holds;
    claim.comparison = parse_comparison(holds);
    claim.expression = difference_of(*claim.comparison);
    const std::vector<JudgedClaim> judged = judge_claims(table);
    REQUIRE(judged.front().p);
    return *judged.front().p;
  };
  const std::string others = "(eval_loss[canon_a] + eval_loss[canon_b])/2";
  CHECK(p_of("eval_loss[llama] < " + others) == Approx(p_of(others + " > eval_loss[llama]")));
}

TEST_CASE("what is said of a claim has as many digits as its verdict needs", "[report]") {
  Ablation table = ablation({2.56, 2.57, 2.58}, {2.555, 2.56, 2.565});
  table.rows.resize(2);  // without one that has no runs
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) {
      run.created = std::to_string(run.seed);  // in turn
      run.metrics["wall_seconds"] = run.metrics["eval_loss"];
    }
  const auto reason = [&](const ClaimSpec& claim) {
    table.table.claims = {claim};
    return verdict(table);
  };
  ClaimSpec claim = on_score("wall_seconds");
  claim.profile = "full";
  claim.at_most = 2.6;
  CHECK(contains(reason(claim),
                 "holds: Canon-A has wall_seconds of at most 2.6 (2.56 s (95 %: 2.55 s to 2.57 s) "
                 "over 3 seeds, "));
  claim.at_most = 60;
  CHECK(contains(reason(claim), "at most 60 (3s (95 %: 3s to 3s) over 3 seeds, "));
  claim = on_score("eval_loss");
  claim.profile = "full";
  claim.at_most = 2.56002;
  CHECK(
      contains(reason(claim), "at most 2.56002 (2.56000 (95 %: 2.54758 to 2.57242) over 3 seeds"));

  // A difference that is real is none of 0.
  for (const size_t i : {0, 1})
    for (store::RunSummary& run : table.rows[i].runs)
      run.metrics["eval_loss"] =
          2 + 0.1 * double(run.seed) + (i == 0 ? 4e-5 : 3e-7 * double(run.seed * run.seed));
  claim.at_most.reset();
  claim.below = "llama";
  CHECK(contains(reason(claim),
                 "holds: Canon-A has a lower eval loss than Llama 4M (\u22120.00004 "));
  claim = {};
  claim.claim = "words";
  claim.profile = "full";
  claim.value = "eval_loss[llama] - eval_loss[canon_a]";
  claim.expression = parse_expression(claim.value);
  claim.at_least = 0;
  CHECK(contains(reason(claim), "words (0.00004"));
  claim.value.clear();
  claim.at_least.reset();
  claim.holds = "eval_loss[canon_a] < eval_loss[llama]";
  claim.comparison = parse_comparison(claim.holds);
  claim.expression = difference_of(*claim.comparison);
  CHECK(contains(reason(claim), "(2.20000 against 2.20004"));
}

/// The table with a claim in words of its own, read as a file would be.
Ablation with_claim(const Losses& llama, const Losses& canon_a, ClaimSpec claim) {
  Ablation table = ablation(llama, canon_a);
  claim.claim = "It pays";
  if (!claim.holds.empty()) claim.comparison = parse_comparison(claim.holds);
  if (!claim.value.empty()) claim.expression = parse_expression(claim.value);
  table.table.claims = {claim};
  return table;
}

TEST_CASE("a value that no seed changes is one of one seed", "[report]") {
  ClaimSpec claim;
  claim.value = "parameters[canon_a]";
  claim.at_most = 2000;
  Ablation table = with_claim({1.0}, {0.9}, claim);
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) run.parameters = 1000;
  CHECK(contains(verdict(table), "over 1 seed, claimed"));
}

TEST_CASE("a claim may be that a value lies between two numbers", "[report]") {
  ClaimSpec claim;
  claim.value = "100*(1 - eval_loss[canon_a]/baseline.eval_loss)";
  claim.unit = "%";
  claim.at_least = 9;
  claim.at_most = 11;
  CHECK(verdict(with_claim(
            {1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, claim)) ==
        "holds: It pays (9.97 % (95 %: 9.83 % to 10.10 %) over 3 seeds, claimed 9.0 to 11.0 %, p "
        "0.029)");
  CHECK(contains(
      verdict(with_claim(
          {1.00012345, 1.10023456, 1.20034567}, {1.00012345, 1.10023456, 1.20024567}, claim)),
      "fails: "));
  CHECK(contains(verdict(with_claim({1.0, 1.1, 1.2}, {0.9, 1.1, 0.9}, claim)), "within noise"));
  CHECK(contains(verdict(with_claim({1.0}, {0.9}, claim)),
                 "not decidable: It pays (10.00 %, claimed 9.0 to 11.0 %; "));
  claim.at_most.reset();
  CHECK(contains(
      verdict(with_claim(
          {1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, claim)),
      "claimed at least 9.0 %"));
}

TEST_CASE("a claim may compare expressions over rows", "[report]") {
  ClaimSpec claim;
  claim.holds = "eval_loss[canon_a] < 0.95*eval_loss[llama]";
  CHECK(contains(
      verdict(with_claim(
          {1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, claim)),
      "holds: It pays (0.9905 against 1.0452, margin "));
  claim.holds = "eval_loss[canon_a] < 0.5*eval_loss[llama]";
  CHECK(contains(
      verdict(with_claim(
          {1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, claim)),
      "fails: "));
  claim.holds = "eval_loss[canon_b] < eval_loss[llama]";
  CHECK(contains(verdict(with_claim({1.0, 1.1}, {0.9, 0.99}, claim)), "not decidable: "));
  claim.profile = "other";
  CHECK(contains(verdict(with_claim({1.0, 1.1}, {0.9, 0.99}, claim)),
                 "it is about profile other, shown is full)"));
  claim.holds = "eval_loss[canon_a] < 0.95*eval_loss[llama]";
  const std::string other = verdict(with_claim(
      {1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, claim));
  CHECK(contains(other, "not decidable: "));
  CHECK(contains(other, "shown is full, where it is 0.9905 against 1.0452, margin "));
}

TEST_CASE("a score that is no share and the loss are compared as they are", "[report]") {
  ClaimSpec claim = on_score("kl_divergence");
  claim.below = "llama";
  CHECK(
      contains(verdict(scored(claim, worker::Score{0.5, 2}, worker::Score{0.25, 2})),
               "Canon-A has a lower kl_divergence than Llama 4M (\u22120.2500; one seed, for it"));
  claim = on_score("eval_loss");
  claim.at_most = 1.3;
  CHECK(contains(verdict(scored(claim, {}, {})),
                 "Canon-A has eval loss of at most 1.3 (1.2500; one seed, for it"));
}

TEST_CASE("every format prints the claims of a table without runs", "[report]") {
  const Ablation table = ablation({}, {});
  CHECK(contains(to_terminal(table, {}), "\nClaims\n  not decidable: "));
  CHECK(contains(to_markdown(table), "\nClaims:\n\n- not decidable: "));
  const nlohmann::ordered_json json = to_json(table);
  CHECK(json.at("claims").at(0).at("verdict") == "not decidable");
  CHECK(contains(json.at("claims").at(0).at("reason"), "no completed run"));
}

TEST_CASE("a claim is about the speeds that its table shows", "[report]") {
  // By the runs Canon-A is faster, by `forge bench` it is slower.
  Ablation table = ablation({1.50, 1.60, 1.40}, {1.25, 1.34, 1.13});
  table.table.tokens_per_second = SpeedSource::benchmark;
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs)
      run.metrics["tokens_per_second"] = (row.spec.config == "llama" ? 1000 : 1100) + run.seed;
  table.table.claims = {{"canon_a", "", "llama", {}, {}, "tokens_per_second", "full"}};
  CHECK(verdict(table) ==
        "not decidable: Canon-A has a higher tokens_per_second than Llama 4M (no comparable speed "
        "of canon_a and llama by 'forge bench' ('forge bench llama canon_a canon_b' measures all "
        "rows in one call))");
  for (AblationRow& row : table.rows) {
    row.speed.emplace();
    row.speed->record.tokens_per_second = row.spec.config == "llama" ? 1005 : 997;
  }
  CHECK(contains(verdict(table),
                 "not decidable: Canon-A has a higher tokens_per_second than Llama 4M (997 against "
                 "1,005 by 'forge bench'"));
  table.table.claims = {{"canon_a", "", "", 900, {}, "tokens_per_second", "full"}};
  CHECK(contains(verdict(table), "not decidable: "));
  table.table.claims = {{"canon_a", "llama", "", {}, {}, "eval_loss", "full"}};
  CHECK(contains(verdict(table), "holds: "));
  for (const Cell& cell : cells_of(table, "tokens_per_second")) CHECK_FALSE(cell.difference);
}

}  // namespace
}  // namespace forge::tables
