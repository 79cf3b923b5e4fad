#include "core/results/store/database.h"

#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/results/store/result_store.h"

namespace forge::store {
namespace fs = std::filesystem;
namespace {

/// f_type values, from statfs(2) and <linux/magic.h>; the clusters' own from their kernel modules.
constexpr int64_t remote_types[] = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x65735546,  // FUSE: sshfs, s3fs, virtiofs, …
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0xAAD7AAEA,  // PanFS
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x01161970,  // GFS2
    0x7461636F,  // OCFS2
    0x01021997,  // 9P
    0x73757245,  // Coda
};

/// The nearest folder upwards that exists: the runs folder itself may not have been made yet.
fs::path existing_folder(fs::path folder) {
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

bool is_remote_file_system(int64_t type) {
  // Kernels give the 32-bit numbers with or without sign extension.
  const int64_t magic = type & 0xFFFFFFFF;
  return std::find(std::begin(remote_types), std::end(remote_types), magic) !=
         std::end(remote_types);
}

fs::path cached_store_path(const fs::path& runs_dir) {
  const std::string name = hash_hex(fs::weakly_canonical(runs_dir).string()).substr(0, 16);
  return user_cache_dir() / "stores" / (name + ".sqlite");
}

fs::path store_path(const fs::path& runs_dir) {
  const fs::path folder = existing_folder(fs::absolute(runs_dir));
  struct statfs status {};
  const bool remote =
      ::statfs(folder.c_str(), &status) == 0 && is_remote_file_system(status.f_type);
  if (remote || ::access(folder.c_str(), W_OK) != 0) return cached_store_path(runs_dir);
  return runs_dir / "forge.sqlite";
}

extern const char* const schema_version_1;  // schema.sql, embedded by CMake
namespace {

/// Version 2: what a task measures beside the loss. A figure that is no number is NULL.
constexpr const char* add_scores = R"sql(
CREATE TABLE scores (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step   INTEGER NOT NULL,                  -- of the evaluation
  name   TEXT NOT NULL,                     -- e.g. "answer_accuracy.hop_8"
  value  REAL,
  count  INTEGER NOT NULL,                  -- cases that the value is the mean of
  PRIMARY KEY (run_id, step, name)
) STRICT, WITHOUT ROWID;
)sql";

/// Version 3: measured speed, an index over the files of the folder benchmarks.
constexpr const char* add_benchmarks = R"sql(
CREATE TABLE benchmarks (
  id                TEXT PRIMARY KEY,       -- name of the file, without .json
  kind              TEXT NOT NULL CHECK (kind IN ('training', 'operations')),
  call              TEXT NOT NULL,          -- the same for all that were measured in turns
  created           TEXT NOT NULL,          -- UTC
  project           TEXT NOT NULL,          -- '' for operations
  config            TEXT NOT NULL,          -- '' for operations
  device_type       TEXT NOT NULL,
  device_name       TEXT NOT NULL,
  threads           INTEGER NOT NULL,
  precision         TEXT NOT NULL,
  tokens_per_second REAL,                   -- median of the windows; NULL for operations
  spread            REAL,                   -- half of their interquartile range over the median
  record            TEXT NOT NULL CHECK (json_valid(record)),  -- all that the file says
  file_size         INTEGER NOT NULL,
  file_modified_ns  INTEGER NOT NULL,
  file_inode        INTEGER NOT NULL
) STRICT;

CREATE INDEX benchmarks_by_config ON benchmarks (config, created);
)sql";

/// Version 4: what people say of a run, from remarks.json of its folder.
constexpr const char* add_remarks = R"sql(
ALTER TABLE runs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;  -- 1: lists and tables leave it out
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '';        -- with commas between
ALTER TABLE sources ADD COLUMN remarks_size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN remarks_modified_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN remarks_inode INTEGER NOT NULL DEFAULT 0;
)sql";

/// Version 5: runs are listed newest first without sorting them.
constexpr const char* add_order = R"sql(
CREATE INDEX runs_by_created ON runs (created DESC, id DESC);
)sql";

/// Version 6: how many rows of a step are computed at once, NULL for all. Speed and memory depend
/// on it.
constexpr const char* add_micro_batch_size = R"sql(
ALTER TABLE runs ADD COLUMN micro_batch_size INTEGER;
)sql";

/// Version 7: what runs are chosen by, and who else used the machine.
constexpr const char* add_selection_and_others = R"sql(
ALTER TABLE runs ADD COLUMN validation_loss REAL;   -- of rows of which nothing else is reported
ALTER TABLE runs ADD COLUMN busy_elsewhere REAL;   -- share of the cores, from 0 to 1
ALTER TABLE runs ADD COLUMN shared_device INTEGER NOT NULL DEFAULT 0;  -- 1: a GPU with another user
)sql";

/// "frge": tells a results store from any other SQLite file.
constexpr int application_id = 0x66726765;

int read_pragma(SQLite::Database& database, const std::string& name) {
  return database.execAndGet("PRAGMA " + name).getInt();
}

void refuse_newer(const SQLite::Database& database, int version, int known) {
  throw Error("the results store '" + database.getFilename() + "' has schema version " +
                  std::to_string(version) + "; this forge reads versions up to " +
                  std::to_string(known),
              {},
              "use the newer forge that wrote it, or let 'forge store reindex' build it anew for "
              "this version from the run folders",
              ExitCode::failed);
}

void refuse_foreign(const SQLite::Database& database) {
  throw Error("'" + database.getFilename() + "' is an SQLite database but no results store",
              {},
              "move it away; forge then builds its own from the run folders",
              ExitCode::failed);
}

}  // namespace

const std::vector<std::string>& schema_steps() {
  static const std::vector<std::string> steps = {schema_version_1,
                                                 add_scores,
                                                 add_benchmarks,
                                                 add_remarks,
                                                 add_order,
                                                 add_micro_batch_size,
                                                 add_selection_and_others};
  return steps;
}

int schema_version() { return static_cast<int>(schema_steps().size()); }

void bring_up_to_date(SQLite::Database& database, const std::vector<std::string>& steps) {
  const int known = static_cast<int>(steps.size());
  if (read_pragma(database, "user_version") == known &&
      read_pragma(database, "application_id") == application_id) {
    return;
  }
  // Looked at once more with the write lock held: another process may be doing the same.
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const int version = read_pragma(database, "user_version");
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!empty && read_pragma(database, "application_id") != application_id) refuse_foreign(database);
  if (version > known) refuse_newer(database, version, known);
  for (int next = version; next < known; ++next) database.exec(steps[static_cast<size_t>(next)]);
  database.exec("PRAGMA application_id = " + std::to_string(application_id));
  database.exec("PRAGMA user_version = " + std::to_string(known));
  transaction.commit();
}

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
