#include "core/results/store/result_store.h"

#include <algorithm>
#include <map>

#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/parallel.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/project/workspace.h"
#include "core/project/workspace_id.h"
#include "core/results/store/database.h"
#include "core/results/store/ingest.h"
#include "core/results/store/sync.h"
#include "core/run/moved_files.h"
#include "core/run/queue/owners.h"

namespace forge::store {
namespace {

/// The conditions of the filter.
WhereClause where(const RunFilter& filter) {
  WhereClause where;
  where.one_of("config", filter.configs);
  where.equal("project", filter.project);
  where.equal("profile", filter.profile);
  if (filter.status) where.equal("status", run::name_of(*filter.status));
  if (!filter.archived) where.add("archived = 0");
  return where;
}

void read_score(RowReader& row, Scores& scores) {
  std::string name;
  row.value(name);
  worker::Score& score = scores[name];
  row.value(score.value);
  row.value(score.count);
}

int64_t count_of(SQLite::Database& database, const WhereClause& condition) {
  SQLite::Statement statement(database, "SELECT count(*) FROM runs" + condition.sql());
  condition.bind(statement);
  return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

/// Runs with their last scores, read in one transaction.
std::vector<RunSummary> select_runs(SQLite::Database& database, const WhereClause& condition) {
  SQLite::Transaction transaction(database);
  std::map<std::string, Scores> scores;
  SQLite::Statement of_last_evaluation(
      database,
      "SELECT run_id, scores.name, value, count FROM runs JOIN scores ON run_id = id AND "
      "scores.step = eval_step" +
          condition.sql());
  condition.bind(of_last_evaluation);
  while (of_last_evaluation.executeStep()) {
    std::string run_id;
    RowReader row(of_last_evaluation);
    row.value(run_id);
    read_score(row, scores[run_id]);
  }
  SQLite::Statement statement(database,
                              "SELECT " + join(column_names(), ", ") + " FROM runs" +
                                  condition.sql() + " ORDER BY created DESC, id DESC");
  condition.bind(statement);
  std::vector<RunSummary> runs;
  runs.reserve(static_cast<size_t>(count_of(database, condition)));
  while (statement.executeStep()) {
    RunSummary& run = runs.emplace_back(read_run(statement));
    // Whoever asks for runs opens the folders of these names.
    if (run.id.empty() || run.id[0] == '.' || run.id.find('/') != std::string::npos)
      throw Error("the results store is damaged: it has a run whose id is no name of a folder",
                  reindex_hint,
                  ExitCode::failed);
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

/// Throws Error for a store that something else has changed.
[[noreturn]] void refuse_damaged(const std::string& fault) {
  throw Error("the results store is damaged: " + fault, reindex_hint, ExitCode::failed);
}

nlohmann::json json_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  nlohmann::json json = read_json_text(text);
  if (!json.is_object()) refuse_damaged("a text in it is no JSON object");
  return json;
}

/// The text that a statement gives for each run, "" for none.
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

/// "run 'a' is left out: …", "12 runs are left out (a, b, c, …): …"
std::string left_out_text(const std::vector<std::string>& ids, const std::string& reason) {
  constexpr size_t most = 3;
  if (ids.size() == 1) return "run '" + ids[0] + "' is left out: " + reason;
  std::vector<std::string> shown(ids.begin(), ids.begin() + std::min(most, ids.size()));
  if (ids.size() > most) shown.emplace_back("…");
  return std::to_string(ids.size()) + " runs are left out (" + join(shown, ", ") + "): " + reason;
}

/// What is wrong with files of runs that are listed all the same.
std::vector<std::string> file_warnings(SQLite::Database& database) {
  constexpr size_t most = 100;
  SQLite::Statement statement(
      database,
      "SELECT text FROM problems ORDER BY run_id, source, place LIMIT " + std::to_string(most + 1));
  std::vector<std::string> warnings;
  while (statement.executeStep()) warnings.push_back(statement.getColumn(0).getString());
  if (warnings.size() > most) warnings.back() = "there are more damaged lines and files of runs";
  return warnings;
}

/// Warnings about runs that tables leave out because they are not completed any more.
std::vector<std::string> damage_warnings(SQLite::Database& database, SyncReport& report) {
  constexpr size_t most = 3;
  SQLite::Statement statement(database,
                              "SELECT id, failure_reason, failure_hint FROM runs WHERE "
                              "damaged = 1 ORDER BY id");
  std::vector<std::string> warnings;
  while (statement.executeStep()) {
    RowReader row(statement);
    std::string reason, hint;
    row.value(report.damaged.emplace_back());
    row.value(reason);
    row.value(hint);
    warnings.push_back("tables leave out run '" + report.damaged.back() + "': " + reason + "; " +
                       hint);
  }
  if (warnings.size() <= most) return warnings;
  return {"tables leave out " + std::to_string(warnings.size()) +
          " runs that were completed and whose files are damaged since (" +
          join({report.damaged.begin(), report.damaged.begin() + most}, ", ") +
          ", …): restore their events.jsonl and config.json from copies, or train them again with "
          "--force"};
}

/// The workspace that the folder of a run lies in now, if it was moved with it. Throws Error where
/// its files are away for longer than a moment: tables would lack the run without a word.
std::string place_of(const RunSummary& run, const fs::path& runs_dir) {
  if (runs_dir.empty()) return run.workspace;
  const run::RunFolder folder(runs_dir / run.id);
  std::string workspace = run.workspace;
  try {
    call_patiently(
        moment, {}, [&] { workspace = run::workspace_of(folder, folder.record()).root; });
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    // A damaged one is reported by lists.
  }
  return workspace;
}

/// What the workspace that a run was made in is to that of the filter.
project::WorkspaceRelation relation_to(const RunFilter& filter,
                                       const project::RecordedWorkspace& recorded,
                                       const std::string& project) {
  using project::WorkspaceRelation;
  const WorkspaceRelation relation = project::relation_of(recorded, filter.workspace, project);
  const bool is_it = relation == WorkspaceRelation::same && !recorded.root.empty();
  const bool has_project = project::is_project_folder(fs::path(filter.workspace) / project);
  return is_it || has_project ? relation : WorkspaceRelation::another;
}

}  // namespace

ResultStore::ResultStore(fs::path path) : path_(std::move(path)), database_(open_database(path_)) {}
ResultStore::~ResultStore() = default;
ResultStore::ResultStore(ResultStore&&) noexcept = default;
ResultStore& ResultStore::operator=(ResultStore&&) noexcept = default;

SyncReport ResultStore::sync(const fs::path& runs_dir, const SyncWatch& watch) {
  SyncReport report;
  with_store_errors(path_, [&] {
    sync_benchmarks(*database_, runs_dir, report);
    sync_runs(*database_, path_, runs_dir, report, watch);
    for (const auto& warnings : {file_warnings(*database_), damage_warnings(*database_, report)})
      for (const std::string& warning : warnings)
        if (reported_.insert(warning).second) report.warnings.push_back(warning);
  });
  for (const auto& [reason, ids] : report.left_out) {
    const std::string warning = left_out_text(ids, reason);
    if (reported_.insert(warning).second) report.warnings.push_back(warning);
  }
  return report;
}

void ResultStore::fold_log() {
  with_store_errors(path_, [&] {
    SQLite::Statement fold(*database_, "PRAGMA wal_checkpoint(PASSIVE)");  // frames: all, folded
    const bool is_whole =
        fold.executeStep() && fold.getColumn(1).getInt() == fold.getColumn(2).getInt();
    if (!is_whole)
      throw Error("the results store '" + path_.string() + "' is in use", ExitCode::failed);
  });
}

std::vector<RunSummary> ResultStore::runs(const RunFilter& filter) const {
  std::vector<RunSummary> found =
      with_store_errors(path_, [&] { return select_runs(*database_, where(filter)); });
  if (filter.workspace.empty()) return found;
  std::map<std::vector<std::string>, project::WorkspaceRelation> known;
  const auto relation_of = [&](const RunSummary& run) {
    const auto [found_one, is_new] =
        known.try_emplace({run.workspace, run.workspace_id, run.project});
    if (is_new)
      found_one->second = relation_to(filter, {run.workspace, run.workspace_id}, run.project);
    return found_one->second;
  };
  const auto is_another = [&](const RunSummary& run) {
    const project::WorkspaceRelation relation = relation_of(run);
    return (filter.own && project::is_gone(relation)) ||
           run::is_anothers_run(
               run::RunFolder(filter.runs_dir / run.id), relation, run.workspace_id);
  };
  std::vector<RunSummary> of_workspace;
  for (RunSummary& run : found) {
    if (is_another(run)) run.workspace = place_of(run, filter.runs_dir);
    if (!is_another(run)) of_workspace.push_back(std::move(run));
  }
  return of_workspace;
}

std::vector<ConfiguredRun> ResultStore::configured_runs(const RunFilter& filter) const {
  return with_configs(runs(filter));
}

std::vector<ConfiguredRun> ResultStore::with_configs(std::vector<RunSummary> found) const {
  const auto texts_of = [&](const std::string& sql) {
    return with_store_errors(path_, [&] { return select_texts(*database_, sql, found); });
  };
  const std::vector<std::string> configs = texts_of(select_config);
  const std::vector<std::string> environments = texts_of(select_environment);
  std::vector<ConfiguredRun> configured(found.size());
  // Parsing takes most of the time of a table of a thousand runs.
  parallel_for(found.size(), [&](size_t i) {
    configured[i] = {std::move(found[i]), json_or_null(configs[i]), json_or_null(environments[i])};
  });
  // Another process may have removed a run since it was found.
  const auto has_no_config = [&](const ConfiguredRun& each) { return each.config.is_null(); };
  for (const ConfiguredRun& each : configured)
    if (has_no_config(each) && run(each.summary.id))
      refuse_damaged("it has no config of run '" + each.summary.id + "'");
  configured.erase(std::remove_if(configured.begin(), configured.end(), has_no_config),
                   configured.end());
  return configured;
}

std::optional<RunSummary> ResultStore::run(const std::string& run_id) const {
  return with_store_errors(path_, [&]() -> std::optional<RunSummary> {
    WhereClause where;
    where.equal("id", run_id);
    std::vector<RunSummary> found = select_runs(*database_, where);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

std::vector<worker::TrainMetrics> ResultStore::train_metrics(const std::string& run_id) const {
  return with_store_errors(path_, [&] {
    SQLite::Statement statement(*database_,
                                std::string("SELECT ") + train_metrics_columns +
                                    " FROM train_metrics WHERE run_id = ? ORDER BY step");
    statement.bind(1, run_id);
    std::vector<worker::TrainMetrics> rows;
    while (statement.executeStep()) {
      worker::TrainMetrics& metrics = rows.emplace_back();
      RowReader row(statement);
      train_metrics_values(row, metrics);
    }
    return rows;
  });
}

std::vector<worker::Evaluation> ResultStore::evaluations(const std::string& run_id) const {
  return with_store_errors(path_, [&] {
    SQLite::Transaction transaction(*database_);
    std::map<int64_t, Scores> scores = select_scores(*database_, run_id);
    SQLite::Statement statement(
        *database_,
        "SELECT step, loss, tokens, seconds FROM evaluations WHERE run_id = ? ORDER BY step");
    statement.bind(1, run_id);
    std::vector<worker::Evaluation> rows;
    while (statement.executeStep()) {
      worker::Evaluation& evaluation = rows.emplace_back();
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

EvaluationRows ResultStore::evaluation_rows(const std::string& run_id) const {
  return with_store_errors(path_, [&] {
    SQLite::Statement statement(
        *database_,
        "SELECT rows FROM evaluations WHERE run_id = ? AND rows IS NOT NULL "
        "ORDER BY step DESC LIMIT 1");
    statement.bind(1, run_id);
    EvaluationRows rows;
    if (!statement.executeStep()) return rows;
    const nlohmann::json json = parse_json(statement.getColumn(0).getString());
    json.at(0).get_to(rows.losses);
    json.at(1).get_to(rows.tokens);
    return rows;
  });
}

std::vector<LossPoint> ResultStore::training_losses(const std::string& run_id) const {
  return with_store_errors(path_, [&] {
    return select_losses(*database_,
                         "SELECT step, tokens, loss, elapsed_seconds FROM train_metrics "
                         "WHERE run_id = ? ORDER BY step",
                         run_id);
  });
}

std::vector<LossPoint> ResultStore::evaluation_losses(const std::string& run_id) const {
  return with_store_errors(path_, [&] {
    return select_losses(*database_,
                         "SELECT evaluations.step, evaluations.step * tokens_per_step, loss, NULL "
                         "FROM evaluations JOIN runs ON id = run_id WHERE run_id = ? ORDER BY 1",
                         run_id);
  });
}

nlohmann::json ResultStore::config(const std::string& run_id) const {
  return with_store_errors(path_, [&] { return select_json(*database_, select_config, run_id); });
}

std::vector<benchmark::Record> ResultStore::benchmarks(const BenchmarkFilter& filter) const {
  return with_store_errors(path_, [&] {
    WhereClause where;
    where.one_of("config", filter.configs);
    where.equal("project", filter.project);
    if (filter.kind)
      where.equal("kind", benchmark::names_of(*filter.kind)[static_cast<size_t>(*filter.kind)]);
    SQLite::Statement statement(
        *database_, "SELECT record FROM benchmarks" + where.sql() + " ORDER BY created DESC, id");
    where.bind(statement);
    // As runs are: those of one that is away are another's where another user measured them.
    const auto is_anothers = [&](const benchmark::Record& record) {
      const std::string& id = record.call.workspace_id;
      const auto relation =
          project::relation_of({record.call.workspace, id}, filter.workspace, record.project);
      const bool is_away = relation == project::WorkspaceRelation::away && !id.empty();
      return relation == project::WorkspaceRelation::another ||
             (is_away && queue::is_of_other_user(benchmark::record_file(filter.runs_dir, record)));
    };
    std::vector<benchmark::Record> records;
    while (statement.executeStep()) {
      auto record = benchmark::record_from_json(json_or_null(statement.getColumn(0).getString()));
      if (filter.workspace.empty() || !is_anothers(record)) records.push_back(std::move(record));
    }
    return records;
  });
}

SyncReport reindex(const fs::path& path, const fs::path& runs_dir, const SyncWatch& watch) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const ScratchFolder aside(folder / (".reindex-" + process_digits()));
  const fs::path built = aside.path() / "forge.sqlite";
  const SyncReport report = [&] {
    ResultStore store(built);
    const SyncReport found = store.sync(runs_dir, watch);
    store.fold_log();  // which stays behind when its file is moved
    return found;
  }();
  replace_database(built, path);
  return report;
}

}  // namespace forge::store
