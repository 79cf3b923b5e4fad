#include "core/report/claims.h"

#include "core/report/machine_formats.h"
#include "core/report/markdown.h"
#include "core/report/terminal.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
namespace {

using tests::contains;

/// A table of the three rows with one claim, and the losses of its runs; none: no run.
Ablation ablation(std::optional<double> llama,
                  std::optional<double> canon_a,
                  const std::string& profile = "full") {
  Ablation ablation;
  ablation.table = tests::small_table();
  ablation.table.claims = {{"canon_a", "llama", "full"}};
  for (const RowSpec& spec : ablation.table.rows) {
    AblationRow row;
    row.spec = spec;
    const std::optional<double> loss = spec.config == "llama"     ? llama
                                       : spec.config == "canon_a" ? canon_a
                                                                  : std::nullopt;
    if (loss) {
      row.run.emplace();
      row.run->status = run::RunState::completed;
      row.run->eval_loss = loss;
      ablation.profile = profile;
    }
    ablation.rows.push_back(row);
  }
  return ablation;
}

std::string verdict(const Ablation& ablation) {
  const std::vector<Verdict> verdicts = judge_claims(ablation);
  REQUIRE(verdicts.size() == 1);
  return verdict_line(verdicts.front());
}

TEST_CASE("a claim is not decidable without the runs that it is about", "[report]") {
  CHECK(contains(verdict(ablation({}, {})), "not decidable: "));
  CHECK(contains(verdict(ablation({}, {})),
                 "(no completed run of canon_a and llama in profile full)"));
  CHECK(contains(verdict(ablation(1.5, {})), "(no completed run of canon_a in profile full)"));
  CHECK(contains(verdict(ablation({}, 1.5)), "(no completed run of llama in profile full)"));
  CHECK(contains(verdict(ablation(1.5, 1.25, "tiny")), "not decidable: "));
  CHECK(contains(verdict(ablation(1.5, 1.25, "tiny")), "in profile full shown)"));
  CHECK(contains(verdict(ablation(1.5, std::nan(""))), "not decidable: "));
}

TEST_CASE("one run of each decides nothing and says which way it went", "[report]") {
  CHECK(contains(verdict(ablation(1.5, 1.25)), "one seed for it: "));
  CHECK(contains(verdict(ablation(1.5, 1.25)), "(-0.2500; a decision takes several seeds)"));
  CHECK(contains(verdict(ablation(1.25, 1.5)), "one seed against it: "));
}

TEST_CASE("every format prints the claims of a table without runs", "[report]") {
  const Ablation table = ablation({}, {});
  CHECK(contains(to_terminal(table, {}), "\nClaims\n  not decidable: "));
  CHECK(contains(to_markdown(table), "\nClaims:\n\n- not decidable: "));
  const nlohmann::ordered_json json = to_json(table);
  CHECK(json.at("claims").at(0).at("verdict") == "not decidable");
  CHECK(contains(json.at("claims").at(0).at("reason"), "no completed run"));
}

}  // namespace
}  // namespace forge::report
