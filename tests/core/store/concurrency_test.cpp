#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/store/result_store.h"
#include "tests/core/store/store_dump.h"
#include "tests/support/catch.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

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
        "INSERT INTO evaluations SELECT 'run-1', 1000 + i, 1, 1, 1 FROM n");
    ::raise(SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  REQUIRE(dump_store(folder / "forge.sqlite") == before);
  ResultStore store(folder / "forge.sqlite");
  make_completed_run(folder / "runs", numbered(2));
  REQUIRE(store.sync(folder / "runs").added == 1);
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

}  // namespace
}  // namespace forge::store
