#include "core/store/result_store.h"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>

#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/store/benchmark_index.h"
#include "core/store/database.h"
#include "core/store/ingest.h"
#include "core/store/rows.h"

namespace forge::store {
namespace {

/// A transaction holds the write lock for about this much work.
constexpr size_t max_runs_a_batch = 64;
constexpr int64_t max_bytes_a_batch = int64_t{4} << 20;

struct KnownRun {
  Source source;
  run::RunState status = run::RunState::queued;
};

std::map<std::string, KnownRun> read_known_runs(SQLite::Database& database) {
  SQLite::Statement statement(
      database,
      "SELECT id, status, record_size, record_modified_ns, record_inode, events_size, "
      "events_modified_ns, events_inode, remarks_size, remarks_modified_ns, remarks_inode, "
      "events_offset FROM runs JOIN sources ON run_id = id");
  std::map<std::string, KnownRun> known;
  while (statement.executeStep()) {
    std::string id;
    KnownRun run;
    RowReader row(statement);
    row.value(id);
    row.value(run.status);
    for (FileStamp* stamp : {&run.source.record, &run.source.events, &run.source.remarks}) {
      row.value(stamp->size);
      row.value(stamp->modified_ns);
      row.value(stamp->inode);
    }
    row.value(run.source.events_offset);
    known.emplace(std::move(id), run);
  }
  return known;
}

/// Of the folders below `runs_dir`, sorted; one whose name begins with a dot is no run. The kind of
/// an entry is known without asking for it: at ten thousand runs every question counts.
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

/// Files tell of every change but one: a supervisor that dies without a word leaves them as they
/// were, so a run that has not ended is asked for its state.
bool has_news(const run::RunFolder& folder, const Source& now, const KnownRun& known) {
  if (now.record != known.source.record || now.events != known.source.events ||
      now.remarks != known.source.remarks)
    return true;
  return !is_final(known.status) && folder.state() != known.status;
}

struct ChangedRun {
  run::RunFolder folder;
  bool is_new = true;
  int64_t events_offset = 0;  ///< up to which they are known
};

/// Writers take turns in the order in which they came. SQLite's own waiting is by chance: with many
/// writers some would wait for seconds.
FileLock writers_turn(const fs::path& store) {
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

/// Consecutive changed runs that are taken up in one transaction, and their new events.
struct Batch {
  size_t begin = 0, end = 0;
  std::vector<ReadAhead> ahead;
};

/// The batch that begins with run `begin`, read by all cores; nothing of a file that cannot be
/// read, which ingest reports.
Batch read_batch(const std::vector<ChangedRun>& changed, size_t begin) {
  Batch batch{begin, begin + batch_size(changed, begin), {}};
  batch.ahead.resize(batch.end - begin);
  parallel_for(batch.ahead.size(), [&](size_t i) {
    const ChangedRun& run = changed[begin + i];
    try {
      batch.ahead[i] = read_ahead(run.folder.events_file(), run.events_offset);
    } catch (const Error&) {
      batch.ahead[i].begin = -1;
    }
  });
  return batch;
}

/// In one transaction.
void ingest_batch(SQLite::Database& database,
                  Ingester& ingester,
                  const std::vector<ChangedRun>& changed,
                  const Batch& batch,
                  SyncReport& report) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (size_t i = batch.begin; i < batch.end; ++i) {
    const ChangedRun& run = changed[i];
    try {
      ingester.ingest(run.folder, batch.ahead[i - batch.begin], report.warnings);
      ++(run.is_new ? report.added : report.updated);
    } catch (const Error& problem) {
      report.warnings.push_back("run '" + run.folder.id() + "' is left out: " + problem.message());
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
  std::vector<std::string> gone;

  bool none() const { return changed.empty() && gone.empty(); }
};

Changes find_changes(SQLite::Database& database, const fs::path& runs_dir) {
  std::map<std::string, KnownRun> known = read_known_runs(database);
  Changes changes;
  const std::vector<std::string> names = folder_names(runs_dir);
  // Three files of each run are looked at: on all cores, as a file system may take its time.
  std::vector<Source> stamps(names.size());
  parallel_for(names.size(),
               [&](size_t i) { stamps[i] = stamps_of(run::RunFolder(runs_dir / names[i])); });
  for (size_t i = 0; i < names.size(); ++i) {
    const Source& now = stamps[i];
    if (now.record == FileStamp()) continue;  // no run, or none any more
    run::RunFolder folder(runs_dir / names[i]);
    const auto found = known.find(names[i]);
    if (found == known.end()) {
      changes.changed.push_back({std::move(folder)});
      continue;
    }
    if (has_news(folder, now, found->second))
      changes.changed.push_back({std::move(folder), false, found->second.source.events_offset});
    known.erase(found);
  }
  for (const auto& [run_id, run] : known) changes.gone.push_back(run_id);
  return changes;
}

struct WhereClause {
  std::string sql;
  std::vector<std::string> values;
};

/// The filter as " WHERE …", "" where it asks nothing.
WhereClause where(const RunFilter& filter) {
  std::vector<std::string> parts;
  WhereClause condition;
  const auto require = [&](const std::string& part, const std::string& value) {
    parts.push_back(part);
    condition.values.push_back(value);
  };
  if (!filter.configs.empty()) {
    const std::vector<std::string> marks(filter.configs.size(), "?");
    parts.push_back("config IN (" + join(marks, ", ") + ")");
    condition.values = filter.configs;
  }
  if (!filter.project.empty()) require("project = ?", filter.project);
  if (!filter.profile.empty()) require("profile = ?", filter.profile);
  if (filter.status) require("status = ?", run::name_of(*filter.status));
  if (!filter.archived) parts.push_back("archived = 0");
  if (!parts.empty()) condition.sql = " WHERE " + join(parts, " AND ");
  return condition;
}

void bind_all(SQLite::Statement& statement, const std::vector<std::string>& values) {
  Binder binder(statement);
  for (const std::string& value : values) binder.value(value);
}

using Scores = std::map<std::string, protocol::Score>;

void read_score(RowReader& row, Scores& scores) {
  std::string name;
  row.value(name);
  protocol::Score& score = scores[name];
  row.value(score.value);
  row.value(score.count);
}

int64_t count_of(SQLite::Database& database, const WhereClause& condition) {
  SQLite::Statement statement(database, "SELECT count(*) FROM runs" + condition.sql);
  bind_all(statement, condition.values);
  return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

/// Runs with their last scores. Both are read in one transaction, so that they belong together.
std::vector<RunSummary> select_runs(SQLite::Database& database, const WhereClause& condition) {
  SQLite::Transaction transaction(database);
  std::map<std::string, Scores> scores;
  SQLite::Statement of_last_evaluation(
      database,
      "SELECT run_id, scores.name, value, count FROM runs JOIN scores ON run_id = id AND "
      "scores.step = eval_step" +
          condition.sql);
  bind_all(of_last_evaluation, condition.values);
  while (of_last_evaluation.executeStep()) {
    std::string run_id;
    RowReader row(of_last_evaluation);
    row.value(run_id);
    read_score(row, scores[run_id]);
  }
  SQLite::Statement statement(database,
                              "SELECT " + join(run_column_names(), ", ") + " FROM runs" +
                                  condition.sql + " ORDER BY created DESC, id DESC");
  bind_all(statement, condition.values);
  std::vector<RunSummary> runs;
  runs.reserve(static_cast<size_t>(count_of(database, condition)));
  while (statement.executeStep()) {
    RunSummary& run = runs.emplace_back(read_run(statement));
    const auto found = scores.find(run.id);
    if (found != scores.end()) run.scores = std::move(found->second);
  }
  return runs;
}

/// The scores of a run by the step of their evaluation.
std::map<int64_t, Scores> select_scores(SQLite::Database& database, const std::string& run_id) {
  SQLite::Statement statement(database,
                              "SELECT step, name, value, count FROM scores WHERE run_id = ?");
  statement.bind(1, run_id);
  std::map<int64_t, Scores> scores;
  while (statement.executeStep()) {
    int64_t step = 0;
    RowReader row(statement);
    row.value(step);
    read_score(row, scores[step]);
  }
  return scores;
}

std::vector<LossPoint> select_losses(SQLite::Database& database,
                                     const std::string& sql,
                                     const std::string& run_id) {
  SQLite::Statement statement(database, sql);
  statement.bind(1, run_id);
  std::vector<LossPoint> points;
  while (statement.executeStep()) {
    LossPoint& point = points.emplace_back();
    RowReader row(statement);
    row.value(point.step);
    row.value(point.tokens);
    row.value(point.loss);
    row.value(point.elapsed_seconds);
  }
  return points;
}

constexpr const char* select_config = "SELECT config FROM configs WHERE run_id = ?";
constexpr const char* select_environment = "SELECT environment FROM environments WHERE run_id = ?";

nlohmann::json json_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : parse_json(text);
}

/// What a statement gives for each run; "" where it gives nothing.
std::vector<std::string> select_texts(SQLite::Database& database,
                                      const std::string& sql,
                                      const std::vector<RunSummary>& runs) {
  SQLite::Statement statement(database, sql);
  std::vector<std::string> texts;
  for (const RunSummary& run : runs) {
    statement.reset();
    statement.bind(1, run.id);
    texts.push_back(statement.executeStep() ? statement.getColumn(0).getString() : "");
  }
  return texts;
}

nlohmann::json select_json(SQLite::Database& database,
                           const std::string& sql,
                           const std::string& run_id) {
  SQLite::Statement statement(database, sql);
  statement.bind(1, run_id);
  return statement.executeStep() ? json_or_null(statement.getColumn(0).getString()) : nullptr;
}

}  // namespace

ResultStore::ResultStore(fs::path path) : path_(std::move(path)), database_(open_database(path_)) {}
ResultStore::~ResultStore() = default;
ResultStore::ResultStore(ResultStore&&) noexcept = default;
ResultStore& ResultStore::operator=(ResultStore&&) noexcept = default;

SyncReport ResultStore::sync(const fs::path& runs_dir) {
  return guarded(path_, [&] {
    SyncReport report;
    sync_benchmarks(*database_, runs_dir, report);
    if (find_changes(*database_, runs_dir).none()) return report;

    // Looked for again when it is our turn: others have taken up most of it meanwhile.
    std::optional<FileLock> turn = writers_turn(path_);
    const Changes changes = find_changes(*database_, runs_dir);
    Ingester ingester(*database_);
    remove_runs(*database_, ingester, changes.gone);
    report.removed = static_cast<int>(changes.gone.size());
    const std::vector<ChangedRun>& changed = changes.changed;
    if (changed.empty()) return report;
    Batch batch = read_batch(changed, 0);
    while (true) {
      // While one batch is written the next one is read.
      std::future<Batch> next;
      if (batch.end < changed.size())
        next = std::async([&changed, begin = batch.end] { return read_batch(changed, begin); });
      if (!turn) turn = writers_turn(path_);
      ingest_batch(*database_, ingester, changed, batch, report);
      turn.reset();  // after each batch it is the next one's
      if (!next.valid()) return report;
      batch = next.get();
    }
  });
}

std::vector<RunSummary> ResultStore::runs(const RunFilter& filter) const {
  return guarded(path_, [&] { return select_runs(*database_, where(filter)); });
}

std::vector<ConfiguredRun> ResultStore::configured_runs(const RunFilter& filter) const {
  std::vector<RunSummary> found = runs(filter);
  const auto texts_of = [&](const std::string& sql) {
    return guarded(path_, [&] { return select_texts(*database_, sql, found); });
  };
  const std::vector<std::string> configs = texts_of(select_config);
  const std::vector<std::string> environments = texts_of(select_environment);
  std::vector<ConfiguredRun> configured(found.size());
  // Most of the time that a table of a thousand runs takes is spent here.
  parallel_for(found.size(), [&](size_t i) {
    configured[i] = {std::move(found[i]), json_or_null(configs[i]), json_or_null(environments[i])};
  });
  return configured;
}

std::optional<RunSummary> ResultStore::run(const std::string& run_id) const {
  return guarded(path_, [&]() -> std::optional<RunSummary> {
    std::vector<RunSummary> found = select_runs(*database_, {" WHERE id = ?", {run_id}});
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

std::vector<RunSummary> ResultStore::newest_completed(const RunFilter& filter) const {
  RunFilter completed = filter;
  completed.status = run::RunState::completed;
  std::map<std::string, RunSummary> newest;  // `runs` gives the newest first: it is the one to stay
  for (RunSummary& run : runs(completed)) newest.emplace(run.config, std::move(run));
  std::vector<RunSummary> result;
  for (auto& [config, run] : newest) result.push_back(std::move(run));
  return result;
}

std::vector<protocol::TrainMetrics> ResultStore::train_metrics(const std::string& run_id) const {
  return guarded(path_, [&] {
    SQLite::Statement statement(
        *database_,
        "SELECT step, tokens, loss, learning_rate, gradient_norm, tokens_per_second, "
        "elapsed_seconds FROM train_metrics WHERE run_id = ? ORDER BY step");
    statement.bind(1, run_id);
    std::vector<protocol::TrainMetrics> rows;
    while (statement.executeStep()) {
      protocol::TrainMetrics& metrics = rows.emplace_back();
      RowReader row(statement);
      row.value(metrics.step);
      row.value(metrics.tokens);
      row.value(metrics.loss);
      row.value(metrics.learning_rate);
      row.value(metrics.gradient_norm);
      row.value(metrics.tokens_per_second);
      row.value(metrics.elapsed_seconds);
    }
    return rows;
  });
}

std::vector<protocol::Evaluation> ResultStore::evaluations(const std::string& run_id) const {
  return guarded(path_, [&] {
    SQLite::Transaction transaction(*database_);
    std::map<int64_t, Scores> scores = select_scores(*database_, run_id);
    SQLite::Statement statement(
        *database_,
        "SELECT step, loss, tokens, seconds FROM evaluations WHERE run_id = ? ORDER BY step");
    statement.bind(1, run_id);
    std::vector<protocol::Evaluation> rows;
    while (statement.executeStep()) {
      protocol::Evaluation& evaluation = rows.emplace_back();
      RowReader row(statement);
      row.value(evaluation.step);
      row.value(evaluation.loss);
      row.value(evaluation.tokens);
      row.value(evaluation.seconds);
      evaluation.scores = std::move(scores[evaluation.step]);
    }
    return rows;
  });
}

std::vector<LossPoint> ResultStore::training_losses(const std::string& run_id) const {
  return guarded(path_, [&] {
    return select_losses(*database_,
                         "SELECT step, tokens, loss, elapsed_seconds FROM train_metrics "
                         "WHERE run_id = ? ORDER BY step",
                         run_id);
  });
}

std::vector<LossPoint> ResultStore::evaluation_losses(const std::string& run_id) const {
  return guarded(path_, [&] {
    return select_losses(*database_,
                         "SELECT evaluations.step, evaluations.step * tokens_per_step, loss, NULL "
                         "FROM evaluations JOIN runs ON id = run_id WHERE run_id = ? ORDER BY 1",
                         run_id);
  });
}

nlohmann::json ResultStore::config(const std::string& run_id) const {
  return guarded(path_, [&] { return select_json(*database_, select_config, run_id); });
}

nlohmann::json ResultStore::environment(const std::string& run_id) const {
  return guarded(path_, [&] { return select_json(*database_, select_environment, run_id); });
}

std::vector<benchmark::Record> ResultStore::benchmarks(const BenchmarkFilter& filter) const {
  return guarded(path_, [&] { return select_benchmarks(*database_, filter); });
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
