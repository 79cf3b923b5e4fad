#include "core/results/store/ingest.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/results/store/read_run.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"

namespace forge::store {
namespace {

/// The columns of `sources` behind run_id, in the order of FileState.
constexpr const char* file_state_columns =
    "record_size, record_modified_ns, record_inode, config_size, config_modified_ns, config_inode, "
    "events_size, events_modified_ns, events_inode, "
    "remarks_size, remarks_modified_ns, remarks_inode, events_offset";
FileState read_file_state(RowReader& row) {
  FileState state;
  for (FileStamp* stamp : {&state.record, &state.config, &state.events, &state.remarks})
    row.value(*stamp);
  row.value(state.events_offset);
  return state;
}

/// INSERT that replaces the row of the same id. `columns` is a list with commas.
std::string upsert_sql(const std::string& table, const std::string& columns) {
  const std::vector<std::string> names = split(columns, ',');
  const std::vector<std::string> marks(names.size(), "?");
  std::vector<std::string> updates;
  for (const std::string& name : names)
    updates.push_back(name + " = excluded." + std::string(trim(name)));
  return "INSERT INTO " + table + " (" + columns + ") VALUES (" + join(marks, ", ") +
         ") ON CONFLICT DO UPDATE SET " + join(updates, ", ");
}

/// Statements that remove a run: the rows that refer to it, then its own.
std::vector<SQLite::Statement> deletions(SQLite::Database& database) {
  std::vector<SQLite::Statement> statements;
  for (const char* table : {"sources",
                            "problems",
                            "configs",
                            "environments",
                            "train_metrics",
                            "evaluations",
                            "lost_evaluations",
                            "lost_train_metrics",
                            "scores"})
    statements.emplace_back(database, std::string("DELETE FROM ") + table + " WHERE run_id = ?");
  statements.emplace_back(database, "DELETE FROM runs WHERE id = ?");
  return statements;
}

/// Writes the rows of runs. The caller holds a write transaction, since new lines begin at the
/// offset that the database holds.
class Ingester {
 public:
  explicit Ingester(SQLite::Database& database)
      : begin_run_(database, "SAVEPOINT run"),
        undo_run_(database, "ROLLBACK TO run"),
        end_run_(database, "RELEASE run"),
        select_state_(
            database,
            std::string("SELECT ") + file_state_columns + " FROM sources WHERE run_id = ?"),
        select_run_(database, "SELECT " + join(column_names(), ", ") + " FROM runs WHERE id = ?"),
        upsert_run_(database, upsert_sql("runs", join(column_names(), ", "))),
        upsert_state_(database,
                      upsert_sql("sources", std::string("run_id, ") + file_state_columns)),
        delete_run_(deletions(database)),
        delete_problems_(database, "DELETE FROM problems WHERE run_id = ? AND source = ?"),
        count_problems_(database,
                        "SELECT count(*) FROM problems WHERE run_id = ? AND source = 'events'"),
        insert_problem_(database, upsert_sql("problems", "run_id, source, place, text")),
        upsert_config_(database, upsert_sql("configs", "run_id, config")),
        upsert_environment_(database, upsert_sql("environments", "run_id, environment")),
        upsert_train_metrics_(
            database, upsert_sql("train_metrics", std::string("run_id, ") + train_metrics_columns)),
        upsert_evaluation_(
            database,
            upsert_sql("evaluations",
                       "run_id, step, loss, validation_loss, tokens, seconds, rows")),
        delete_scores_(database, "DELETE FROM scores WHERE run_id = ? AND step = ?"),
        insert_score_(database, upsert_sql("scores", "run_id, step, name, value, count")),
        select_last_metrics_(database,
                             std::string("SELECT ") + train_metrics_columns +
                                 " FROM train_metrics WHERE run_id = ? AND step <= ? "
                                 "ORDER BY step DESC LIMIT 1"),
        select_last_speed_(
            database,
            "SELECT tokens_per_second FROM train_metrics WHERE run_id = ? AND "
            "step <= ? AND tokens_per_second IS NOT NULL ORDER BY step DESC LIMIT 1"),
        select_last_evaluation_(
            database,
            "SELECT step, loss, validation_loss FROM evaluations WHERE run_id = ? "
            "AND step <= ? ORDER BY step DESC LIMIT 1"),
        keep_lost_evaluations_(
            database,
            "INSERT OR IGNORE INTO lost_evaluations (run_id, step, loss) "
            "SELECT run_id, step, loss FROM evaluations WHERE run_id = ? AND step > ?"),
        // A window that began before step 2? is another one where it is trained anew.
        keep_lost_windows_(
            database,
            "INSERT OR IGNORE INTO lost_train_metrics (run_id, step, loss) "
            "SELECT run_id, step, CASE WHEN ?2 = 0 OR EXISTS (SELECT 1 FROM train_metrics AS "
            "earlier WHERE earlier.run_id = lost.run_id AND earlier.step BETWEEN ?2 AND "
            "lost.step - 1) THEN loss END "
            "FROM train_metrics AS lost WHERE run_id = ?1 AND step > ?2"),
        count_lost_windows_(database, "SELECT count(*) FROM lost_train_metrics WHERE run_id = ?"),
        count_redone_evaluations_(database,
                                  "SELECT count(*) FROM lost_evaluations JOIN evaluations "
                                  "USING (run_id, step) WHERE run_id = ? "
                                  "AND lost_evaluations.loss IS NOT evaluations.loss"),
        count_redone_windows_(database,
                              "SELECT count(*) FROM lost_train_metrics JOIN train_metrics "
                              "USING (run_id, step) WHERE run_id = ? "
                              "AND lost_train_metrics.loss != train_metrics.loss") {
    for (const char* table : {"train_metrics", "evaluations", "scores"})
      delete_later_.emplace_back(
          database, std::string("DELETE FROM ") + table + " WHERE run_id = ? AND step > ?");
  }

  /// Brings a run's rows up to its files. What was `read` is used if it is still what the files say
  /// behind the offset that the database holds; another process may have moved that. A line that
  /// cannot be read is skipped and becomes a problem. Throws Error, and leaves the run's rows as
  /// they were, if run.json or config.json cannot be read.
  void ingest(const run::RunFolder& folder, ReadRun& read) {
    execute(begin_run_);
    try {
      ingest_files(folder, read);
    } catch (const Error&) {
      execute(undo_run_);
      execute(end_run_);
      throw;
    }
    execute(end_run_);
  }

  /// Removes a run and all rows that refer to it.
  void remove(const std::string& run_id) {
    for (SQLite::Statement& statement : delete_run_) execute(statement, run_id);
  }

 private:
  void ingest_files(const run::RunFolder& folder, ReadRun& read) {
    FileState now = file_state_of(folder);
    std::optional<FileState> before = read_state(folder.id());
    if (before && !continues(*before, now, folder.events_file())) {
      remove(folder.id());
      before.reset();
    }
    if (!before && !(read.description && read.description->record == now.record &&
                     read.description->config == now.config))
      read.description = describe(folder);
    std::optional<int64_t> max_steps;  // of the config, where it has just been read
    if (!before) max_steps = read.description->run.max_steps;
    RunSummary run = before ? read_summary(folder.id()) : add_run(*std::move(read.description));
    const int64_t offset = before ? before->events_offset : 0;
    if (read.events.lines.begin != offset) read.events = read_new_events(folder, offset);
    now.events = read.events.stamp;
    run::EventBatch& batch = read.events.lines;
    ingest_lines(folder, batch.lines, run);
    while (!batch.whole) {
      batch.lines.clear();  // before the next are read
      batch = run::read_event_lines(folder.events_file(), batch.end, max_event_bytes);
      ingest_lines(folder, batch.lines, run);
    }
    now.events_offset = batch.end;
    if (now.events_offset != offset) write_environment(folder);
    const run::RunStatus status = folder.status(max_steps);
    run.status = status.state;
    run.damaged = status.damaged ? 1 : 0;
    run.diverged = status.diverged ? 1 : 0;
    const bool is_completed = status.state == run::RunState::completed;  // with a remark, perhaps
    run.failure_reason = is_completed ? "" : status.reason;
    run.failure_hint = is_completed ? "" : status.hint;
    // What a run diverged to is what it came to.
    const bool has_failed = status.state == run::RunState::failed || status.interrupted;
    const bool is_lost = has_failed && !status.diverged;
    if (is_lost && !status.damaged) keep_values_up_to(run.kept_step, run);
    add_remarks(folder, run);
    write_summary(run);
    execute(upsert_state_,
            folder.id(),
            now.record,
            now.config,
            now.events,
            now.remarks,
            now.events_offset);
  }

  /// Binds the values in their order and runs the statement.
  template <class... Values>
  static void execute(SQLite::Statement& statement, const Values&... values) {
    statement.reset();
    [[maybe_unused]] Binder binder(statement);
    (binder.value(values), ...);
    statement.exec();
  }

  void add_problem(const std::string& run_id,
                   const std::string& source,
                   int64_t place,
                   const std::string& text) {
    execute(insert_problem_, run_id, source, place, text);
  }

  /// So many damaged lines of a log are told one by one.
  static constexpr int64_t most_lines = 20;

  void add_damaged_line(const run::RunFolder& folder, const run::ReadLine& line) {
    const int64_t known = count(count_problems_, folder.id());
    const std::string file = "'" + folder.events_file().string() + "'";
    if (known < most_lines) {
      add_problem(folder.id(),
                  "events",
                  line.offset,
                  file + ", byte " + std::to_string(line.offset) + ": " + line.problem +
                      "; the line is skipped");
    } else if (known == most_lines) {
      add_problem(folder.id(),
                  "events",
                  line.offset,
                  file + " has more such lines from byte " + std::to_string(line.offset) + " on");
    }
  }

  /// Annotations that cannot be read are a problem; the run is kept.
  void add_remarks(const run::RunFolder& folder, RunSummary& run) {
    run::Annotations remarks;
    execute(delete_problems_, run.id, std::string("remarks"));
    try {
      remarks = run::read_annotations(folder);
    } catch (const Error& problem) {
      add_problem(run.id, "remarks", 0, problem.message());
    }
    run.archived = remarks.archived ? 1 : 0;
    run.note = remarks.note;
    run.tags = remarks.tags;
  }

  std::optional<FileState> read_state(const std::string& run_id) {
    select_state_.reset();
    select_state_.bind(1, run_id);
    if (!select_state_.executeStep()) return std::nullopt;
    RowReader row(select_state_);
    const FileState state = read_file_state(row);
    select_state_.reset();
    return state;
  }

  RunSummary read_summary(const std::string& run_id) {
    select_run_.reset();
    select_run_.bind(1, run_id);
    if (!select_run_.executeStep()) throw Error("run '" + run_id + "' has a source but no row");
    RunSummary run = read_run(select_run_);
    select_run_.reset();
    return run;
  }

  void write_summary(const RunSummary& run) {
    upsert_run_.reset();
    Binder binder(upsert_run_);
    columns(binder, run);
    upsert_run_.exec();
  }

  /// Its row is written once the events are read.
  RunSummary add_run(Description description) {
    execute(upsert_config_, description.run.id, description.config_text);
    return std::move(description.run);
  }

  /// What a run ran on decides none of its numbers: a file that cannot be read is a problem alone.
  void write_environment(const run::RunFolder& folder) {
    execute(delete_problems_, folder.id(), std::string("environment"));
    if (!fs::exists(folder.environment_file())) return;
    const auto unknown = [&](const std::string& reason) {
      add_problem(folder.id(), "environment", 0, reason + ": what the run ran on is unknown");
    };
    try {
      const nlohmann::json environment = read_json_file(folder.environment_file());
      if (environment.is_object())
        execute(upsert_environment_, folder.id(), json_text(environment));
      else
        unknown("'" + folder.environment_file().string() + "' is not a JSON object");
    } catch (const Error& problem) {
      unknown(problem.message());
    }
  }

  void ingest_lines(const run::RunFolder& folder,
                    const std::vector<run::ReadLine>& lines,
                    RunSummary& run) {
    for (const run::ReadLine& line : lines) {
      if (line.event) {
        const auto& event = line.event->event;
        const auto* started = run::started_of(*line.event);
        if (started) forget_later_steps(started->first_step, run);
        apply(*line.event, run);
        if (event) write_event(*event, run.id);
        continue;
      }
      add_damaged_line(folder, line);
    }
    run.lost_windows = count(count_lost_windows_, run.id);
    run.redone_losses =
        count(count_redone_evaluations_, run.id) + count(count_redone_windows_, run.id);
    apply_times(lines, run);
  }

  /// A resumed run repeats the steps after its checkpoint, and may stop before it reaches the step
  /// at which the earlier attempt died: what that said of them is about weights that are gone.
  void forget_later_steps(int64_t first_step, RunSummary& run) {
    execute(keep_lost_evaluations_, run.id, first_step);
    execute(keep_lost_windows_, run.id, first_step);
    for (SQLite::Statement& statement : delete_later_) execute(statement, run.id, first_step);
    keep_values_up_to(first_step, run);
  }

  static int64_t count(SQLite::Statement& statement, const std::string& run_id) {
    statement.reset();
    statement.bind(1, run_id);
    statement.executeStep();
    const int64_t count = statement.getColumn(0).getInt64();
    statement.reset();
    return count;
  }

  /// The run's row has the last values of the weights that it goes on from; the curves keep the
  /// steps of a lost attempt until they are trained again.
  void keep_values_up_to(int64_t step, RunSummary& run) {
    if (run.step <= step) return;
    KeptMetrics kept;
    read_first(select_last_metrics_, run.id, step, [&](RowReader& row) {
      train_metrics_values(row, kept.train.emplace());
    });
    read_first(select_last_speed_, run.id, step, [&](RowReader& row) {
      row.value(kept.tokens_per_second);
    });
    read_first(select_last_evaluation_, run.id, step, [&](RowReader& row) {
      worker::Evaluation& evaluation = kept.evaluation.emplace();
      row.value(evaluation.step);
      row.value(evaluation.loss);
      row.value(evaluation.validation_loss);
    });
    go_back(kept, run);
  }

  /// Reads the first row that the statement finds for a run up to a step, if there is one.
  template <class Read>
  static void read_first(SQLite::Statement& statement,
                         const std::string& run_id,
                         int64_t step,
                         Read read) {
    statement.reset();
    statement.bind(1, run_id);
    statement.bind(2, step);
    if (statement.executeStep()) {
      RowReader row(statement);
      read(row);
    }
    statement.reset();
  }

  void write_event(const worker::Event& event, const std::string& run_id) {
    if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
      upsert_train_metrics_.reset();
      Binder row(upsert_train_metrics_);
      row.value(run_id);
      train_metrics_values(row, *metrics);
      upsert_train_metrics_.exec();
    } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
      write_evaluation(*evaluation, run_id);
    }
  }

  /// An evaluation made again takes the place of the earlier one with all its scores.
  void write_evaluation(const worker::Evaluation& evaluation, const std::string& run_id) {
    std::optional<std::string> rows;
    const std::vector<double>& losses = evaluation.row_losses;
    const bool are_numbers =
        std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
    if (!losses.empty() && losses.size() == evaluation.row_tokens.size() && are_numbers)
      rows = json_text(nlohmann::json::array({losses, evaluation.row_tokens}));
    execute(upsert_evaluation_,
            run_id,
            evaluation.step,
            evaluation.loss,
            evaluation.validation_loss,
            evaluation.tokens,
            evaluation.seconds,
            rows);
    execute(delete_scores_, run_id, evaluation.step);
    for (const auto& [name, score] : evaluation.scores) {
      execute(insert_score_, run_id, evaluation.step, name, score.value, score.count);
    }
  }

  // Around a run. Prepared once: SQLite::Savepoint would parse its statements for each.
  SQLite::Statement begin_run_;
  SQLite::Statement undo_run_;
  SQLite::Statement end_run_;
  SQLite::Statement select_state_;
  SQLite::Statement select_run_;
  SQLite::Statement upsert_run_;
  SQLite::Statement upsert_state_;
  std::vector<SQLite::Statement> delete_run_;  ///< with all rows that refer to it
  SQLite::Statement delete_problems_;
  SQLite::Statement count_problems_;
  SQLite::Statement insert_problem_;
  SQLite::Statement upsert_config_;
  SQLite::Statement upsert_environment_;
  SQLite::Statement upsert_train_metrics_;
  SQLite::Statement upsert_evaluation_;
  SQLite::Statement delete_scores_;
  SQLite::Statement insert_score_;
  SQLite::Statement select_last_metrics_;
  SQLite::Statement select_last_speed_;
  SQLite::Statement select_last_evaluation_;
  SQLite::Statement keep_lost_evaluations_;
  SQLite::Statement keep_lost_windows_;
  SQLite::Statement count_lost_windows_;
  SQLite::Statement count_redone_evaluations_;
  SQLite::Statement count_redone_windows_;
  std::vector<SQLite::Statement> delete_later_;  ///< rows behind a step
};

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
