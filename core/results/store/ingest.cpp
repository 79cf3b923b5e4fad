#include "core/results/store/ingest.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/run/annotations.h"
#include "core/run/event_log.h"

namespace forge::store {
namespace {

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

/// Binds the values in their order and runs the statement.
template <class... Values>
void execute(SQLite::Statement& statement, const Values&... values) {
  statement.reset();
  [[maybe_unused]] Binder binder(statement);
  (binder.value(values), ...);
  statement.exec();
}

/// Reads the first row that the statement finds for a run up to a step, if there is one.
template <class Read>
void read_first(SQLite::Statement& statement, const std::string& run_id, int64_t step, Read read) {
  statement.reset();
  statement.bind(1, run_id);
  statement.bind(2, step);
  if (statement.executeStep()) {
    RowReader row(statement);
    read(row);
  }
  statement.reset();
}

int64_t count(SQLite::Statement& statement, const std::string& run_id) {
  statement.reset();
  statement.bind(1, run_id);
  statement.executeStep();
  const int64_t count = statement.getColumn(0).getInt64();
  statement.reset();
  return count;
}

}  // namespace

FileState read_file_state(RowReader& row) {
  FileState state;
  for (FileStamp* stamp : {&state.record, &state.config, &state.events, &state.remarks})
    row.value(*stamp);
  row.value(state.events_offset);
  return state;
}

Ingester::Ingester(SQLite::Database& database)
    : begin_run_(database, "SAVEPOINT run"),
      undo_run_(database, "ROLLBACK TO run"),
      end_run_(database, "RELEASE run"),
      select_state_(database,
                    std::string("SELECT ") + file_state_columns + " FROM sources WHERE run_id = ?"),
      select_run_(database, "SELECT " + join(column_names(), ", ") + " FROM runs WHERE id = ?"),
      upsert_run_(database, upsert_sql("runs", join(column_names(), ", "))),
      upsert_state_(database, upsert_sql("sources", std::string("run_id, ") + file_state_columns)),
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
          upsert_sql("evaluations", "run_id, step, loss, validation_loss, tokens, seconds, rows")),
      delete_scores_(database, "DELETE FROM scores WHERE run_id = ? AND step = ?"),
      insert_score_(database, upsert_sql("scores", "run_id, step, name, value, count")),
      select_last_metrics_(database,
                           std::string("SELECT ") + train_metrics_columns +
                               " FROM train_metrics WHERE run_id = ? AND step <= ? "
                               "ORDER BY step DESC LIMIT 1"),
      select_last_speed_(database,
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

void Ingester::ingest(const run::RunFolder& folder, ReadRun& read) {
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

void Ingester::remove(const std::string& run_id) {
  for (SQLite::Statement& statement : delete_run_) execute(statement, run_id);
}

void Ingester::ingest_files(const run::RunFolder& folder, ReadRun& read) {
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
  if (status.unreadable != 0)
    throw Error(status.reason, status.hint, ExitCode::failed).with_cause(status.unreadable);
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

void Ingester::add_problem(const std::string& run_id,
                           const std::string& source,
                           int64_t place,
                           const std::string& text) {
  execute(insert_problem_, run_id, source, place, text);
}

void Ingester::add_damaged_line(const run::RunFolder& folder, const run::ReadLine& line) {
  constexpr int64_t most_lines = 20;  // that are told one by one
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

void Ingester::add_remarks(const run::RunFolder& folder, RunSummary& run) {
  run::Annotations remarks;
  execute(delete_problems_, run.id, std::string("remarks"));
  try {
    remarks = run::read_annotations(folder);
  } catch (const Error& problem) {
    if (is_unreadable(problem)) throw;  // they may say that it is archived
    add_problem(run.id, "remarks", 0, problem.message());
  }
  run.archived = remarks.archived ? 1 : 0;
  run.note = remarks.note;
  run.tags = remarks.tags;
}

std::optional<FileState> Ingester::read_state(const std::string& run_id) {
  select_state_.reset();
  select_state_.bind(1, run_id);
  if (!select_state_.executeStep()) return std::nullopt;
  RowReader row(select_state_);
  const FileState state = read_file_state(row);
  select_state_.reset();
  return state;
}

RunSummary Ingester::read_summary(const std::string& run_id) {
  select_run_.reset();
  select_run_.bind(1, run_id);
  if (!select_run_.executeStep()) throw Error("run '" + run_id + "' has a source but no row");
  RunSummary run = read_run(select_run_);
  select_run_.reset();
  return run;
}

void Ingester::write_summary(const RunSummary& run) {
  upsert_run_.reset();
  Binder binder(upsert_run_);
  columns(binder, run);
  upsert_run_.exec();
}

RunSummary Ingester::add_run(Description description) {
  execute(upsert_config_, description.run.id, description.config_text);
  return std::move(description.run);
}

void Ingester::write_environment(const run::RunFolder& folder) {
  execute(delete_problems_, folder.id(), std::string("environment"));
  if (!path_exists(folder.environment_file())) return;
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
    if (is_unreadable(problem)) throw;  // else it would be unknown for good
    unknown(problem.message());
  }
}

void Ingester::ingest_lines(const run::RunFolder& folder,
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

void Ingester::forget_later_steps(int64_t first_step, RunSummary& run) {
  execute(keep_lost_evaluations_, run.id, first_step);
  execute(keep_lost_windows_, run.id, first_step);
  for (SQLite::Statement& statement : delete_later_) execute(statement, run.id, first_step);
  keep_values_up_to(first_step, run);
}

void Ingester::keep_values_up_to(int64_t step, RunSummary& run) {
  if (run.step <= step) return;
  KeptMetrics kept;
  read_first(select_last_metrics_, run.id, step, [&](RowReader& row) {
    train_metrics_values(row, kept.train.emplace());
  });
  read_first(
      select_last_speed_, run.id, step, [&](RowReader& row) { row.value(kept.tokens_per_second); });
  read_first(select_last_evaluation_, run.id, step, [&](RowReader& row) {
    worker::Evaluation& evaluation = kept.evaluation.emplace();
    row.value(evaluation.step);
    row.value(evaluation.loss);
    row.value(evaluation.validation_loss);
  });
  go_back(kept, run);
}

void Ingester::write_event(const worker::Event& event, const std::string& run_id) {
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

void Ingester::write_evaluation(const worker::Evaluation& evaluation, const std::string& run_id) {
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

}  // namespace forge::store
