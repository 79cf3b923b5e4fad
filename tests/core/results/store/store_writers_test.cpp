// Stores that are built anew, compared with the run folders, and waited for.

#include "core/results/store/result_store.h"

#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>

#include "core/base/files.h"
#include "core/results/store/compare_store.h"
#include "core/results/store/database.h"
#include "core/run/annotations.h"
#include "core/run/host.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/core/results/store/workplace.h"
#include "tests/support/catch.h"

namespace forge::store {
namespace {

TEST_CASE("who waits for another writer of the store is told for whom", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("llama"));
  std::optional<FileLock> other = FileLock::acquire(place.database.string() + ".writers");
  other->sign("node3");
  SyncWatch watch;
  watch.patience = std::chrono::milliseconds(0);
  std::string reason;
  watch.waiting = [&](const std::string& text) {
    reason = text;
    other.reset();
  };
  REQUIRE(place.store.sync(place.runs, watch).added == 1);
  CHECK(contains(
      reason,
      "forge.sqlite': process " + std::to_string(::getpid()) + " on node3 is writing to it"));
  // That writer has left its own name for those who wait next.
  other = FileLock::acquire(place.database.string() + ".writers");
  CHECK(FileLock::holder(place.database.string() + ".writers") ==
        "process " + std::to_string(::getpid()) + " on " + run::host_name());
}

TEST_CASE("a store built anew equals one that grew", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 20, "worker killed by SIGBUS");
  append_line(folder, "rubbish\n");
  make_completed_run(place.runs, made("y"));
  place.store.sync(place.runs);
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 10, 30, 1024}, 2);
  place.store.sync(place.runs);
  append_event(folder, metrics_at(20), 2);
  append_event(folder, worker::Result{{{"x", 1}}}, 2);
  append_ended(folder, "stopped");
  make_completed_run(place.runs, made("z"));
  place.store.sync(place.runs);

  const std::string grown = dump_store(place.database);
  REQUIRE(contains(grown, "x-20|"));
  const SyncReport report = reindex(place.database, place.runs);
  REQUIRE(report.added == 3);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(dump_store(place.database) == grown);
}

TEST_CASE("bringing a store up to date, building it anew and comparing it tell how far they are",
          "[store]") {
  Workplace place;
  for (const char* config : {"x", "y", "z"}) make_completed_run(place.runs, made_as_forge(config));
  std::vector<std::string> told;
  SyncWatch watch;
  watch.progress = watch.looking = [&](size_t done, size_t all) {
    told.push_back(std::to_string(done) + "/" + std::to_string(all));
  };
  const std::vector<std::string> looked_at = {"1/3", "2/3", "3/3"};
  const std::vector<std::string> looked_at_and_read = {"1/3", "2/3", "3/3", "3/3"};
  place.store.sync(place.runs, watch);
  REQUIRE(told == looked_at_and_read);
  told.clear();
  reindex(place.database, place.runs, watch);
  REQUIRE(told == looked_at_and_read);
  told.clear();
  compare_store(place.database, place.runs, watch);
  std::vector<std::string> both = looked_at;  // the store as it is, then the one that is built
  both.insert(both.end(), looked_at_and_read.begin(), looked_at_and_read.end());
  both.insert(both.end(), looked_at.begin(), looked_at.end());  // and compared
  REQUIRE(told.size() > both.size());                           // then the tables
  REQUIRE(std::equal(both.begin(), both.end(), told.begin()));
}

/// Every file below a folder, with its size and time.
std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const FileStamp stamp = stamp_of(entry.path());
    files.push_back(entry.path().string() + " " + std::to_string(stamp.size) + " " +
                    std::to_string(stamp.modified_ns));
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("a scratch store reads the runs and writes nothing beside them", "[store]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs", store = runs / "forge.sqlite";
  make_directories(runs);
  make_completed_run(runs, made("x"));
  const bool is_indexed = GENERATE(false, true);
  if (is_indexed) ResultStore(store_path(runs)).sync(runs);
  make_completed_run(runs, made("y"));
  const std::vector<std::string> before = files_below(runs);
  {
    const ScratchStore scratch(runs);
    REQUIRE(store_path(runs) != store);
    ResultStore copy(store_path(runs));
    REQUIRE(copy.sync(runs).added == (is_indexed ? 1 : 2));
    REQUIRE(copy.runs().size() == 2);
    REQUIRE(files_below(runs) == before);
  }
  REQUIRE(files_below(runs) == before);
  REQUIRE(store_path(runs) == store);
  const PrivateFolder killed("store"), young("store");
  fs::last_write_time(killed.path(), fs::file_time_type::clock::now() - std::chrono::hours(25));
  const ScratchStore next(runs);
  REQUIRE_FALSE(fs::exists(killed.path()));
  REQUIRE(fs::exists(young.path()));
}

TEST_CASE("what only looks like an old scratch store stays", "[store][hostile]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  make_directories(runs);
  const auto make_old = [](const fs::path& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(25));
  };
  const PrivateFolder of_others("store"), open_to_all("store"), longer("store-backup");
  write_file_atomic(of_others.path() / "forge.sqlite", "");
  write_file_atomic(of_others.path() / "notes.txt", "mine");
  fs::permissions(open_to_all.path(), fs::perms::others_read, fs::perm_options::add);
  const fs::path file = of_others.path().parent_path() / "forge-store-file12";
  write_file_atomic(file, "mine");
  for (const fs::path& each : {of_others.path(), open_to_all.path(), longer.path(), file})
    make_old(each);
  const ScratchStore scratch(runs);
  CHECK(fs::exists(of_others.path() / "notes.txt"));
  CHECK(fs::exists(open_to_all.path()));
  CHECK(fs::exists(longer.path()));
  CHECK(fs::exists(file));
  remove_tree(file);
}

TEST_CASE("rows that say something else than the run folders are found", "[store][hostile]") {
  Workplace place;
  const std::string x = make_completed_run(place.runs, made_as_forge("x")).id();
  const std::string y = make_completed_run(place.runs, made_as_forge("y")).id();
  make_queued_run(place.runs, made("z"));
  place.store.sync(place.runs);
  const auto differences = [&] {
    std::string text;
    for (const StoreDifference& found : compare_store(place.database, place.runs).differences)
      text += found.run + ": " + found.what + "\n";
    return text;
  };
  REQUIRE(differences().empty());
  REQUIRE(compare_store(place.database, place.runs).compared == 2);
  REQUIRE(compare_store(place.database, place.runs).active == 1);
  const auto change = [&](const std::string& sql) {
    SQLite::Database(place.database.string(), SQLite::OPEN_READWRITE).exec(sql);
  };
  change("UPDATE runs SET eval_loss = 0.5 WHERE id = '" + x + "'");
  CHECK(place.store.run(x)->metric(results::eval_loss_name) == 0.5);  // rows are believed
  CHECK(differences() == x + ": eval_loss is 0.5 and by the folder 3.25\n");
  change("UPDATE train_metrics SET loss = 1 WHERE run_id = '" + y + "' AND step = 10");
  change("UPDATE configs SET config = '{}' WHERE run_id = '" + y + "'");
  change("DELETE FROM evaluations WHERE run_id = '" + y + "'");
  CHECK(differences() == x + ": eval_loss is 0.5 and by the folder 3.25\n" + y +
                             ": the config: not what the files say\n" + y +
                             ": the training metrics: not what the files say\n" + y +
                             ": the evaluations: not what the files say\n");
  reindex(place.database, place.runs);
  CHECK(differences().empty());
  for (const fs::path& entry : folder_entries(place.folder.path()))
    CHECK_FALSE(is_aside_name(entry.filename().string()));
}

TEST_CASE("a loss that is no number is in the store as in the run folder", "[store][compare]") {
  Workplace place;
  Outcome diverged;
  diverged.eval_loss = std::nan("");
  make_completed_run(place.runs, made_as_forge("x"), diverged);
  place.store.sync(place.runs);
  REQUIRE(compare_store(place.database, place.runs).compared == 1);
  REQUIRE(compare_store(place.database, place.runs).differences.empty());
}

TEST_CASE("runs that change while the store is compared are no differences", "[store][compare]") {
  Workplace place;
  const run::RunFolder noted = make_completed_run(place.runs, made_as_forge("x"));
  for (int round = 0; round < 10; ++round) {
    // It is over long before the last look.
    auto writer = std::async(std::launch::async, [&] {
      for (int i = 0; i < 15; ++i) {
        run::write_annotations(noted, {false, "note " + std::to_string(i), {}});
        const run::RunFolder other = make_completed_run(place.runs, made_as_forge("y"));
        fs::rename(other.path(), place.runs / ".gone");
        remove_tree(place.runs / ".gone");
      }
    });
    const StoreComparison compared = compare_store(place.database, place.runs);
    writer.get();
    std::string found;
    for (const StoreDifference& difference : compared.differences)
      found += difference.run + ": " + difference.what + "\n";
    CHECK(found.empty());
  }
}

TEST_CASE("a run whose name is another's, or of another config, is reported", "[store][hostile]") {
  Workplace place;
  const run::RunFolder x = make_completed_run(place.runs, made_as_forge("x"));
  fs::copy(x.path(), place.runs / "better", fs::copy_options::recursive);
  nlohmann::json record = nlohmann::json::parse(read_file(x.record_file()));
  record["config"] = "y";
  write_file_atomic(x.record_file(), record.dump());
  std::string found;
  for (const StoreDifference& difference : compare_store(place.database, place.runs).differences)
    found += difference.run + ": " + difference.what + "\n";
  CHECK(found == "better: the folder's name is not the run's, '" + x.id() + "'\n" + x.id() +
                     ": its name is none of config 'y', which run.json names\n");
}

TEST_CASE("reindex mends a damaged store and one of a newer program", "[store]") {
  TemporaryFolder folder;
  const auto runs = folder / "runs";
  make_completed_run(runs, made("x"));
  folder.write("forge.sqlite", std::string(5000, 'x'));
  folder.write("forge.sqlite-wal", "what is left of the old log");
  reindex(folder / "forge.sqlite", runs);
  REQUIRE(ResultStore(folder / "forge.sqlite").runs().size() == 1);

  SQLite::Database((folder / "forge.sqlite").string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA user_version = 99");
  reindex(folder / "forge.sqlite", runs);
  REQUIRE(ResultStore(folder / "forge.sqlite").runs().size() == 1);
  // Nothing is left lying about.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    REQUIRE_FALSE(contains(entry.path().string(), "reindex"));
  }
}

}  // namespace
}  // namespace forge::store
