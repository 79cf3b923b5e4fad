#include "core/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/base/fs.h"
#include "core/store/result_store.h"
#include "core/store/rows.h"
#include "tests/core/store/store_dump.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using namespace tests;

SQLite::Database open_raw(const std::filesystem::path& path) {
  return SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
}

TEST_CASE("the run summary has exactly the columns of the table", "[store]") {
  TemporaryFolder folder;
  ResultStore(folder / "forge.sqlite");
  SQLite::Database database = open_raw(folder / "forge.sqlite");
  SQLite::Statement statement(database, "SELECT name FROM pragma_table_info('runs')");
  std::vector<std::string> names;
  while (statement.executeStep()) names.push_back(statement.getColumn(0).getString());
  REQUIRE(names == run_column_names());
}

TEST_CASE("a store is written ahead and every table is strict", "[store]") {
  TemporaryFolder folder;
  const ResultStore store(folder / "forge.sqlite");
  SQLite::Database database = open_raw(folder / "forge.sqlite");
  REQUIRE(database.execAndGet("PRAGMA journal_mode").getString() == "wal");
  REQUIRE(database.execAndGet("PRAGMA user_version").getInt() == schema_version());
  REQUIRE(database
              .execAndGet("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                          "type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'")
              .getInt() == 0);
}

TEST_CASE("a store newer than the program is refused and left alone", "[store]") {
  TemporaryFolder folder;
  ResultStore(folder / "forge.sqlite");
  open_raw(folder / "forge.sqlite").exec("PRAGMA user_version = 99");
  const std::string error = error_of([&] { ResultStore(folder / "forge.sqlite"); });
  REQUIRE(contains(error, "forge.sqlite' has schema version 99"));
  REQUIRE(contains(error, "reads versions up to " + std::to_string(schema_version())));
  REQUIRE(contains(error, "forge store reindex"));
  REQUIRE(open_raw(folder / "forge.sqlite").execAndGet("PRAGMA user_version").getInt() == 99);
}

TEST_CASE("an older store is brought forward step by step", "[store]") {
  TemporaryFolder folder;
  SQLite::Database database = open_raw(folder / "old.sqlite");
  const std::vector<std::string> first = {"CREATE TABLE a (x INTEGER) STRICT"};
  bring_up_to_date(database, first);
  database.exec("INSERT INTO a VALUES (7)");
  std::vector<std::string> later = first;
  later.push_back("ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 1");
  later.push_back("UPDATE a SET y = x + 1");
  bring_up_to_date(database, later);
  REQUIRE(database.execAndGet("SELECT y FROM a").getInt() == 8);
  REQUIRE(database.execAndGet("PRAGMA user_version").getInt() == 3);
  bring_up_to_date(database, later);
  REQUIRE(database.execAndGet("SELECT y FROM a").getInt() == 8);
}

namespace {

void drop_columns_since_version_5(SQLite::Database& database) {
  for (const char* column :
       {"micro_batch_size", "selection_loss", "busy_elsewhere", "shared_device"})
    database.exec(std::string("ALTER TABLE runs DROP COLUMN ") + column);
}

}  // namespace

TEST_CASE("a store of version 1 keeps what it holds and learns of what came later", "[store]") {
  TemporaryFolder folder;
  const auto runs = folder / "runs";
  MadeRun made;
  made.id = "old";
  const run::RunFolder run = make_failed_run(runs, made, 20, "no");
  append_event(run, protocol::Evaluation{20, 3.5, 8192, 1});
  {  // as a program left it that knew version 1 alone
    ResultStore(folder / "forge.sqlite").sync(runs);
    SQLite::Database database = open_raw(folder / "forge.sqlite");
    database.exec("DROP TABLE scores");
    database.exec("DROP TABLE benchmarks");
    database.exec("DROP INDEX runs_by_created");
    drop_columns_since_version_5(database);
    for (const char* column : {"archived", "note", "tags"})
      database.exec(std::string("ALTER TABLE runs DROP COLUMN ") + column);
    for (const char* column : {"remarks_size", "remarks_modified_ns", "remarks_inode"})
      database.exec(std::string("ALTER TABLE sources DROP COLUMN ") + column);
    database.exec("PRAGMA user_version = 1");
  }
  ResultStore store(folder / "forge.sqlite");
  REQUIRE(open_raw(folder / "forge.sqlite").execAndGet("PRAGMA user_version").getInt() ==
          schema_version());
  REQUIRE(store.evaluations("old").size() == 1);
  REQUIRE(store.evaluations("old")[0].loss == 3.5);
  REQUIRE(store.run("old")->scores.empty());

  append_event(run, protocol::Evaluation{30, 3.25, 8192, 1, {{"token_accuracy", {0.5, 64}}}});
  REQUIRE(store.sync(runs).updated == 1);
  REQUIRE(store.run("old")->scores.at("token_accuracy").value == 0.5);
  REQUIRE(dump_store(folder / "forge.sqlite") == [&] {
    reindex(folder / "new.sqlite", runs);
    return dump_store(folder / "new.sqlite");
  }());
}

TEST_CASE("a store of version 5 learns how many rows a run computes at once", "[store]") {
  TemporaryFolder folder;
  const auto runs = folder / "runs";
  MadeRun made;
  made.id = "old";
  const run::RunFolder run = make_failed_run(runs, made, 20, "no");
  {  // as a program left it that knew version 5
    ResultStore(folder / "forge.sqlite").sync(runs);
    SQLite::Database database = open_raw(folder / "forge.sqlite");
    drop_columns_since_version_5(database);
    database.exec("PRAGMA user_version = 5");
  }
  ResultStore store(folder / "forge.sqlite");
  REQUIRE(open_raw(folder / "forge.sqlite").execAndGet("PRAGMA user_version").getInt() ==
          schema_version());
  REQUIRE(store.run("old")->failure_reason == "no");
  REQUIRE_FALSE(store.run("old")->micro_batch_size);

  append_event(run, protocol::MicroBatch{20, "train", 2, 8, "no memory"});
  REQUIRE(store.sync(runs).updated == 1);
  REQUIRE(store.run("old")->micro_batch_size == 2);
  REQUIRE(dump_store(folder / "forge.sqlite") == [&] {
    reindex(folder / "new.sqlite", runs);
    return dump_store(folder / "new.sqlite");
  }());
}

TEST_CASE("a migration that fails leaves the store as it was", "[store]") {
  TemporaryFolder folder;
  SQLite::Database database = open_raw(folder / "old.sqlite");
  const std::vector<std::string> first = {"CREATE TABLE a (x INTEGER) STRICT"};
  bring_up_to_date(database, first);
  std::vector<std::string> broken = first;
  broken.push_back("CREATE TABLE b (x INTEGER) STRICT");
  broken.push_back("this is no SQL");
  REQUIRE_THROWS(bring_up_to_date(database, broken));
  REQUIRE(database.execAndGet("PRAGMA user_version").getInt() == 1);
  REQUIRE_FALSE(database.tableExists("b"));
}

TEST_CASE("another program's database is refused and not changed", "[store]") {
  TemporaryFolder folder;
  open_raw(folder / "forge.sqlite").exec("CREATE TABLE theirs (x)");
  const std::string before = read_file(folder / "forge.sqlite");
  const std::string error = error_of([&] { ResultStore(folder / "forge.sqlite"); });
  REQUIRE(contains(error, "no results store"));
  REQUIRE(read_file(folder / "forge.sqlite") == before);
}

TEST_CASE("a file that is no database is refused with the way out", "[store]") {
  TemporaryFolder folder;
  folder.write("forge.sqlite", std::string(5000, 'x'));
  const std::string error = error_of([&] { ResultStore(folder / "forge.sqlite"); });
  REQUIRE(contains(error, "forge.sqlite'"));
  REQUIRE(contains(error, "forge store reindex"));
}

}  // namespace
}  // namespace forge::store
