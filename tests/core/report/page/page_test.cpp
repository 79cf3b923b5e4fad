#include "core/report/page/page.h"

#include <cmath>
#include <random>

#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/page_maker.h"
#include "tests/support/support.h"

namespace forge::report::page {
namespace {

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
  CHECK(table["rows"][0][0] == "canon Model 0");
  CHECK(table["rows"][0][1]["bold"] == true);
  CHECK(table["rows"][0][1]["value"] == *make_page(3, 10).runs[0].summary.eval_loss);
}

TEST_CASE("what users name cannot leave its place in the file", "[report][page]") {
  const std::string name = "</script><script>alert(1)</script><!-- & \"'\xff";
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
    for (CurvePoint& point : run.training) {
      point.tokens += static_cast<int64_t>(random() % 16384);
      point.seconds = seconds += 100 * uniform();
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
}  // namespace forge::report::page
