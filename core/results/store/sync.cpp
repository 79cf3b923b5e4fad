#include "core/results/store/sync.h"

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/waiting.h"
#include "core/results/store/ingest.h"
#include "core/results/store/read_run.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

namespace forge::store {
namespace {

/// A transaction holds the write lock for about this much work.
constexpr size_t max_runs_a_batch = 64;
constexpr int64_t max_bytes_a_batch = max_event_bytes;

struct KnownRun {
  FileState files;
  run::RunState status = run::RunState::not_started;
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

/// Folders below a runs folder, sorted, without those whose name begins with a dot.
struct FolderNames {
  std::vector<std::string> own;
  std::vector<std::string> linked;  ///< links to runs
};

/// The directory lists the kind of each entry, which saves ten thousand calls of stat.
FolderNames folder_names(const fs::path& runs_dir) {
  FolderNames names;
  run::require_listed(runs_dir);
  for (const fs::path& entry : folder_entries(runs_dir)) {
    if (!is_folder(entry)) continue;
    std::string name = entry.filename().string();
    if (name[0] == '.') continue;
    std::error_code gone;
    if (!fs::is_symlink(entry, gone)) {
      names.own.push_back(std::move(name));
    } else if (path_exists(run::RunFolder(entry).record_file())) {
      names.linked.push_back(std::move(name));
    }
  }
  std::sort(names.own.begin(), names.own.end());
  std::sort(names.linked.begin(), names.linked.end());
  return names;
}

/// A supervisor that was killed leaves its run's files as they were, so the state of a run that has
/// not ended is computed as well.
bool is_changed(const run::RunFolder& folder, const FileState& now, const KnownRun& known) {
  if (now.record != known.files.record || now.config != known.files.config ||
      now.events != known.files.events || now.remarks != known.files.remarks)
    return true;
  return !is_final(known.status) && folder.state() != known.status;
}

struct ChangedRun {
  run::RunFolder folder;
  bool is_new = true;
  int64_t events_offset = 0;  ///< up to which they are known
};

std::string waiting_text(const fs::path& store, const fs::path& lock) {
  const std::string holder = FileLock::holder(lock);
  return "waiting for the results store '" + shown_path(store) +
         "': " + (holder.empty() ? "another process" : holder) + " is writing to it";
}

/// Lets writers take turns in the order in which they came. SQLite's own lock is taken by chance:
/// with many writers some would wait for seconds.
FileLock writer_lock(const fs::path& store, const SyncWatch& watch) {
  run::require_runs_dir(fs::absolute(store).parent_path());  // in which it lies
  const fs::path file = store.string() + ".writers";
  std::optional<FileLock> lock = FileLock::try_acquire(file);
  if (!lock) {
    std::promise<void> acquired;
    // Without a thread for it the wait is silent.
    const auto policy = std::launch::async | std::launch::deferred;
    const auto notice = std::async(policy, [&, taken = acquired.get_future()] {
      if (taken.wait_for(watch.patience) != std::future_status::timeout) return;
      const std::string text = waiting_text(store, file);
      watch.waiting ? watch.waiting(text) : say_waiting(text);
    });
    lock = FileLock::acquire(file);
    acquired.set_value();
  }
  lock->sign(run::host_name());
  return std::move(*lock);
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
  std::vector<ReadRun> runs = {};
};

/// Reads the runs of the batch. One that cannot be read stays empty; `ingest` reports it.
std::unique_ptr<Batch> read_batch(const std::vector<ChangedRun>& changed, const Batch& empty) {
  auto batch = std::make_unique<Batch>(empty);
  for (size_t i = batch->begin; i < batch->end; ++i) {
    ReadRun& read = batch->runs.emplace_back();
    try {
      if (changed[i].is_new) read.description = describe(changed[i].folder);
      read.events = read_new_events(changed[i].folder, changed[i].events_offset);
    } catch (const Error&) {
      read.events.lines.begin = -1;
    }
  }
  return batch;
}

/// In one transaction.
void ingest_batch(SQLite::Database& database,
                  Ingester& ingester,
                  const std::vector<ChangedRun>& changed,
                  Batch& batch,
                  SyncReport& report) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (size_t i = batch.begin; i < batch.end; ++i) {
    const ChangedRun& run = changed[i];
    try {
      ingester.ingest(run.folder, batch.runs[i - batch.begin]);
      ++(run.is_new ? report.added : report.updated);
    } catch (const Error& problem) {
      ingester.remove(run.folder.id());  // what an earlier look found is not true any more
      report.left_out[problem.message()].push_back(run.folder.id());
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
  std::vector<std::string> misnamed;  ///< folders with a run's files whose name no run can have
  std::vector<std::string> unnamed;   ///< folders with a run's log and without run.json
  std::vector<std::string> linked;    ///< links in the place of a run folder
  std::map<std::string, std::vector<std::string>> closed;  ///< that cannot be read, by the reason

  bool none() const { return changed.empty() && removed.empty(); }
};

/// Changes when another connection has written to the database (PRAGMA data_version).
int64_t data_version(SQLite::Database& database) {
  return database.execAndGet("PRAGMA data_version").getInt64();
}

/// Why the files of a folder cannot be looked at, "" where they can.
std::string reason_closed(const fs::path& folder) {
  std::error_code problem;
  [[maybe_unused]] const bool there = fs::exists(run::RunFolder(folder).record_file(), problem);
  return problem ? "its folder cannot be read: " + problem.message() : "";
}

Changes find_changes(SQLite::Database& database,
                     const fs::path& runs_dir,
                     const CountProgress& looking) {
  std::map<std::string, KnownRun> known = read_known_runs(database);
  Changes changes;
  FolderNames found = folder_names(runs_dir);
  changes.linked = std::move(found.linked);
  const std::vector<std::string>& names = found.own;
  // Three files of each run, on all cores: a network file system is slow.
  std::vector<FileState> states(names.size());
  parallel_for(
      names.size(),
      [&](size_t i) { states[i] = file_state_of(run::RunFolder(runs_dir / names[i])); },
      looking);
  for (size_t i = 0; i < names.size(); ++i) {
    const FileState& now = states[i];
    if (now.record == FileStamp()) {  // not a run, or removed meanwhile
      const std::string reason = reason_closed(runs_dir / names[i]);
      if (now.events != FileStamp()) changes.unnamed.push_back(names[i]);
      if (!reason.empty()) changes.closed[reason].push_back(names[i]);
      continue;
    }
    if (!run::is_run_name(names[i])) {
      changes.misnamed.push_back(names[i]);
      continue;
    }
    run::RunFolder folder(runs_dir / names[i]);
    const auto before = known.find(names[i]);
    if (before == known.end()) {
      changes.changed.push_back({std::move(folder)});
      continue;
    }
    if (is_changed(folder, now, before->second))
      changes.changed.push_back({std::move(folder), false, before->second.files.events_offset});
    known.erase(before);
  }
  for (const auto& [run_id, run] : known) changes.removed.push_back(run_id);
  return changes;
}

}  // namespace

void sync_runs(SQLite::Database& database,
               const fs::path& store,
               const fs::path& runs_dir,
               SyncReport& report,
               const SyncWatch& watch) {
  const int64_t version = data_version(database);
  Changes changes = find_changes(database, runs_dir, watch.looking);
  if (!changes.misnamed.empty()) report.left_out["no run can have such a name"] = changes.misnamed;
  if (!changes.unnamed.empty())
    report.left_out["the folder has no run.json; restore the file, or remove the folder"] =
        changes.unnamed;
  if (!changes.linked.empty()) report.left_out[run::linked_run_text] = changes.linked;
  for (const auto& [reason, names] : changes.closed) report.left_out[reason] = names;
  if (changes.none()) return;
  std::optional<FileLock> lock = writer_lock(store, watch);
  // Another process may have ingested most of it while this one waited.
  if (data_version(database) != version) changes = find_changes(database, runs_dir, {});
  Ingester ingester(database);
  remove_runs(database, ingester, changes.removed);
  report.removed = static_cast<int>(changes.removed.size());
  const std::vector<ChangedRun>& changed = changes.changed;
  size_t next = 0;
  const auto next_batch = [&]() -> std::optional<Batch> {
    if (next == changed.size()) return std::nullopt;
    const size_t begin = next;
    next += batch_size(changed, begin);
    return Batch{begin, next};
  };
  // While one batch is written, all cores read the next ones.
  ordered_pipeline(
      next_batch,
      [&](const Batch& empty) { return read_batch(changed, empty); },
      [&](const std::unique_ptr<Batch>& batch) {
        if (!lock) lock = writer_lock(store, watch);
        ingest_batch(database, ingester, changed, *batch, report);
        lock.reset();  // lets other writers in after each batch
        if (watch.progress) watch.progress(batch->end, changed.size());
        return true;
      });
}

}  // namespace forge::store
