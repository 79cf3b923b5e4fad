#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>

#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/results/store/database.h"
#include "core/results/store/ingest.h"
#include "core/results/store/result_store.h"

/// Bringing the store up to the run folders: what has changed is read by all cores and written in
/// batches, one transaction each.
namespace forge::store {
namespace {

/// A transaction holds the write lock for about this much work.
constexpr size_t max_runs_a_batch = 64;
constexpr int64_t max_bytes_a_batch = int64_t{4} << 20;

struct KnownRun {
  FileState files;
  run::RunState status = run::RunState::queued;
};

std::map<std::string, KnownRun> read_known_runs(SQLite::Database& database) {
  SQLite::Statement statement(database,
                              std::string("SELECT id, status, ") + file_state_columns +
                                  " FROM runs JOIN sources ON run_id = id");
  std::map<std::string, KnownRun> known;
  while (statement.executeStep()) {
    std::string id;
    KnownRun run;
    RowReader row(statement);
    row.value(id);
    row.value(run.status);
    run.files = read_file_state(row);
    known.emplace(std::move(id), run);
  }
  return known;
}

/// Folders below `runs_dir`, sorted, without those whose name begins with a dot. The directory
/// lists the kind of each entry, which saves ten thousand calls of stat.
std::vector<std::string> folder_names(const fs::path& runs_dir) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(runs_dir, unreadable)) {
    if (!entry.is_directory(unreadable)) continue;
    std::string name = entry.path().filename().string();
    if (name[0] != '.') names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A supervisor that was killed leaves its run's files as they were, so the state of a run that has
/// not ended is computed as well.
bool is_changed(const run::RunFolder& folder, const FileState& now, const KnownRun& known) {
  if (now.record != known.files.record || now.events != known.files.events ||
      now.remarks != known.files.remarks)
    return true;
  return !is_final(known.status) && folder.state() != known.status;
}

struct ChangedRun {
  run::RunFolder folder;
  bool is_new = true;
  int64_t events_offset = 0;  ///< up to which they are known
};

/// Lets writers take turns in the order in which they came. SQLite's own lock is taken by chance:
/// with many writers some would wait for seconds.
FileLock writer_lock(const fs::path& store) {
  return FileLock::acquire(store.string() + ".writers");
}

/// How many of the runs from `begin` on are one batch.
size_t batch_size(const std::vector<ChangedRun>& changed, size_t begin) {
  size_t count = 0;
  for (int64_t bytes = 0; begin + count < changed.size() && count < max_runs_a_batch; ++count) {
    const ChangedRun& run = changed[begin + count];
    bytes += std::max<int64_t>(stamp_of(run.folder.events_file()).size - run.events_offset, 0);
    if (count > 0 && bytes > max_bytes_a_batch) break;
  }
  return count;
}

/// Consecutive changed runs that are ingested in one transaction, with their new events.
struct Batch {
  size_t begin = 0, end = 0;
  std::vector<EventBatch> events;
};

/// The batch that begins with run `begin`, read by all cores. A file that cannot be read gives an
/// empty batch; `ingest` reports it.
Batch read_batch(const std::vector<ChangedRun>& changed, size_t begin) {
  Batch batch{begin, begin + batch_size(changed, begin), {}};
  batch.events.resize(batch.end - begin);
  parallel_for(batch.events.size(), [&](size_t i) {
    const ChangedRun& run = changed[begin + i];
    try {
      batch.events[i] = read_events(run.folder.events_file(), run.events_offset);
    } catch (const Error&) {
      batch.events[i].begin = -1;
    }
  });
  return batch;
}

/// Ids of runs that cannot be read, by the reason.
using LeftOutRuns = std::map<std::string, std::vector<std::string>>;

/// "run 'a' is left out: …", "12 runs are left out (a, b, c, …): …"
std::string left_out_text(const std::vector<std::string>& ids, const std::string& reason) {
  constexpr size_t most = 3;
  if (ids.size() == 1) return "run '" + ids[0] + "' is left out: " + reason;
  std::vector<std::string> shown(ids.begin(), ids.begin() + std::min(most, ids.size()));
  if (ids.size() > most) shown.emplace_back("…");
  return std::to_string(ids.size()) + " runs are left out (" + join(shown, ", ") + "): " + reason;
}

/// In one transaction.
void ingest_batch(SQLite::Database& database,
                  Ingester& ingester,
                  const std::vector<ChangedRun>& changed,
                  const Batch& batch,
                  SyncReport& report,
                  LeftOutRuns& left_out) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (size_t i = batch.begin; i < batch.end; ++i) {
    const ChangedRun& run = changed[i];
    try {
      ingester.ingest(run.folder, batch.events[i - batch.begin], report.warnings);
      ++(run.is_new ? report.added : report.updated);
    } catch (const Error& problem) {
      left_out[problem.message()].push_back(run.folder.id());
    }
  }
  transaction.commit();
}

void remove_runs(SQLite::Database& database,
                 Ingester& ingester,
                 const std::vector<std::string>& run_ids) {
  if (run_ids.empty()) return;
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (const std::string& run_id : run_ids) ingester.remove(run_id);
  transaction.commit();
}

/// What differs between the run folders and the database.
struct Changes {
  std::vector<ChangedRun> changed;  ///< or new
  std::vector<std::string> removed;

  bool none() const { return changed.empty() && removed.empty(); }
};

Changes find_changes(SQLite::Database& database, const fs::path& runs_dir) {
  std::map<std::string, KnownRun> known = read_known_runs(database);
  Changes changes;
  const std::vector<std::string> names = folder_names(runs_dir);
  // Three files of each run, on all cores: a network file system is slow.
  std::vector<FileState> states(names.size());
  parallel_for(names.size(),
               [&](size_t i) { states[i] = file_state_of(run::RunFolder(runs_dir / names[i])); });
  for (size_t i = 0; i < names.size(); ++i) {
    const FileState& now = states[i];
    if (now.record == FileStamp()) continue;  // not a run, or removed meanwhile
    run::RunFolder folder(runs_dir / names[i]);
    const auto found = known.find(names[i]);
    if (found == known.end()) {
      changes.changed.push_back({std::move(folder)});
      continue;
    }
    if (is_changed(folder, now, found->second))
      changes.changed.push_back({std::move(folder), false, found->second.files.events_offset});
    known.erase(found);
  }
  for (const auto& [run_id, run] : known) changes.removed.push_back(run_id);
  return changes;
}

std::map<std::string, FileStamp> known_files(SQLite::Database& database) {
  SQLite::Statement statement(database,
                              "SELECT id, file_size, file_modified_ns, file_inode FROM benchmarks");
  std::map<std::string, FileStamp> known;
  while (statement.executeStep()) {
    std::string id;
    RowReader row(statement);
    row.value(id);
    row.value(known[id]);
  }
  return known;
}

void insert_benchmark(SQLite::Database& database,
                      const benchmark::Record& record,
                      const FileStamp& stamp) {
  SQLite::Statement statement(
      database,
      "INSERT OR REPLACE INTO benchmarks (id, kind, call, created, project, config, device_type, "
      "device_name, threads, precision, tokens_per_second, spread, record, file_size, "
      "file_modified_ns, file_inode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const bool trains = record.kind == benchmark::Kind::training;
  const auto of_training = [&](double value) {
    return trains ? std::optional<double>(value) : std::nullopt;
  };
  const std::string text = worker::to_line(benchmark::to_json(record));
  Binder row(statement);
  row.value(record.id);
  row.value(benchmark::names_of(record.kind)[static_cast<size_t>(record.kind)]);
  row.value(record.call.id);
  row.value(record.call.created);
  row.value(record.project);
  row.value(record.config);
  row.value(record.device.type);
  row.value(record.device.name);
  row.value(int64_t{record.device.threads});
  row.value(record.precision);
  row.value(of_training(record.tokens_per_second));
  row.value(of_training(record.spread));
  row.value(text);
  row.value(stamp);
  statement.exec();
}

void remove_benchmark(SQLite::Database& database, const std::string& id) {
  SQLite::Statement statement(database, "DELETE FROM benchmarks WHERE id = ?");
  statement.bind(1, id);
  statement.exec();
}

struct ChangedFile {
  fs::path path;
  FileStamp stamp;
};

/// Brings the table `benchmarks` up to the files of `runs_dir`. A file that cannot be read is
/// excluded with a warning.
void sync_benchmarks(SQLite::Database& database, const fs::path& runs_dir, SyncReport& report) {
  std::map<std::string, FileStamp> known = known_files(database);
  std::vector<ChangedFile> changed;
  for (const fs::path& path : benchmark::list_records(runs_dir)) {
    const FileStamp stamp = stamp_of(path);
    const auto found = known.find(path.stem().string());
    const bool is_same = found != known.end() && found->second == stamp;
    if (found != known.end()) known.erase(found);
    if (!is_same) changed.push_back({path, stamp});
  }
  if (changed.empty() && known.empty()) return;
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (const auto& [id, stamp] : known) remove_benchmark(database, id);
  for (const ChangedFile& file : changed) {
    try {
      insert_benchmark(database, benchmark::read_record(file.path), file.stamp);
      ++report.benchmarks;
    } catch (const Error& problem) {
      remove_benchmark(database, file.path.stem().string());
      report.warnings.push_back(problem.message() + "; it is left out");
    }
  }
  transaction.commit();
}

}  // namespace

SyncReport ResultStore::sync(const fs::path& runs_dir) {
  SyncReport report;
  LeftOutRuns left_out;
  with_store_errors(path_, [&] {
    sync_benchmarks(*database_, runs_dir, report);
    if (find_changes(*database_, runs_dir).none()) return;

    // Another process may have ingested most of it while this one waited.
    std::optional<FileLock> lock = writer_lock(path_);
    const Changes changes = find_changes(*database_, runs_dir);
    Ingester ingester(*database_);
    remove_runs(*database_, ingester, changes.removed);
    report.removed = static_cast<int>(changes.removed.size());
    const std::vector<ChangedRun>& changed = changes.changed;
    if (changed.empty()) return;
    Batch batch = read_batch(changed, 0);
    while (true) {
      // While one batch is written the next one is read.
      std::future<Batch> next;
      if (batch.end < changed.size())
        next = std::async([&changed, begin = batch.end] { return read_batch(changed, begin); });
      if (!lock) lock = writer_lock(path_);
      ingest_batch(*database_, ingester, changed, batch, report, left_out);
      lock.reset();  // lets other writers in after each batch
      if (!next.valid()) return;
      batch = next.get();
    }
  });
  for (const auto& [reason, ids] : left_out) {
    const std::string warning = left_out_text(ids, reason);
    if (reported_.insert(warning).second) report.warnings.push_back(warning);
  }
  return report;
}

SyncReport reindex(const fs::path& path, const fs::path& runs_dir) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path aside = folder / (".reindex-" + std::to_string(::getpid()));
  remove_tree(aside);
  const auto build = [&] {
    ResultStore built(aside / "forge.sqlite");
    return built.sync(runs_dir);
  };  // closed here: its log is folded into the file
  try {
    SyncReport report = build();
    replace_database(aside / "forge.sqlite", path);
    remove_tree(aside);
    return report;
  } catch (...) {
    std::error_code ignored;
    remove_tree(aside, ignored);
    throw;
  }
}

}  // namespace forge::store
