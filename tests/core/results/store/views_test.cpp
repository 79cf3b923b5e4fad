#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/store/result_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using namespace tests;

/// Runs of a small sweep with scores, one of them failed.
struct Swept {
  TemporaryFolder folder;
  SQLite::Database database{open(folder.path())};

  static SQLite::Database open(const std::filesystem::path& folder) {
    const std::filesystem::path runs = folder / "runs", file = runs / "forge.sqlite";
    for (const double lr : {1e-3, 3e-3}) {
      for (const uint64_t seed : {1, 2}) {
        MadeRun run;
        run.id = "llama-" + std::to_string(seed) + (lr < 2e-3 ? "a" : "b");
        run.experiment.optimizer.lr = lr;
        run.experiment.seed = seed;
        make_completed_run(runs, run, {3.25, 4300, 1 << 20, {{"answer_accuracy", {0.5, 40}}}});
      }
    }
    MadeRun failed;
    failed.config = "broken";
    failed.id = "broken-1";
    make_failed_run(runs, failed, 10, {});
    ResultStore(file).sync(runs);
    return SQLite::Database(file.string(), SQLite::OPEN_READONLY);
  }

  size_t rows(const std::string& query) const {
    SQLite::Statement select(database, query);
    size_t count = 0;
    while (select.executeStep()) ++count;
    return count;
  }
};

std::string page() { return read_file(tests_dir().parent_path() / "docs" / "STORE.md"); }

TEST_CASE("every query of the store's page has an answer", "[store]") {
  const Swept swept;
  const std::string text = page(), fence = "```sql\n";
  size_t queries = 0;
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    const std::string query = text.substr(at, text.find("```", at) - at);
    INFO(query);
    CHECK(swept.rows(query) > 0);
    ++queries;
  }
  CHECK(queries == 10);
}

TEST_CASE("the store has every column that its page promises", "[store]") {
  const Swept swept;
  size_t tables = 0;
  for (const std::string& line : split(page(), '\n')) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 5 || cells[1].rfind(" `", 0) != 0) continue;
    // What stands in brackets explains a column.
    std::string columns;
    int depth = 0;
    for (const char c : cells[3]) {
      depth += c == '(';
      if (depth == 0) columns += c;
      depth -= c == ')';
    }
    std::vector<std::string> names = split(columns, '`');
    for (size_t i = 1; i < names.size(); i += 2) {
      INFO(cells[1] << names[i]);
      CHECK_NOTHROW(swept.rows("SELECT " + names[i] + " FROM " + split(cells[1], '`')[1]));
    }
    CHECK(names.size() >= 5);
    ++tables;
  }
  CHECK(tables == 7);
  CHECK(swept.rows("SELECT 1 FROM store_version WHERE version = 1") == 1);
}

TEST_CASE("a sweep's view has what its runs differ in, but the seed", "[store]") {
  const Swept swept;
  CHECK(swept.rows("SELECT * FROM sweeps") == 4);
  CHECK(swept.rows("SELECT * FROM sweeps WHERE key = 'optimizer.lr' AND value = 0.003") == 2);
}

}  // namespace
}  // namespace forge::store
