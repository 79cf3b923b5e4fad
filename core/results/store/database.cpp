#include "core/results/store/database.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

#include <sqlite3.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/config/experiment.h"
#include "core/results/metrics.h"
#include "core/results/store/result_store.h"
#include "core/run/runs_dir.h"

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

}  // namespace

bool is_remote_file_system(int64_t type) {
  // Kernels give the 32-bit numbers with or without sign extension.
  const int64_t magic = type & 0xFFFFFFFF;
  return std::find(std::begin(remote_types), std::end(remote_types), magic) !=
         std::end(remote_types);
}

namespace {

/// Of this process alone, where there is no other place: another user may have taken the name of
/// this user's folder for temporary files.
fs::path own_stores() {
  static const PrivateFolder folder("store");
  return folder.path();
}

fs::path temporary_stores() {
  try {
    return temporary_cache_dir() / "stores";
  } catch (const Error&) {
    return own_stores();
  }
}

/// Of the stores of runs folders that cannot hold their own.
fs::path cached_stores() {
  try {
    const fs::path stores = user_cache_dir() / "stores";
    if (run::can_write(existing_ancestor(stores))) return stores;
  } catch (const Error&) {
    return own_stores();
  }
  return temporary_stores();
}

std::string name_in_cache(const fs::path& runs_dir) {
  return hash_hex(fs::weakly_canonical(runs_dir).string()).substr(0, 16) + ".sqlite";
}

/// Which stores this process keeps elsewhere, because the disk is full or nothing is to be written
/// there, by the name in the cache.
struct OtherStores {
  std::mutex mutex;
  std::map<std::string, fs::path> paths;
};

OtherStores& other_stores() {
  static OtherStores stores;
  return stores;
}

}  // namespace

fs::path cached_store_path(const fs::path& runs_dir) {
  return cached_stores() / name_in_cache(runs_dir);
}

bool use_other_store(const fs::path& runs_dir) {
  const fs::path now = store_path(runs_dir), cached = cached_store_path(runs_dir);
  const fs::path temporary = temporary_stores() / cached.filename();
  if (now == temporary) return false;
  const std::lock_guard lock(other_stores().mutex);
  other_stores().paths[name_in_cache(runs_dir)] = now == cached ? temporary : cached;
  return true;
}

namespace {

constexpr const char* store_name = "forge.sqlite";
/// Files that SQLite keeps beside a database, less its name.
constexpr const char* companions[] = {"-wal", "-shm", "-journal"};
constexpr const char* lock_suffix = ".lock";

fs::path beside(const fs::path& path, const char* suffix) { return path.string() + suffix; }

}  // namespace

bool can_write_store(const fs::path& runs_dir) {
  if (!run::can_write(existing_ancestor(fs::absolute(runs_dir)))) return false;
  const auto is_closed = [](const fs::path& file) {
    return path_exists(file) && ::access(file.c_str(), R_OK | W_OK) != 0;
  };
  const fs::path store = runs_dir / store_name;
  return !is_closed(store) && !is_closed(beside(store, lock_suffix)) &&
         std::none_of(std::begin(companions), std::end(companions), [&](const char* suffix) {
           return is_closed(beside(store, suffix));
         });
}

fs::path store_path(const fs::path& runs_dir) {
  {
    const std::lock_guard lock(other_stores().mutex);
    const auto found = other_stores().paths.find(name_in_cache(runs_dir));
    if (found != other_stores().paths.end()) return found->second;
  }
  const fs::path folder = existing_ancestor(fs::absolute(runs_dir));
  struct statfs status {};
  const bool remote =
      ::statfs(folder.c_str(), &status) == 0 && is_remote_file_system(status.f_type);
  if (remote || !can_write_store(runs_dir)) return cached_store_path(runs_dir);
  return runs_dir / store_name;
}

namespace {

/// Copies a database with its log. False where another process writes to it meanwhile: the copy
/// could be torn.
bool copy_store(const fs::path& from, const fs::path& to) {
  const auto stamps = [&] { return std::pair(stamp_of(from), stamp_of(beside(from, "-wal"))); };
  const auto before = stamps();
  for (const char* suffix : {"", "-wal"}) {
    std::error_code missing;
    fs::copy_file(beside(from, suffix), beside(to, suffix), missing);
  }
  return stamps() == before;
}

/// Whether it is what a ScratchStore makes, a day old: a folder of this user alone, of such a name,
/// with a store and nothing else. No plan takes a day.
bool is_old_copy(const fs::path& folder) {
  const std::string name = folder.filename().string(), beginning = "forge-store-";
  struct stat status {};
  if (!starts_with(name, beginning) || name.size() != beginning.size() + 6 ||
      ::lstat(folder.c_str(), &status) != 0)
    return false;
  constexpr int64_t day = 86'400;
  if (!S_ISDIR(status.st_mode) || (status.st_mode & 07777U) != 0700U ||
      status.st_uid != ::geteuid() || ::time(nullptr) - status.st_mtim.tv_sec < day)
    return false;
  const std::vector<fs::path> entries = folder_entries(folder);
  return std::all_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
      if (entry.filename() == beside(store_name, suffix)) return true;
    return false;
  });
}

/// Removes the copies that killed processes have left.
void remove_old_copies() {
  for (const fs::path& entry : folder_entries(temporary_folder())) {
    std::error_code kept;
    if (is_old_copy(entry)) remove_tree(entry, kept);
  }
}

}  // namespace

ScratchStore::ScratchStore(fs::path runs_dir) : runs_dir_(std::move(runs_dir)), folder_("store") {
  remove_old_copies();
  const fs::path store = store_path(runs_dir_), copy = folder_.path() / store_name;
  if (store != runs_dir_ / store_name) return;  // it lies elsewhere
  if (!copy_store(store, copy)) {
    for (const char* suffix : {"", "-wal"}) remove_tree(beside(copy, suffix));  // it is built anew
  }
  const std::lock_guard lock(other_stores().mutex);
  other_stores().paths[name_in_cache(runs_dir_)] = copy;
}

ScratchStore::~ScratchStore() {
  const std::lock_guard lock(other_stores().mutex);
  const auto found = other_stores().paths.find(name_in_cache(runs_dir_));
  if (found != other_stores().paths.end() && found->second.parent_path() == folder_.path())
    other_stores().paths.erase(found);
}

extern const char* const schema_sql;  // schema.sql, embedded by CMake
namespace {

/// schema.sql with a column for each metric of a run.
std::string whole_schema() {
  std::string sql = schema_sql;
  for (const results::Metric& metric : results::metrics()) {
    if (metric.source == results::Source::run)
      sql += "ALTER TABLE runs ADD COLUMN " + metric.name + " REAL;\n";
  }
  return sql;
}

/// "frge": tells a results store from any other SQLite file.
constexpr int application_id = 0x66726765;

int read_pragma(SQLite::Database& database, const std::string& name) {
  return database.execAndGet("PRAGMA " + name).getInt();
}

void refuse_foreign(const SQLite::Database& database) {
  throw Error("'" + database.getFilename() + "' is an SQLite database but no results store",
              "move it away; forge then builds its own from the run folders",
              ExitCode::failed);
}

}  // namespace

int schema_version() {
  // The store holds configs, too: those of other keys cannot be read.
  static const int version = std::stoi(
      hash_hex(whole_schema() + json_text(config::to_json(config::Experiment()))).substr(0, 7),
      nullptr,
      16);
  return version;
}

namespace {

bool has_current_schema(SQLite::Database& database) {
  return read_pragma(database, "user_version") == schema_version() &&
         read_pragma(database, "application_id") == application_id;
}

/// What a database consists of, each with the text that made it.
std::vector<std::string> schema_of(SQLite::Database& database) {
  std::vector<std::string> parts;
  SQLite::Statement select(database,
                           "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, "
                           "'') FROM sqlite_master "
                           "ORDER BY 1");
  while (select.executeStep()) parts.push_back(select.getColumn(0).getString());
  return parts;
}

/// Another program's views and triggers may compute for ever, and a table may be missing.
void require_own_schema(SQLite::Database& database) {
  SQLite::Database own(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  own.exec(whole_schema());
  if (schema_of(database) == schema_of(own)) return;
  throw Error(
      "the results store '" + database.getFilename() +
          "' has other tables, views or triggers than forge made: another program changed it",
      reindex_hint,
      ExitCode::failed);
}

/// In one transaction, which another process waits for that would do the same.
void bring_up_to_date(SQLite::Database& database) {
  if (has_current_schema(database)) return;
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  if (has_current_schema(database)) return;
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!empty && read_pragma(database, "application_id") != application_id) refuse_foreign(database);
  std::vector<std::string> tables;
  SQLite::Statement names(
      database,
      "SELECT type || printf(' \"%w\"', name) FROM sqlite_master "
      "WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
  while (names.executeStep()) tables.push_back(names.getColumn(0).getString());
  names.reset();
  for (const std::string& table : tables) database.exec("DROP " + table);
  database.exec(whole_schema());
  database.exec("PRAGMA application_id = " + std::to_string(application_id));
  database.exec("PRAGMA user_version = " + std::to_string(schema_version()));
  transaction.commit();
}

/// SQLite's wait for another connection, whose database is given. Batches of writers take
/// milliseconds and wait for each other before: this is another program's, or something stuck.
int wait_for_others(void* database, int tries) {
  constexpr int step_ms = 5, silent_ms = 1000, longest_ms = 30000;
  if (tries * step_ms >= longest_ms) return 0;
  if (tries * step_ms == silent_ms) {
    const char* const file = sqlite3_db_filename(static_cast<sqlite3*>(database), "main");
    say_waiting("waiting for the results store '" + shown_path(file ? file : "") +
                "': another program is writing to it");
  }
  sqlite3_sleep(step_ms);
  return 1;
}

/// Held while a database is opened or replaced: a connection that opened the old file must not
/// meet the new file's log. Released at once, so it never waits for a running query.
FileLock opening_lock(const fs::path& path) {
  return lock_signed(beside(path, lock_suffix), "the results store '" + shown_path(path) + "'");
}

}  // namespace

bool operator==(const FileStamp& a, const FileStamp& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

FileStamp stamp_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          static_cast<int64_t>(status.st_ino)};
}

const char* guarded_files() {
  static const char* const name = [] {
    static sqlite3_vfs guarded = *::sqlite3_vfs_find(nullptr);
    static const decltype(guarded.xOpen) open_any = guarded.xOpen;
    guarded.pNext = nullptr;
    guarded.zName = "forge";
    guarded.xOpen =
        [](sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
          if ((flags & SQLITE_OPEN_SUPER_JOURNAL) == 0)
            return open_any(vfs, path, file, flags, out);
          file->pMethods = nullptr;
          return SQLITE_CANTOPEN;
        };
    ::sqlite3_vfs_register(&guarded, 0);
    return guarded.zName;
  }();
  return name;
}

namespace {

/// Stores are made with a write-ahead log, so this is another program's, or came with the folder.
/// SQLite would undo in the store what it says, and remove the file that it names.
void refuse_journal(const fs::path& path) {
  const fs::path journal = beside(path, "-journal");
  std::error_code unknown;
  if (!fs::exists(fs::symlink_status(journal, unknown))) return;
  throw Error(
      "'" + shown_path(journal) +
          "' is no file of forge's, and SQLite would change and remove files as it says: "
          "the results store is not opened beside it",
      quoted_command("rm " + shell_quoted(journal.string())) + " removes it; " + reindex_hint,
      ExitCode::failed);
}

/// A connection is one thread's: SQLite's own locks cost a fifth of reading rows.
std::unique_ptr<SQLite::Database> connect(const fs::path& path) {
  auto database = std::make_unique<SQLite::Database>(
      path.string(),
      SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
      0,
      guarded_files());
  sqlite3_busy_handler(database->getHandle(), wait_for_others, database->getHandle());
  sqlite3_db_config(database->getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  bring_up_to_date(*database);  // first: a file that is refused stays untouched
  require_own_schema(*database);
  database->exec("PRAGMA journal_mode = WAL");
  return database;
}

/// An empty store, put in its place when it is whole: whoever is killed meanwhile leaves no journal
/// beside it.
void make_database(const fs::path& path) {
  // Whoever makes one holds the lock: what stands aside now is of processes that were killed.
  const std::string prefix = aside_prefix + path.filename().string() + "-";
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const fs::path& entry : folder_entries(folder)) {
    std::error_code kept;
    if (starts_with(entry.filename().string(), prefix)) remove_tree(entry, kept);
  }
  const ScratchFolder aside(aside_path(path));
  const fs::path built = aside.path() / store_name;
  connect(built).reset();  // its log is folded into the file then
  rename_path(built, path);
}

}  // namespace

std::unique_ptr<SQLite::Database> open_database(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !is_folder(folder)) {
    if (folder != cached_stores() && folder != temporary_stores()) run::require_runs_dir(folder);
    make_directories(folder);
  }
  const FileLock lock = opening_lock(path);
  // SQLite would follow a link, and change what it leads to.
  require_own_file(path);
  for (const char* suffix : companions) require_own_file(beside(path, suffix));
  // The log of a database that was deleted is none of a new one's: processes still write to it.
  const bool is_new = !path_exists(path);
  if (is_new)
    for (const char* suffix : companions) remove_tree(beside(path, suffix));
  refuse_journal(path);
  return with_store_errors(path, [&] {
    if (is_new) make_database(path);
    auto database = connect(path);
    database->exec("PRAGMA synchronous = NORMAL");
    // Fewer checkpoints while thousands of runs are written. The log stays below 16 MiB or so.
    database->exec("PRAGMA wal_autocheckpoint = 4000");
    // A savepoint around each run copies the pages that it changes: not to a file.
    database->exec("PRAGMA temp_store = MEMORY");
    database->exec(
        "PRAGMA cache_size = -16384");  // KiB: a batch of writes fits, and no page is written twice
    return database;
  });
}

void replace_database(const fs::path& built, const fs::path& path) {
  const FileLock lock = opening_lock(path);
  // The old log goes first: beside the new file SQLite would take it for the new file's own.
  for (const char* suffix : companions) remove_tree(beside(path, suffix));
  std::error_code problem;
  fs::rename(built, path, problem);
  if (problem) {
    throw system_error("rename '" + built.string() + "' to '" + path.string() + "'",
                       problem.value());
  }
  sync_path(fs::absolute(path).parent_path());
}

namespace {

/// Whether its disk has no room at all: SQLite then cannot open the files beside a database.
bool is_full(const fs::path& path) {
  struct statvfs disk {};
  return ::statvfs(fs::absolute(path).parent_path().c_str(), &disk) == 0 &&
         (disk.f_bavail == 0 || (disk.f_files > 0 && disk.f_favail == 0));
}

}  // namespace

Error store_error(const fs::path& path, const SQLite::Exception& problem) {
  std::string hint;
  ExitCode exit_code = ExitCode::failed;
  switch (problem.getErrorCode() == SQLITE_CANTOPEN && is_full(path) ? SQLITE_FULL
                                                                     : problem.getErrorCode()) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: hint = reindex_hint; break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
      hint =
          "the disk is full or fails: make room, then try again; the run folders, which the store "
          "is built from, are unharmed";
      exit_code = ExitCode::storage;
      break;
    case SQLITE_BUSY: hint = "another process holds the store; try again when it is done"; break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: hint = "check the permissions of the file and of its folder"; break;
    default: break;
  }
  return Error("the results store '" + path.string() + "': " + problem.what(), hint, exit_code);
}

}  // namespace forge::store
