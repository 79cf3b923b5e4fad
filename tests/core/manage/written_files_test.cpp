#include "core/manage/written_files.h"

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/results/page/page.h"
#include "core/results/tables/run_metrics.h"
#include "core/results/tables/sheet.h"
#include "core/run/plan.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("what forge wrote is known by its text") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  const tables::Ablation table = lab.table();
  const auto is_own = [&](const std::string& text) {
    return manage::is_written_by_forge(lab.folder.write("file", text));
  };
  CHECK(is_own(tables::export_markdown("Results", {table})));
  CHECK(is_own(tables::latex_document_part({tables::to_latex(table)})));
  CHECK(is_own(tables::to_csv(table)));
  CHECK(is_own(json_text(tables::to_json(table), 2) + "\n"));
  CHECK(is_own("[" + json_text(tables::to_json(table), 2) + "]\n"));
  CHECK(is_own(tables::metrics_csv_header() + "llama-1,…\r\n"));
  CHECK(is_own("<!DOCTYPE html>\n<head>\n<meta name=\"generator\" content=\"forge\">\n"));
  CHECK(is_own(""));
  CHECK(manage::is_written_by_forge(tests_dir().parent_path() / "projects/canon/RESULTS.md"));
  run::write_plan(lab.folder / "plan.json", {});
  CHECK(manage::is_written_by_forge(lab.folder / "plan.json"));
}

TEST_CASE("what people wrote is not replaced") {
  const TemporaryFolder folder;
  for (const std::string text :
       {"# Notes\n\nWritten with `forge export-markdown`, then edited.\n",
        "# Results\n\n```\nforge export-markdown\n```\n\nMy conclusions.\n",
        "<!DOCTYPE html>\n<title>My page</title>\n",
        "{\"my\": \"plan\"}\n",
        "config,loss\nllama,3\n",
        "\n"}) {
    CAPTURE(text);
    const auto file = folder.write("mine", text);
    CHECK_FALSE(manage::is_written_by_forge(file));
    const std::string error = error_of([&] { manage::require_replaceable(file, "give --force"); });
    CHECK(contains(error, "was not written by forge: it is not replaced"));
    CHECK(contains(error, "give --force"));
  }
  CHECK_NOTHROW(manage::require_replaceable(folder / "none", ""));
  CHECK_NOTHROW(manage::require_replaceable(folder.path(), ""));
  CHECK_NOTHROW(manage::require_replaceable("/dev/null", ""));
}

}  // namespace
}  // namespace forge::tests
