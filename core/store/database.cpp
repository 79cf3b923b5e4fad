#include "core/store/database.h"

#include <sqlite3.h>

#include "core/base/fs.h"
#include "core/store/schema.h"

namespace forge::store {
namespace {

/// Batches of writers take milliseconds; one that waits this long waits for something stuck.
constexpr int busy_timeout_ms = 30000;

fs::path beside(const fs::path& path, const char* suffix) { return path.string() + suffix; }

/// Held while a database is opened or replaced: a connection that opened the old file must not
/// meet the new file's log. Released at once, so it never waits for a running query.
FileLock opening_lock(const fs::path& path) { return FileLock::acquire(beside(path, ".lock")); }

}  // namespace

std::unique_ptr<SQLite::Database> open_database(const fs::path& path) {
  if (path.has_parent_path()) make_directories(path.parent_path());
  const FileLock lock = opening_lock(path);
  return guarded(path, [&] {
    // A connection is one thread's: SQLite's own locks cost a fifth of reading rows.
    auto database = std::make_unique<SQLite::Database>(
        path.string(),
        SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
        busy_timeout_ms);
    bring_up_to_date(*database, schema_steps());  // first: a file that is refused stays untouched
    database->exec("PRAGMA journal_mode = WAL");
    database->exec("PRAGMA synchronous = NORMAL");
    // References are the ingester's to keep: checked one by one, the metrics of a run go in at
    // two fifths of the speed.
    database->exec("PRAGMA foreign_keys = OFF");
    database->exec(
        "PRAGMA cache_size = -16384");  // KiB: a batch of writes fits, and no page is written twice
    return database;
  });
}

void remove_database(const fs::path& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) remove_tree(beside(path, suffix));
}

void replace_database(const fs::path& built, const fs::path& path) {
  const FileLock lock = opening_lock(path);
  // The old log goes first: beside the new file SQLite would take it for the new file's own.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) remove_tree(beside(path, suffix));
  std::error_code problem;
  fs::rename(built, path, problem);
  if (problem) {
    throw system_error("rename '" + built.string() + "' to '" + path.string() + "'",
                       problem.value());
  }
  sync_path(fs::absolute(path).parent_path());
}

Error store_error(const fs::path& path, const SQLite::Exception& problem) {
  std::string hint;
  ExitCode exit_code = ExitCode::failed;
  switch (problem.getErrorCode()) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      hint = "'forge store reindex' builds it anew from the run folders; no result is lost";
      break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
      hint =
          "the disk is full or fails; the run folders are unharmed, 'forge store reindex' builds "
          "the store anew from them";
      exit_code = ExitCode::storage;
      break;
    case SQLITE_BUSY: hint = "another process holds the store; try again when it is done"; break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: hint = "check the permissions of the file and of its folder"; break;
    default: break;
  }
  return Error("the results store '" + path.string() + "': " + problem.what(), {}, hint, exit_code);
}

}  // namespace forge::store
