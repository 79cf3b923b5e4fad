#include "core/results/tables/comparable_metrics.h"

#include "core/results/tables/estimate.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;

/// Three seeds of each row, trained in turn. Each row is faster than the one before it, smaller and
/// better at equal time.
Ablation trained_in_turn() {
  Ablation ablation;
  ablation.table = tests::small_table();
  ablation.profile = "full";
  for (size_t i = 0; i < 3; ++i) {
    AblationRow row;
    row.spec = ablation.table.rows[i];
    for (int64_t seed = 1; seed <= 3; ++seed) {
      store::RunSummary run;
      const double noise = double(seed * seed) + 0.137 * double(i) * double(seed);
      run.status = run::RunState::completed;
      run.seed = seed;
      run.created = "2026-11-10T10:00:0" + std::to_string(seed);
      run.backend = "libtorch";
      run.device_type = "cpu";
      run.device_name = "CPU";
      run.threads = 1;
      run.recompute = "none";
      run.metrics = {{"eval_loss", 2 + 0.01 * noise},
                     {"tokens_per_second", 1000 + 100 * double(i) + 1.37 * noise},
                     {"wall_seconds", 100 - 10 * double(i) + noise / 10},
                     {"peak_memory_bytes", 1e9 - 1e8 * double(i) + 1e6 * noise}};
      row.runs.push_back(run);
      row.loss_at_equal_time.push_back(2 - 0.5 * double(i) + 0.01 * noise);
    }
    row.run = row.runs.back();
    row.planned_seeds = 3;
    ablation.rows.push_back(row);
  }
  return ablation;
}

ClaimSpec below(const std::string& config, const std::string& other, const std::string& metric) {
  return {config, other, "", {}, {}, metric, "full"};
}

ClaimSpec with_words(const std::string& holds) {
  ClaimSpec claim;
  claim.claim = "words";
  claim.profile = "full";
  claim.holds = holds;
  claim.comparison = parse_comparison(holds);
  claim.expression = difference_of(*claim.comparison);
  return claim;
}

ClaimSpec within(const std::string& value, double least, double most) {
  ClaimSpec claim;
  claim.claim = "range";
  claim.profile = "full";
  claim.value = value;
  claim.expression = parse_expression(value);
  claim.at_least = least;
  claim.at_most = most;
  return claim;
}

/// Claims of every form about canon_a and llama, all of which the runs prove if they compare.
std::vector<ClaimSpec> true_claims() {
  ClaimSpec above = below("canon_a", "", "tokens_per_second");
  above.above = "llama";
  return {above,
          below("canon_a", "llama", "wall_seconds"),
          below("canon_a", "llama", "peak_memory_bytes"),
          below("canon_a", "llama", "eval_loss_at_equal_time"),
          with_words("tokens_per_second[canon_a] > tokens_per_second[llama]"),
          within("100 * (tokens_per_second[canon_a] / tokens_per_second[llama] - 1)", 5, 15)};
}

std::vector<std::string> lines_of(Ablation ablation, const std::vector<ClaimSpec>& claims) {
  ablation.table.claims = claims;
  std::vector<std::string> lines;
  for (const JudgedClaim& judged : judge_claims(ablation)) lines.push_back(verdict_line(judged));
  return lines;
}

void change_all(AblationRow& row, const std::function<void(store::RunSummary&)>& change) {
  for (store::RunSummary& run : row.runs) change(run);
  row.run = row.runs.back();
}

TEST_CASE("claims of every form about rows that were computed alike are decided",
          "[report][comparable]") {
  for (const std::string& line : lines_of(trained_in_turn(), true_claims())) {
    INFO(line);
    CHECK(contains(line, "holds: "));
  }
}

TEST_CASE("speed and memory of rows that were computed otherwise decide nothing, and all say why",
          "[report][comparable]") {
  struct Way {
    std::function<void(store::RunSummary&)> change;
    std::string why;
  };
  const std::vector<Way> ways = {
      {[](auto& run) { run.backend = "pytorch"; },
       "canon_a was computed by backend pytorch, llama by backend libtorch"},
      {[](auto& run) { run.device_name = "GPU"; },
       "canon_a was trained on GPU, 1 thread, llama on CPU, 1 thread"},
      {[](auto& run) { run.threads = 2; },
       "canon_a was trained on CPU, 2 threads, llama on CPU, 1 thread"},
      {[](auto& run) { run.processes = "2"; },
       "canon_a was trained by 2 processes, llama by a single process"},
      {[](auto& run) { run.recompute = "mlp"; },
       "canon_a was trained with train.recompute mlp, llama with train.recompute none"},
      {[](auto& run) { run.micro_batch_size = 1; },
       "canon_a was computed with 1 row of a step at once, llama with all rows at once"},
      {[](auto& run) { run.device_name = "CPU and GPU"; },
       "canon_a was trained on CPU and GPU, 1 thread"}};
  for (const auto& [change, why] : ways) {
    INFO(why);
    Ablation ablation = trained_in_turn();
    change_all(ablation.rows[1], change);
    for (const std::string& line : lines_of(ablation, true_claims())) {
      INFO(line);
      CHECK(contains(line, "not decidable: "));
      CHECK(contains(line, "(" + why + ")"));
    }
    for (const char* metric : {"tokens_per_second", "wall_seconds", "peak_memory_bytes"})
      CHECK(cells_of(ablation, metric)[1].standing == Standing::not_comparable);
    CHECK(cells_of(ablation, "eval_loss")[1].standing != Standing::not_comparable);
    for (const char* metric : {"tokens_per_second", "peak_memory_bytes"}) {
      const ParetoFront front = pareto(ablation, "eval_loss", metric);
      CHECK(front.points.size() == 2);
      CHECK(front.missing == std::vector<std::string>{"Canon-A (" + why + ")"});
    }
    ColumnSpec derived{ColumnKind::derived, "Change"};
    derived.expression = parse_expression("tokens_per_second / baseline.tokens_per_second");
    CHECK(derived_value(derived, ablation.rows[1], ablation).missing == why);
    CHECK(derived_value(derived, ablation.rows[2], ablation).value);
  }
}

TEST_CASE("a row with seeds of two devices has no speed to compare", "[report][comparable]") {
  Ablation ablation = trained_in_turn();
  ablation.rows[1].runs.front().device_name = "GPU";
  const std::string why = "canon_a was trained on GPU, 1 thread and on CPU, 1 thread";
  ClaimSpec limit = below("canon_a", "", "tokens_per_second");
  limit.at_least = 10;
  std::vector<ClaimSpec> claims = true_claims();
  claims.push_back(limit);
  for (const std::string& line : lines_of(ablation, claims)) {
    INFO(line);
    CHECK(contains(line, "not decidable: "));
    CHECK(contains(line, "(" + why + ")"));
  }
  // Also before the plan is complete.
  for (AblationRow& row : ablation.rows) row.planned_seeds = 5;
  for (const std::string& line : lines_of(ablation, true_claims()))
    CHECK(contains(line, "(" + why + ")"));
}

TEST_CASE("rows that were computed alike compare, whatever the baseline's runs are",
          "[report][comparable]") {
  Ablation ablation = trained_in_turn();
  for (const size_t i : {1, 2})
    change_all(ablation.rows[i], [](store::RunSummary& run) { run.device_name = "GPU"; });
  const std::vector<std::string> lines =
      lines_of(ablation,
               {below("canon_b", "canon_a", "peak_memory_bytes"),
                with_words("peak_memory_bytes[canon_b] < peak_memory_bytes[canon_a]"),
                with_words("tokens_per_second[canon_b] > 1000")});
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(contains(line, "holds: "));
  }
}

TEST_CASE("what is computed from speeds is decided where they were measured in turn",
          "[report][comparable]") {
  Ablation ablation = trained_in_turn();
  change_all(ablation.rows[1], [](store::RunSummary& run) {
    run.created = "2026-11-11T10:00:0" + std::to_string(run.seed);
  });
  for (const std::string& line : lines_of(ablation, true_claims())) {
    INFO(line);
    const std::string what = contains(line, "peak_memory_bytes") ? "memory" : "speeds";
    CHECK(contains(line, "not decidable: "));
    CHECK(contains(line, "; " + what + " not measured in turn: "));
  }
  CHECK(cells_of(ablation, "eval_loss_at_equal_time")[1].standing == Standing::not_tested);
  // Where a row stands at equal time depends on the baseline's speed as well.
  ClaimSpec limit = below("canon_a", "", "eval_loss_at_equal_time");
  limit.at_most = 3;
  CHECK(contains(lines_of(ablation, {limit}).front(), "; speeds not measured in turn: "));
  ablation.rows[1].loss_at_equal_time.clear();
  CHECK(contains(lines_of(ablation, {below("canon_a", "llama", "eval_loss_at_equal_time")}).front(),
                 "(no eval_loss_at_equal_time of canon_a in profile full)"));
}

TEST_CASE("what a repeated run has anew and may be chosen is not tested", "[report][comparable]") {
  for (const std::string metric : {"train_loss", "peak_memory_bytes"}) {
    INFO(metric);
    const auto standing = [&](double change) {
      Ablation ablation = trained_in_turn();
      for (AblationRow& row : ablation.rows) {
        change_all(row, [&](store::RunSummary& run) {
          run.id = row.spec.config + std::to_string(run.seed);
          if (metric == "train_loss") run.metrics[metric] = *run.metric("eval_loss");
        });
        row.first_runs = row.runs;
      }
      store::RunSummary& first = ablation.rows[1].first_runs[0];
      first.id = "older";
      first.metrics[metric] *= change;
      ClaimSpec claim = below("canon_a", "llama", metric);
      if (metric == "train_loss") claim = below("llama", "canon_a", metric);
      return lines_of(ablation, {claim}).front();
    };
    CHECK_FALSE(contains(standing(1), "may have been chosen"));
    CHECK(contains(
        standing(1.01),
        "run canon_a1 repeats older and has another " + metric + ", which may have been chosen"));
  }
}

TEST_CASE("rows that a key tells apart which changes no number are repetitions",
          "[report][comparable]") {
  const auto of_table = [](const std::string& by, const std::string& metric) {
    Ablation ablation = trained_in_turn();
    ablation.table.by = by;
    return cells_of(ablation, metric)[1].standing;
  };
  for (const char* key : {"train.checkpoint_every", "train.log_every", "parallel.processes"})
    CHECK(of_table(key, "eval_loss") == Standing::not_tested);
  CHECK(of_table("optimizer.eps", "eval_loss") != Standing::not_tested);
  CHECK(of_table("parallel.processes", "tokens_per_second") != Standing::not_tested);
  // So are rows of texts that are copies of each other.
  const auto of_texts = [](const std::string& experiment, const std::string& other) {
    Ablation ablation = trained_in_turn();
    ablation.table.by = "data.path";
    const std::vector<AblationRow> rows = ablation.rows;
    for (AblationRow& row : ablation.rows) row.group = "a.txt", row.experiment = experiment;
    for (AblationRow row : rows) {
      row.group = "b.txt";
      row.experiment = other;
      ablation.rows.push_back(row);
    }
    return cells_of(ablation, "eval_loss")[1].standing;
  };
  CHECK(of_texts("x", "x") == Standing::not_tested);
  CHECK(of_texts("x", "y") != Standing::not_tested);
}

/// Rows of which each seed was trained on the device of its letter: llama, canon_a and canon_b.
Ablation trained_on(const std::vector<std::string>& devices) {
  Ablation ablation = trained_in_turn();
  for (size_t i = 0; i < devices.size(); ++i) {
    std::vector<store::RunSummary>& runs = ablation.rows[i].runs;
    const size_t seeds = devices[i].size();
    while (runs.size() < seeds) {
      store::RunSummary run = runs[runs.size() - 3];
      run.seed += 3;
      run.created = "2026-11-10T10:00:" + std::to_string(10 + runs.size());
      run.metrics["tokens_per_second"] += 0.1;
      runs.push_back(run);
    }
    for (size_t k = 0; k < seeds; ++k)
      runs[k].places = devices[i][k] == '?' ? "" : std::string("atlas cuda:") + devices[i][k];
    ablation.rows[i].run = runs.back();
    ablation.rows[i].planned_seeds = seeds;
  }
  return ablation;
}

TEST_CASE("speeds are tested where no device holds more of one row than of another",
          "[report][comparable][places]") {
  const auto is_tested = [](const std::string& own, const std::string& other) {
    const Ablation ablation = trained_on({other, own, other});
    return cells_of(ablation, "tokens_per_second")[1].standing != Standing::not_tested;
  };
  CHECK_FALSE(is_tested("111", "000"));
  CHECK(is_tested("000", "000"));
  CHECK(is_tested("???", "000"));  // of an earlier version
  // One seed in common says nothing of the others.
  CHECK_FALSE(is_tested("1111111110", "0000000000"));
  CHECK_FALSE(is_tested("1111111110", "0111111100"));
  // Of pairs on one device each, three that are not would make a t of 1.8.
  CHECK_FALSE(is_tested("11111111110000000111", "11111111110000000000"));
  // As commands hand seeds out to two devices, of which one is done earlier now and then.
  CHECK(is_tested("0101010101", "1010101010"));
  CHECK(is_tested("01010", "10101"));
  CHECK(is_tested("010", "101"));
  CHECK(is_tested("11010101", "00101010"));
  CHECK(is_tested("1101010100", "0010101011"));
  // Four devices, of which two always had the one row and two the other.
  CHECK_FALSE(is_tested("03030303", "12121212"));
  CHECK(is_tested("01230123", "12301230"));
  // Many devices, each a little more of one row than of the other.
  CHECK_FALSE(is_tested("0011223344556789", "0123456677889955"));
}

TEST_CASE("why speeds of other devices are not tested is said of claims, too",
          "[report][comparable][places]") {
  const Ablation ablation = trained_on({"000", "011", "000"});
  ClaimSpec faster = below("canon_a", "", "tokens_per_second");
  faster.above = "llama";
  CHECK(contains(lines_of(ablation, {faster}).front(),
                 "2 of 3 runs of canon_a were trained on atlas cuda:1, of llama 0 of 3: devices of "
                 "one name differ ('forge bench' measures on one)"));
  // Together two claims about one row each would say which is faster.
  ClaimSpec limit = below("canon_a", "", "tokens_per_second");
  limit.at_least = 10;
  CHECK(contains(lines_of(ablation, {limit}).front(), "devices of one name differ"));
}

TEST_CASE("claims about the memory of one row ask for turns as those about two do",
          "[report][comparable]") {
  std::vector<ClaimSpec> claims;
  for (const char* metric : {"peak_memory_bytes", "peak_resident_bytes"}) {
    for (const char* config : {"canon_a", "llama"}) {
      claims.push_back(below(config, "", metric));
      claims.back().at_most = 9e9;
    }
    claims.push_back(with_words("max(" + std::string(metric) + "[llama], 1) < 9000000000"));
  }
  Ablation ablation = trained_in_turn();
  for (AblationRow& row : ablation.rows)
    change_all(row, [](store::RunSummary& run) {
      run.metrics["peak_resident_bytes"] = 1.5 * *run.metric("peak_memory_bytes");
    });
  for (const std::string& line : lines_of(ablation, claims)) {
    INFO(line);
    CHECK(contains(line, "holds: "));
  }
  change_all(ablation.rows[1], [](store::RunSummary& run) {
    run.created = "2026-11-11T10:00:0" + std::to_string(run.seed);
  });
  for (const std::string& line : lines_of(ablation, claims)) {
    INFO(line);
    CHECK(contains(line, "not decidable: "));
    CHECK(contains(line, "; memory not measured in turn: "));
  }
  // Who hides the other row would compare it all the same.
  ablation.rows[1].runs.clear();
  CHECK(contains(lines_of(ablation, claims)[1], "canon_a, which the table declares, has no runs"));
}

TEST_CASE("scores of a repetition that are others than those of the first run are not tested",
          "[report][comparable]") {
  const auto line_with = [](double score_of_first, double loss_of_first) {
    Ablation ablation = trained_in_turn();
    for (AblationRow& row : ablation.rows) {
      change_all(row, [&](store::RunSummary& run) {
        run.id = row.spec.config + std::to_string(run.seed);
        const bool is_better = row.spec.config == "canon_a";
        run.scores["answer_accuracy"] = {is_better ? 0.95 : 0.5 + 0.01 * double(run.seed), 4000};
      });
      row.first_runs = row.runs;
    }
    store::RunSummary& first = ablation.rows[1].first_runs[0];
    first.id = "older";
    first.scores["answer_accuracy"].value = score_of_first;
    first.metrics["eval_loss"] += loss_of_first;
    ClaimSpec claim = below("canon_a", "", "answer_accuracy");
    claim.above = "llama";
    return lines_of(ablation, {claim}).front();
  };
  CHECK(contains(line_with(0.95, 0), "holds: "));
  CHECK(contains(line_with(0.94, 0),
                 "run canon_a1 repeats older and has another answer_accuracy, which may have been "
                 "chosen"));
  // With another loss it was evaluated on other cases.
  CHECK(contains(line_with(0.94, 0.1), "holds: "));
}

}  // namespace
}  // namespace forge::tables
