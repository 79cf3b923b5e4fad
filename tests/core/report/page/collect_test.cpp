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
  CHECK(page.tables[0].runs[0] == std::vector<std::string>{"llama-20"});
  CHECK(page.tables[0].sheet.title == "Canon positions");
  CHECK(page.tables[0].meanings.size() == page.tables[0].sheet.columns.size());
  CHECK_FALSE(page.tables[0].setup.empty());
  CHECK(page.commands.front() == "forge run --all --set profile=quick");
  CHECK(page.commands.back() == "forge report");
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
  CHECK(page.tables[0].runs == std::vector<std::vector<std::string>>(3));
}

}  // namespace
}  // namespace forge::report::page
