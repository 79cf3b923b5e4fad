#include "core/report/page/collect.h"

#include <cmath>

#include "core/store/location.h"
#include "core/store/result_store.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report::page {
namespace {

using tests::Lab;
using tests::MadeRun;

Page page_of(const Lab& lab) {
  store::ResultStore(store::store_path(lab.runs)).sync(lab.runs);
  return collect_page("projects/canon", "canon", {lab.table()}, lab.runs);
}

TEST_CASE("a page has the project's tables, runs and commands", "[report][page]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4312, int64_t{3} << 29});
  make_completed_run(lab.runs, Lab::run("canon_a", 20), {3.18, 3911, int64_t{2} << 30});
  make_failed_run(lab.runs, Lab::run("canon_b", 20), 10, "worker killed by SIGKILL");
  MadeRun other = Lab::run("llama", 19);
  other.project = "projects/other";
  make_completed_run(lab.runs, other);

  const Page page = page_of(lab);
  REQUIRE(page.runs.size() == 3);
  CHECK(page.runs[0].summary.id == "canon_a-20");
  CHECK(page.runs[1].summary.failure_reason == "worker killed by SIGKILL");
  CHECK(page.runs[2].config.contains("model"));
  REQUIRE(page.tables.size() == 1);
  CHECK(page.tables[0].origins[0].runs == std::vector<std::string>{"llama-20"});
  CHECK(page.tables[0].sheet.title == "Canon positions");
  CHECK(page.tables[0].meanings.size() == page.tables[0].sheet.columns.size());
  CHECK_FALSE(page.tables[0].setup.empty());
  CHECK(page.commands.front() == "forge run llama");
  CHECK(page.commands.back() == "forge report");
}

TEST_CASE("figures over seeds have their intervals and their units", "[report][page]") {
  Lab lab;
  for (const int seed : {1, 2, 3}) {
    MadeRun run = Lab::run("llama", 20);
    run.id += "-seed-" + std::to_string(seed);
    run.experiment.seed = seed;
    make_completed_run(lab.runs, run, {3.0 + 0.1 * seed, 4000, int64_t{1} << 30});
  }
  make_completed_run(lab.runs, Lab::run("canon_a", 20), {3.18, 3911, int64_t{2} << 30});
  const Page page = page_of(lab);
  const Table& table = page.tables[0];
  CHECK(table.origins[0].runs.size() == 3);
  CHECK(table.origins[0].name == "Llama 4M");
  for (size_t i = 0; i < table.sheet.columns.size(); ++i) {
    const std::string& title = table.sheet.columns[i].title;
    const Meaning& meaning = table.meanings[i];
    if (title == "Memory") CHECK(meaning.unit == Unit::bytes);
    if (title == "Tok/s") CHECK(meaning.is_cost);
    if (title != "Eval Loss") continue;
    CHECK(meaning.better == Better::lower);
    REQUIRE(meaning.intervals.at(0));
    CHECK(meaning.intervals[0]->contains(3.2));
    CHECK_FALSE(meaning.intervals[1]);  // one seed
  }
}

TEST_CASE("curves are by tokens and by wall time, evaluations too", "[report][page]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25});
  const Page page = page_of(lab);
  const Run& run = page.runs.at(0);
  REQUIRE(run.training.size() > 1);
  CHECK(run.recorded == run.training.size());
  CHECK(run.training.back().tokens == run.summary.tokens);
  CHECK(run.training.back().seconds == 0.25 * static_cast<double>(run.summary.step));
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.evaluations[0].loss == 3.25);
  CHECK(run.evaluations[0].tokens == run.summary.step * run.summary.tokens_per_step);
  CHECK(run.evaluations[0].seconds == run.training.back().seconds);
}

TEST_CASE("of a long run a thousand points stay", "[report][page]") {
  Lab lab;
  const run::RunFolder folder = make_stopped_run(lab.runs, Lab::run("llama", 20), 10);
  for (int64_t step = 11; step <= 3000; ++step)
    tests::append_event(folder, tests::metrics_at(step));
  const Page page = page_of(lab);
  CHECK(page.runs.at(0).recorded > 2900);
  CHECK(page.runs.at(0).training.size() <= 1000);
  CHECK(page.runs.at(0).training.back().tokens == 3000 * 1024);
}

TEST_CASE("a page of a project without runs has none", "[report][page]") {
  const tests::TemporaryFolder folder;
  const Page page = collect_page(
      "projects/canon", "canon", {build_ablation(tests::small_table(), {})}, folder / "runs");
  CHECK(page.runs.empty());
  CHECK(page.tables[0].origins[2].runs.empty());
}

}  // namespace
}  // namespace forge::report::page
