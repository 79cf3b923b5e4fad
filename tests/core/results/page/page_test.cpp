#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/results/page/page.h"
#include "core/results/store/result_store.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"
#include "tests/support/page_maker.h"
#include "tests/support/support.h"

namespace forge::page {
namespace {

using nlohmann::json;

json config(const std::string& set, int seed) {
  return {{"model", {{"canon", {{"set", set}}}, {"hidden_size", 256}}},
          {"train", {{"max_steps", 300}, {"log_every", 10}}},
          {"name", "Model " + set},
          {"description", "with " + set},
          {"seed", seed}};
}

TEST_CASE("runs of one config with several seeds have one config", "[report][page]") {
  const Configs configs = compare_configs({config("A", 1), config("A", 2), config("B", 1)});
  CHECK(configs.of_run == std::vector<size_t>{0, 0, 1});
  REQUIRE(configs.changes.size() == 2);
  CHECK(configs.common.at("model.canon.set") == "A");
  CHECK(configs.common.at("model.hidden_size") == "256");
  CHECK(configs.common.count("seed") == 0);
  CHECK(configs.common.count("name") == 0);
  CHECK(configs.changes[0].empty());
  CHECK(configs.changes[1] == FlatConfig{{"model.canon.set", "B"}});
}

TEST_CASE("most configs say what is common, others what they lack", "[report][page]") {
  json with_more = config("A", 1);
  with_more["train"]["z_loss"] = 0.5;
  const Configs configs =
      compare_configs({with_more, config("B", 1), config("B", 2), config("C", 1)});
  CHECK(configs.common.at("train.z_loss") == "0.5");
  CHECK(configs.lacks[0].empty());
  CHECK(configs.lacks[1] == std::vector<std::string>{"train.z_loss"});
  const nlohmann::ordered_json written = to_json(configs);
  CHECK(written["changes"][2]["model.canon.set"] == "C");
  CHECK(written["changes"][2]["train.z_loss"].is_null());
}

TEST_CASE("keys that change no metric are named", "[report][page]") {
  json other = config("A", 1);
  other["train"]["log_every"] = 20;
  const Configs configs = compare_configs({config("A", 1), other});
  CHECK(configs.changes.size() == 2);
  CHECK(configs.harmless == std::vector<std::string>{"train.log_every"});
}

TEST_CASE("a run whose config is not known has an empty one", "[report][page]") {
  const Configs configs = compare_configs({json(), config("A", 1)});
  CHECK(configs.of_run == std::vector<size_t>{0, 1});
  CHECK(configs.lacks[0].size() == configs.common.size());
  CHECK(compare_configs({}).changes.empty());
}

using tests::Lab;
using tests::MadeRun;

Page page_of(const Lab& lab) {
  store::ResultStore(store::store_path(lab.runs)).sync(lab.runs);
  return collect_page("projects/canon", "", "canon", {lab.table()}, lab.runs);
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
  CHECK(page.tables[0].row_sources[0].runs == std::vector<std::string>{"llama-20"});
  CHECK(page.tables[0].sheet.title == "Canon positions");
  CHECK(page.tables[0].columns.size() == page.tables[0].sheet.columns.size());
  CHECK_FALSE(page.tables[0].setup.empty());
  CHECK(page.commands.front() == "forge run llama");
  CHECK(page.commands.back() == "forge report");
}

TEST_CASE("a page names what a sweep varied", "[report][page]") {
  Lab lab;
  for (int day = 10; day < 13; ++day) {
    MadeRun run = Lab::run("llama", day);
    run.experiment.optimizer.lr = 1e-3 * day;
    make_completed_run(lab.runs, run);
  }
  const Page page = page_of(lab);
  CHECK(page.varied == std::vector<std::string>{"optimizer.lr"});
  CHECK(to_json(page)["varied"] == std::vector<std::string>{"optimizer.lr"});
}

TEST_CASE("metrics over seeds have their intervals and their units", "[report][page]") {
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
  CHECK(table.row_sources[0].runs.size() == 3);
  CHECK(table.row_sources[0].name == "Llama 4M");
  for (size_t i = 0; i < table.sheet.columns.size(); ++i) {
    const std::string& title = table.sheet.columns[i].title;
    const ColumnInfo& info = table.columns[i];
    if (title == "Memory") CHECK(info.unit == results::Unit::bytes);
    if (title == "Tok/s") CHECK(info.is_cost);
    if (title != "Eval Loss") continue;
    CHECK(info.better == results::Direction::lower_is_better);
    REQUIRE(info.intervals.at(0));
    CHECK(info.intervals[0]->contains(3.2));
    CHECK_FALSE(info.intervals[1]);  // one seed
  }
}

TEST_CASE("times of a busy machine rank no row", "[report][page]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  tests::Outcome busy;
  busy.busy_elsewhere = 0.21;
  make_completed_run(lab.runs, Lab::run("canon_a", 20), busy);
  const Page page = page_of(lab);
  const Table& table = page.tables[0];
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& title = table.sheet.columns[i].title;
    const std::vector<std::string>& doubts = table.columns[i].doubts;
    CAPTURE(title);
    if (title == "Tok/s") {
      REQUIRE(doubts.size() == table.sheet.rows.size());
      CHECK(doubts[0].empty());
      CHECK(tests::contains(doubts[1], "timing unreliable: other processes kept 21.0 %"));
    }
    if (title == "Eval Loss" || title == "Memory") CHECK(doubts.empty());
  }
}

TEST_CASE("curves are by tokens and by wall time, evaluations too", "[report][page]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25});
  const Page page = page_of(lab);
  const Run& run = page.runs.at(0);
  REQUIRE(run.training.size() > 1);
  CHECK(run.total_points == run.training.size());
  CHECK(run.training.back().tokens == run.summary.tokens);
  CHECK(run.training.back().elapsed_seconds == 0.25 * static_cast<double>(run.summary.step));
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.evaluations[0].loss == 3.25);
  CHECK(run.evaluations[0].tokens == run.summary.step * run.summary.tokens_per_step);
  CHECK(run.evaluations[0].elapsed_seconds == run.training.back().elapsed_seconds);
}

TEST_CASE("of a long run a thousand points stay", "[report][page]") {
  Lab lab;
  const run::RunFolder folder = make_stopped_run(lab.runs, Lab::run("llama", 20), 10);
  for (int64_t step = 11; step <= 3000; ++step)
    tests::append_event(folder, tests::metrics_at(step));
  const Page page = page_of(lab);
  CHECK(page.runs.at(0).total_points > 2900);
  CHECK(page.runs.at(0).training.size() <= 1000);
  CHECK(page.runs.at(0).training.back().tokens == 3000 * 1024);
}

TEST_CASE("gathering a page tells how many runs are read", "[report][page]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"})
    make_completed_run(lab.runs, Lab::run(config, 20), {3.25, 4312, int64_t{3} << 29});
  store::ResultStore(store::store_path(lab.runs)).sync(lab.runs);
  std::vector<size_t> told;
  collect_page(
      "projects/canon", "", "canon", {lab.table()}, lab.runs, [&](size_t done, size_t all) {
        told.push_back(10 * done + all);
      });
  CHECK(told == std::vector<size_t>{12, 22});
}

TEST_CASE("a page of a project without runs has none", "[report][page]") {
  const tests::TemporaryFolder folder;
  const Page page = collect_page(
      "projects/canon", "", "canon", {build_ablation(tests::small_table(), {})}, folder / "runs");
  CHECK(page.runs.empty());
  CHECK(page.tables[0].row_sources[2].runs.empty());
}

using tests::contains;
using tests::make_page;

/// Assets that show where each part goes, also in a build without uPlot.
Assets small_assets() {
  return {
      "<title>{{title}}</title><style>{{style}}</style><pre>{{licence}}</pre>"
      "<script type=\"application/json\">{{data}}</script>"
      "<script>{{plot_script}}</script><script>{{script}}</script>",
      "own style",
      "own script",
      "plot script",
      "plot style",
      "MIT"};
}

/// The JSON of a page that was written with small_assets.
nlohmann::json data_of(const std::string& html) {
  const std::string opening = "<script type=\"application/json\">";
  const size_t begin = html.find(opening) + opening.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

TEST_CASE("a page has its parts in their places", "[report][page]") {
  const std::string html = to_html(make_page(3, 10), small_assets());
  CHECK(contains(html, "<title>canon layers</title><style>plot style\nown style</style>"));
  CHECK(contains(html, "<pre>MIT</pre>"));
  CHECK(contains(html, "<script>plot script</script><script>own script</script>"));
  const nlohmann::json data = data_of(html);
  CHECK(data["runs"].size() == 3);
  CHECK(data["runs"][2]["seed"] == 3);
  CHECK(data["runs"][0]["train"]["count"] == 10);
  const nlohmann::json& table = data["tables"][0];
  CHECK(table["origins"][0]["runs"] == nlohmann::json{0, 1, 2});
  CHECK(table["columns"][1]["better"] == "lower");
  CHECK(table["columns"][2]["cost"] == true);
  CHECK(table["columns"][1]["intervals"] == nlohmann::json{{1.5, 2.5}});
  CHECK(table["columns"][2]["intervals"] == nlohmann::json{nullptr});
  CHECK(table["columns"][2]["doubts"] == nlohmann::json{""});
  CHECK(table["rows"][0][0] == "canon Model 0");
  CHECK(table["rows"][0][1]["bold"] == true);
  CHECK(table["rows"][0][1]["value"] == make_page(3, 10).runs[0].summary.metric("eval_loss"));
}

TEST_CASE("a page names the files that were changed while a run trained", "[report][page]") {
  Page page = make_page(2, 10);
  page.runs[1].summary.changed_inputs = "train.tokens";
  const nlohmann::json data = data_of(to_html(page, small_assets()));
  CHECK(data["runs"][0]["warning"] == "");
  CHECK(data["runs"][1]["warning"] ==
        "files that it reads were changed while it trained: train.tokens");
}

TEST_CASE("what users name cannot leave its place in the file", "[report][page]") {
  const std::string name = "</script><script>alert(1)</script><!-- & \"'\xff\u202e\u2067";
  const std::string html = to_html(make_page(3, 10, name), small_assets());
  CHECK_FALSE(contains(html, "<script>alert"));
  CHECK_FALSE(contains(html, "<!--"));
  CHECK(contains(html, "<title>&lt;/script&gt;"));
  // Still there, letter by letter, but for the byte that is no UTF-8.
  CHECK(data_of(html)["title"] ==
        "</script><script>alert(1)</script><!-- & \"'\xef\xbf\xbd layers");
}

TEST_CASE("names that look like parts of the template are left alone", "[report][page]") {
  const std::string html = to_html(make_page(3, 10, "{{script}}"), small_assets());
  CHECK(contains(html, "<title>{{script}} layers</title>"));
}

TEST_CASE("the same page gives the same bytes", "[report][page]") {
  CHECK(to_html(make_page(9, 100), small_assets()) == to_html(make_page(9, 100), small_assets()));
}

TEST_CASE("a hundred runs of a thousand points fit into 1.5 MB with all that draws them",
          "[report][page]") {
  Assets assets = embedded_assets();
  const std::string plot_script(52000, 'x');  // in a build without uPlot
  if (assets.plot_script.empty()) assets.plot_script = plot_script;
  const std::string html = to_html(make_page(100, 1000), assets);
  CHECK(html.size() < 1500000);
  CHECK(html.size() > 300000);
}

TEST_CASE("the worst curves fit as well", "[report][page]") {
  Page page = make_page(100, 1000);
  std::mt19937 random(7);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (Run& run : page.runs) {
    double seconds = 0;
    for (store::LossPoint& point : run.training) {
      point.tokens += static_cast<int64_t>(random() % 16384);
      point.elapsed_seconds = seconds += 100 * uniform();
      point.loss = std::pow(10, 10 * uniform() - 9);  // over ten decades
    }
  }
  CHECK(to_html(page, small_assets()).size() + 130000 < 1500000);
}

TEST_CASE("a build without uPlot says how to add it", "[report][page]") {
  Assets assets = small_assets();
  assets.plot_script = "";
  const std::string text = tests::error_of([&] { to_html(make_page(1, 1), assets); });
  CHECK(contains(text, "built without uPlot"));
  CHECK(contains(text, "scripts/setup"));
}

TEST_CASE("the program has a template whose parts are all known", "[report][page]") {
  Assets assets = embedded_assets();
  if (assets.plot_script.empty()) assets.plot_script = "var uPlot";
  const std::string html = to_html(make_page(1, 10), assets);
  CHECK(contains(html, "<!DOCTYPE html>"));
  CHECK(contains(html, "default-src 'none'"));
  CHECK(contains(html, "function sortableTable"));
  CHECK_FALSE(contains(html, "{{"));
}

TEST_CASE("the page's own script asks nothing of a network and parses no HTML", "[report][page]") {
  const Assets assets = embedded_assets();
  for (const char* word : {"innerHTML",
                           "outerHTML",
                           "insertAdjacentHTML",
                           "document.write",
                           "eval(",
                           "fetch(",
                           "XMLHttpRequest",
                           "import(",
                           "new Function"}) {
    CAPTURE(word);
    CHECK_FALSE(contains(std::string(assets.script), word));
  }
  CHECK_FALSE(contains(std::string(assets.page), "src="));
  CHECK_FALSE(contains(std::string(assets.style), "url("));
}

}  // namespace
}  // namespace forge::page
