#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/store/database.h"
#include "core/results/store/result_store.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

TEST_CASE("file systems of other machines are told from local ones", "[store]") {
  for (const int64_t remote : {0x6969, 0x65735546, 0x0BD00BD0, 0x01021997}) {
    REQUIRE(is_remote_file_system(remote));
  }
  REQUIRE(is_remote_file_system(int64_t{0xFF534D42}));
  REQUIRE(is_remote_file_system(static_cast<int32_t>(0xFF534D42)));  // sign extended
  for (const int64_t local : {0xEF53 /* ext4 */,
                              0x01021994 /* tmpfs */,
                              0x58465342 /* XFS */,
                              0x794C7630 /* overlayfs */}) {
    REQUIRE_FALSE(is_remote_file_system(local));
  }
}

TEST_CASE("a store is neither made nor changed behind a link", "[store][hostile]") {
  const tests::TemporaryFolder elsewhere;
  open_database(elsewhere / "theirs.sqlite");
  const std::string before = read_file(elsewhere / "theirs.sqlite");
  for (const fs::path& target : {elsewhere / "new", elsewhere / "theirs.sqlite"}) {
    for (const char* suffix : {"", ".lock"}) {
      const tests::TemporaryFolder folder;
      const fs::path path = folder / "forge.sqlite";
      fs::create_symlink(target, path.string() + suffix);
      CHECK(tests::contains(tests::error_of([&] { open_database(path); }), "is a symbolic link"));
    }
  }
  for (const char* suffix : {"", ".lock", "-wal", "-shm", "-journal"}) {
    const tests::TemporaryFolder folder;
    const fs::path path = folder / "forge.sqlite";
    fs::create_hard_link(elsewhere / "theirs.sqlite", path.string() + suffix);
    CHECK(tests::contains(tests::error_of([&] { open_database(path); }), "a hard link"));
  }
  REQUIRE_FALSE(fs::exists(elsewhere / "new"));
  REQUIRE(read_file(elsewhere / "theirs.sqlite") == before);
}

/// A rollback journal beside a database that names another file, a "super-journal", at its end:
/// SQLite rolls back what the first one says and then removes the other. The format is that of
/// section 3 of sqlite.org/fileformat.html.
void write_journal(const fs::path& database, const fs::path& named) {
  const auto number = [](size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
  };
  const std::string content = read_file(database), name = named.string();
  const size_t page = static_cast<unsigned char>(content.at(16)) * size_t{256} +
                      static_cast<unsigned char>(content.at(17));
  const std::string magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  std::string journal =
      magic + number(0) + number(0) + number(content.size() / page) + number(512) + number(page);
  journal.resize(512);
  size_t sum = 0;
  for (const char byte : name) sum += static_cast<unsigned char>(byte);
  journal += number(0x40000000 / page + 1) + name + number(name.size()) + number(sum) + magic;
  write_file_atomic(database.string() + "-journal", journal);
}

TEST_CASE("a journal that came with a store makes forge remove no file", "[store][hostile]") {
  const tests::TemporaryFolder runs, home;
  const fs::path path = runs / "forge.sqlite", key = home.write("key", "private");
  tests::make_completed_run(runs.path(), {});
  open_database(path);
  const std::string before = read_file(path);
  write_journal(path, key);
  const std::string error = tests::error_of([&] { open_database(path); });
  CHECK(path_exists(key));
  CHECK(tests::contains(error, "forge.sqlite-journal' is no file of forge's"));
  CHECK(tests::contains(error, "'forge store reindex' builds it anew"));
  CHECK(read_file(path) == before);
  reindex(path, runs.path());
  CHECK(ResultStore(path).runs().size() == 1);
  CHECK(path_exists(key));
}

TEST_CASE("what opens stores opens no file that a journal names", "[store][hostile]") {
  const tests::TemporaryFolder folder, home;
  const fs::path path = folder / "forge.sqlite", key = home.write("key", "private");
  open_database(path);
  for (const char* files : {guarded_files(), ""}) {
    // As one that comes beside the store after it was looked for.
    write_journal(path, key);
    tests::error_of([&] {
      with_store_errors(path, [&] {
        SQLite::Database database(path.string(), SQLite::OPEN_READWRITE, 0, std::string(files));
        database.execAndGet("SELECT count(*) FROM runs");
      });
    });
    const bool is_guarded = *files != '\0';
    CHECK(path_exists(key) == is_guarded);  // SQLite's own way removes it
  }
}

TEST_CASE("a new store never has a journal beside it", "[store][hostile]") {
  const tests::TemporaryFolder folder;
  folder.write(".tmp-forge.sqlite-4711/forge.sqlite-journal", "of a forge that was killed here");
  const FileDescriptor changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  REQUIRE(::inotify_add_watch(changes.get(), folder.path().c_str(), IN_CREATE | IN_MOVED_TO) > 0);
  ResultStore(folder / "forge.sqlite");
  alignas(inotify_event) char bytes[16 << 10];
  const ssize_t size = ::read(changes.get(), bytes, sizeof bytes);
  REQUIRE(size > 0);
  std::vector<std::string> names;
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(bytes + at);
    names.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  INFO(join(names, " "));
  CHECK(std::count(names.begin(), names.end(), "forge.sqlite") == 1);
  CHECK(std::count(names.begin(), names.end(), "forge.sqlite-journal") == 0);
  CHECK_FALSE(path_exists(folder / ".tmp-forge.sqlite-4711"));
}

TEST_CASE("runs in a folder that cannot be written are listed", "[store]") {
  const tests::TemporaryFolder folder, elsewhere;
  const fs::path runs = folder / "runs";
  tests::make_completed_run(runs, {});
  fs::permissions(elsewhere.path(), fs::perms::all);
  for (const fs::path& path : {folder.path(), runs}) fs::permissions(path, fs::perms(0555));
  // Where the cache cannot be written either, a folder for temporary files takes its place.
  for (const fs::path& cache : {elsewhere / "cache", folder / "cache"}) {
    CHECK(tests::as_other_user([&] {
            ::setenv("FORGE_CACHE_DIR", cache.c_str(), 1);
            ::setenv("TMPDIR", elsewhere.path().c_str(), 1);
            const fs::path path = store_path(runs);
            ResultStore(path).sync(runs);
            const bool is_listed = ResultStore(path).runs().size() == 1;
            if (!is_listed || !starts_with(path.string(), elsewhere.path().string()))
              throw Error("it is not listed in " + path.string());
          }) == 0);
  }
  for (const fs::path& path : {folder.path(), runs}) fs::permissions(path, fs::perms::owner_all);
}

TEST_CASE("the store lies in the runs folder or under a name of its own in the cache", "[store]") {
  tests::TemporaryFolder folder;
  const auto path = store_path(folder / "runs");
  const bool expected =
      path == folder / "runs" / "forge.sqlite" || path == cached_store_path(folder / "runs");
  REQUIRE(expected);
  REQUIRE(cached_store_path(folder / "a") != cached_store_path(folder / "b"));
  REQUIRE(cached_store_path(folder / "a") == cached_store_path(folder / "b" / ".." / "a"));
  REQUIRE(cached_store_path(folder / "a").extension() == ".sqlite");
}

TEST_CASE("a store that was deleted while another process reads it is built anew", "[store]") {
  const tests::TemporaryFolder runs;
  const fs::path path = store_path(runs.path());
  tests::make_completed_run(runs.path(), {});
  ResultStore before(path);
  before.sync(runs.path());
  REQUIRE(fs::exists(path.string() + "-wal"));
  fs::remove(path);
  ResultStore after(path);
  REQUIRE(after.runs().empty());
  after.sync(runs.path());
  before.sync(runs.path());
  REQUIRE(after.runs().size() == 1);
  REQUIRE(ResultStore(path).runs().size() == 1);
}

TEST_CASE("a store that has no room is kept elsewhere until there is none either", "[store]") {
  const tests::TemporaryFolder folder;
  const fs::path runs = folder / "runs", other = folder / "other";
  tests::make_completed_run(runs, {});
  const fs::path before = store_path(runs);
  REQUIRE(use_other_store(runs));
  const fs::path elsewhere = store_path(runs);
  REQUIRE(elsewhere != before);
  REQUIRE(elsewhere.parent_path().filename() == "stores");
  ResultStore(elsewhere).sync(runs);
  REQUIRE(ResultStore(store_path(runs)).runs().size() == 1);
  REQUIRE_FALSE((use_other_store(runs) && use_other_store(runs)));
  ResultStore(store_path(runs)).sync(runs);
  for (const fs::path& path : {elsewhere, store_path(runs)}) {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) fs::remove(path.string() + suffix);
  }
  REQUIRE(store_path(other) == other / "forge.sqlite");
}

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
  REQUIRE(names == column_names());
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

TEST_CASE("a store of another version is rebuilt from the run folders", "[store]") {
  TemporaryFolder folder;
  const auto runs = folder / "runs";
  MadeRun made;
  made.id = "old";
  const run::RunFolder run = make_failed_run(runs, made, 20, "no");
  append_event(run, worker::Evaluation{20, 3.5, 8192, 1, {{"token_accuracy", {0.5, 64}}}});
  benchmark::Record measured = made_record("train_a", 20, 1000);
  benchmark::write_record(runs, measured);
  ResultStore(folder / "forge.sqlite").sync(runs);
  const std::string before = dump_store(folder / "forge.sqlite");
  for (const int version : {1, schema_version() - 1, schema_version() + 1}) {
    {  // as another program left it
      SQLite::Database database = open_raw(folder / "forge.sqlite");
      database.exec("DROP TABLE scores");
      database.exec("ALTER TABLE runs DROP COLUMN note");
      database.exec("CREATE TABLE theirs (run_id TEXT) STRICT");
      database.exec("PRAGMA user_version = " + std::to_string(version));
    }
    ResultStore store(folder / "forge.sqlite");
    REQUIRE(store.runs().empty());
    const SyncReport report = store.sync(runs);
    REQUIRE(report.added == 1);
    REQUIRE(report.benchmarks == 1);
    REQUIRE(dump_store(folder / "forge.sqlite") == before);
    SQLite::Database database = open_raw(folder / "forge.sqlite");
    REQUIRE(database.execAndGet("PRAGMA user_version").getInt() == schema_version());
    REQUIRE_FALSE(database.tableExists("theirs"));
  }
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

using namespace tests;

MadeRun numbered(int number) {
  MadeRun run;
  run.id = "run-" + std::to_string(number);
  return run;
}

/// Makes `batches` runs, each taken up by a store of its own while the others do the same.
void write_batches(const std::filesystem::path& runs,
                   const std::filesystem::path& database,
                   int first,
                   int batches) {
  ResultStore store(database);
  for (int batch = 0; batch < batches; ++batch) {
    const run::RunFolder folder = make_queued_run(runs, numbered(first + batch));
    for (int64_t step = 10; step <= 50; step += 10) {
      append_event(folder, metrics_at(step));
      if (step % 20 == 0) store.sync(runs);
    }
  }
  store.sync(runs);
}

TEST_CASE("many threads that write at once lose nothing", "[store]") {
  TemporaryFolder folder;
  make_directories(folder / "runs");
  constexpr int threads = 32;
  constexpr int batches = 2;
  std::vector<std::thread> writers;
  std::vector<std::string> errors(threads);
  for (int i = 0; i < threads; ++i) {
    writers.emplace_back([&, i] {
      errors[static_cast<size_t>(i)] = error_of(
          [&] { write_batches(folder / "runs", folder / "forge.sqlite", i * batches, batches); });
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const std::string& error : errors) REQUIRE(error.empty());

  REQUIRE(count_rows(folder / "forge.sqlite", "runs") == threads * batches);
  REQUIRE(count_rows(folder / "forge.sqlite", "train_metrics") == threads * batches * 5);
  const std::string grown = dump_store(folder / "forge.sqlite");
  reindex(folder / "forge.sqlite", folder / "runs");
  REQUIRE(dump_store(folder / "forge.sqlite") == grown);
}

/// Runs `action` in a process of its own; the wait status.
int in_child(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string error = error_of(action);
    ::_exit(error.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("two processes that write at once lose nothing", "[store]") {
  TemporaryFolder folder;
  make_directories(folder / "runs");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string error =
        error_of([&] { write_batches(folder / "runs", folder / "forge.sqlite", 100, 10); });
    ::_exit(error.empty() ? 0 : 1);
  }
  write_batches(folder / "runs", folder / "forge.sqlite", 200, 10);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(status == 0);
  REQUIRE(count_rows(folder / "forge.sqlite", "runs") == 20);
  REQUIRE(count_rows(folder / "forge.sqlite", "train_metrics") == 100);
}

TEST_CASE("what a killed writer had not committed is rolled back", "[store]") {
  TemporaryFolder folder;
  make_completed_run(folder / "runs", numbered(1));
  { ResultStore(folder / "forge.sqlite").sync(folder / "runs"); }
  const std::string before = dump_store(folder / "forge.sqlite");
  const int status = in_child([&] {
    SQLite::Database database((folder / "forge.sqlite").string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA cache_size = 1");  // so that pages are spilled before the commit
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    database.exec("DELETE FROM train_metrics");
    database.exec(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) "
        "INSERT INTO evaluations SELECT 'run-1', 1000 + i, 1, NULL, 1, 1, NULL FROM n");
    ::raise(SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  REQUIRE(dump_store(folder / "forge.sqlite") == before);
  ResultStore store(folder / "forge.sqlite");
  make_completed_run(folder / "runs", numbered(2));
  REQUIRE(store.sync(folder / "runs").added == 1);
}

TEST_CASE("a store whose log is folded is whole in its one file", "[store]") {
  TemporaryFolder folder;
  make_completed_run(folder / "runs", numbered(1));
  ResultStore store(folder / "forge.sqlite");
  store.sync(folder / "runs");
  const auto copy = [&] {
    fs::remove_all(folder / "copy");
    fs::create_directory(folder / "copy");
    fs::copy_file(folder / "forge.sqlite", folder / "copy/forge.sqlite");
    return ResultStore(folder / "copy/forge.sqlite").runs().size();
  };
  REQUIRE(copy() == 0);
  {  // one who has begun to read holds the log back
    SQLite::Database reader = open_raw(folder / "forge.sqlite");
    SQLite::Statement reading(reader, "SELECT id FROM runs");
    REQUIRE(reading.executeStep());
    make_completed_run(folder / "runs", numbered(2));
    store.sync(folder / "runs");
    REQUIRE(contains(error_of([&] { store.fold_log(); }), "is in use"));
  }
  store.fold_log();
  REQUIRE(copy() == 2);
}

TEST_CASE("a store is read and written on while another process builds it anew", "[store]") {
  TemporaryFolder folder;
  make_completed_run(folder / "runs", numbered(1));
  ResultStore store(folder / "forge.sqlite");
  store.sync(folder / "runs");
  REQUIRE(in_child([&] { reindex(folder / "forge.sqlite", folder / "runs"); }) == 0);
  make_completed_run(folder / "runs", numbered(2));
  store.sync(folder / "runs");  // into the file that was replaced: it is an index only
  REQUIRE(store.runs().size() == 2);
  ResultStore fresh(folder / "forge.sqlite");
  fresh.sync(folder / "runs");
  REQUIRE(fresh.runs().size() == 2);
}

TEST_CASE("a store with another schema than forge's is refused with the way out",
          "[store][hostile]") {
  for (const char* change :
       {"ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS WITH RECURSIVE n(id) AS (SELECT 1 UNION "
        "ALL SELECT id FROM n) SELECT id FROM n",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "DROP TABLE runs"}) {
    TemporaryFolder folder;
    ResultStore(folder / "forge.sqlite");
    open_raw(folder / "forge.sqlite").exec(change);
    REQUIRE(contains(error_of([&] { ResultStore(folder / "forge.sqlite"); }), "another program"));
    reindex(folder / "forge.sqlite", folder / "runs");
    REQUIRE(ResultStore(folder / "forge.sqlite").runs().empty());
  }
}

TEST_CASE("tables of an older store are dropped by their names alone", "[store][hostile]") {
  TemporaryFolder folder;
  ResultStore(folder / "forge.sqlite");
  open_raw(folder / "forge.sqlite")
      .exec(
          "CREATE TABLE \"x; CREATE TABLE y(a)\" (a); CREATE VIEW v AS SELECT 1; "
          "PRAGMA user_version = 1");
  REQUIRE(ResultStore(folder / "forge.sqlite").runs().empty());
}

TEST_CASE("rows that do not belong together are a damaged store", "[store][hostile]") {
  TemporaryFolder folder;
  make_completed_run(folder / "runs", {});
  ResultStore store(folder / "forge.sqlite");
  store.sync(folder / "runs");
  open_raw(folder / "forge.sqlite").exec("DELETE FROM configs");
  REQUIRE(contains(error_of([&] { store.configured_runs(); }), "is damaged"));
  open_raw(folder / "forge.sqlite").exec("UPDATE runs SET id = '../vic'");
  REQUIRE(contains(error_of([&] { store.runs(); }), "no name of a folder"));
}

}  // namespace
}  // namespace forge::store
