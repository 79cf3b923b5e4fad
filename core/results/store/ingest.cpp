#include "core/results/store/ingest.h"

#include <SQLiteCpp/Savepoint.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/database.h"
#include "core/results/store/run_summary.h"
#include "core/run/event_log.h"
#include "core/run/run_folder.h"

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
  for (const char* table :
       {"sources", "configs", "environments", "train_metrics", "evaluations", "scores"})
    statements.emplace_back(database, std::string("DELETE FROM ") + table + " WHERE run_id = ?");
  statements.emplace_back(database, "DELETE FROM runs WHERE id = ?");
  return statements;
}

nlohmann::json read_json(const fs::path& path) {
  try {
    return parse_json(read_file(path));
  } catch (const nlohmann::json::exception& problem) {
    throw Error("'" + path.string() + "' is not JSON: " + problem.what(), {}, "", ExitCode::failed);
  }
}

/// Whether the files can be read on from where the last time ended: neither was replaced nor cut.
bool continues(const FileState& before, const FileState& now) {
  return before.record == now.record && before.events_offset <= now.events.size &&
         (before.events_offset == 0 || before.events.inode == now.events.inode);
}

}  // namespace

FileState read_file_state(RowReader& row) {
  FileState state;
  for (FileStamp* stamp : {&state.record, &state.events, &state.remarks}) row.value(*stamp);
  row.value(state.events_offset);
  return state;
}

FileState file_state_of(const run::RunFolder& folder) {
  return {stamp_of(folder.record_file()),
          stamp_of(folder.events_file()),
          stamp_of(folder.annotations_file()),
          0};
}

Ingester::Ingester(SQLite::Database& database)
    : database_(database),
      select_state_(database,
                    std::string("SELECT ") + file_state_columns + " FROM sources WHERE run_id = ?"),
      select_run_(database, "SELECT " + join(column_names(), ", ") + " FROM runs WHERE id = ?"),
      upsert_run_(database, upsert_sql("runs", join(column_names(), ", "))),
      upsert_state_(database, upsert_sql("sources", std::string("run_id, ") + file_state_columns)),
      delete_run_(deletions(database)),
      upsert_config_(database, upsert_sql("configs", "run_id, config")),
      upsert_environment_(database, upsert_sql("environments", "run_id, environment")),
      upsert_train_metrics_(
          database, upsert_sql("train_metrics", std::string("run_id, ") + train_metrics_columns)),
      upsert_evaluation_(database,
                         upsert_sql("evaluations", "run_id, step, loss, tokens, seconds")),
      delete_scores_(database, "DELETE FROM scores WHERE run_id = ? AND step = ?"),
      insert_score_(database, upsert_sql("scores", "run_id, step, name, value, count")) {
  for (const char* table : {"train_metrics", "evaluations", "scores"})
    delete_later_.emplace_back(
        database, std::string("DELETE FROM ") + table + " WHERE run_id = ? AND step > ?");
}

template <class... Values>
void Ingester::execute(SQLite::Statement& statement, const Values&... values) {
  statement.reset();
  Binder binder(statement);
  (binder.value(values), ...);
  statement.exec();
}

void Ingester::ingest(const run::RunFolder& folder,
                      const EventBatch& batch,
                      std::vector<std::string>& warnings) {
  SQLite::Savepoint savepoint(database_, "run");  // rolled back when an exception leaves
  FileState now = file_state_of(folder);
  std::optional<FileState> before = read_state(folder.id());
  if (before && !continues(*before, now)) {
    remove(folder.id());
    before.reset();
  }
  RunSummary run = before ? read_summary(folder.id()) : add_run(folder);
  const int64_t offset = before ? before->events_offset : 0;
  std::optional<EventBatch> reread;
  if (batch.begin != offset) reread = read_events(folder.events_file(), offset);
  const EventBatch& events = reread ? *reread : batch;
  ingest_lines(folder, events.lines, run, warnings);
  now.events = events.stamp;
  now.events_offset = events.end;
  if (now.events_offset != offset) write_environment(folder);
  const run::RunStatus status = folder.status();
  run.status = status.state;
  run.failure_reason = status.reason;
  run.failure_hint = status.hint;
  add_remarks(folder, run, warnings);
  write_summary(run);
  execute(upsert_state_, folder.id(), now.record, now.events, now.remarks, now.events_offset);
  savepoint.release();
}

/// Annotations that cannot be read are a warning; the run is kept.
void Ingester::add_remarks(const run::RunFolder& folder,
                           RunSummary& run,
                           std::vector<std::string>& warnings) {
  run::Annotations remarks;
  try {
    remarks = run::read_annotations(folder);
  } catch (const Error& problem) {
    warnings.push_back(problem.message());
  }
  run.archived = remarks.archived ? 1 : 0;
  run.note = remarks.note;
  run.tags = remarks.tags;
}

void Ingester::remove(const std::string& run_id) {
  for (SQLite::Statement& statement : delete_run_) execute(statement, run_id);
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

RunSummary Ingester::add_run(const run::RunFolder& folder) {
  const run::RunRecord record = folder.record();
  const nlohmann::json config_json = read_json(folder.config_file());
  const config::Experiment experiment = config::experiment_from_json(config_json);
  RunSummary run;
  run.id = folder.id();
  run.project = record.project;
  run.config = record.config;
  run.key = record.key;
  run.name = experiment.name;
  run.description = experiment.description;
  run.command = record.command;
  run.revision = record.revision;
  run.created = record.created;
  run.updated = record.created;
  run.profile = experiment.profile;
  run.backend = record.identity.backend;
  run.device_type = record.identity.device_type;
  run.threads = record.identity.threads;
  run.numerics_version = record.identity.numerics_version;
  run.seed = static_cast<int64_t>(experiment.seed);
  run.data_fingerprint = record.identity.data_fingerprint;
  run.tokenizer_fingerprint = record.identity.tokenizer_fingerprint;
  run.evaluation = std::to_string(experiment.train.eval_rows) + " rows of " +
                   std::to_string(experiment.train.seq_len) + " tokens";
  run.max_steps = experiment.train.max_steps;
  run.tokens_per_step = int64_t{experiment.train.batch_size} * experiment.train.seq_len;
  write_summary(run);
  execute(upsert_config_, run.id, json_text(config_json));
  return run;
}

void Ingester::write_environment(const run::RunFolder& folder) {
  if (!fs::exists(folder.environment_file())) return;
  execute(upsert_environment_, folder.id(), json_text(read_json(folder.environment_file())));
}

void Ingester::ingest_lines(const run::RunFolder& folder,
                            const std::vector<ReadLine>& lines,
                            RunSummary& run,
                            std::vector<std::string>& warnings) {
  for (const ReadLine& line : lines) {
    if (line.event) {
      apply(*line.event, run);
      if (line.event->event) write_event(*line.event->event, run.id);
      continue;
    }
    warnings.push_back("'" + folder.events_file().string() + "', byte " +
                       std::to_string(line.offset) + ": " + line.problem + "; the line is skipped");
  }
  apply_times(lines, run);
}

void Ingester::write_event(const worker::Event& event, const std::string& run_id) {
  if (const auto* started = std::get_if<worker::Started>(&event)) {
    // A resumed run repeats the steps after its checkpoint, and may stop before it reaches the step
    // at which the earlier attempt died.
    for (SQLite::Statement& statement : delete_later_)
      execute(statement, run_id, started->first_step);
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    execute(upsert_train_metrics_,
            run_id,
            metrics->step,
            metrics->tokens,
            metrics->loss,
            metrics->learning_rate,
            metrics->gradient_norm,
            metrics->tokens_per_second,
            metrics->elapsed_seconds);
  } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
    write_evaluation(*evaluation, run_id);
  }
}

/// An evaluation made again takes the place of the earlier one with all its scores.
void Ingester::write_evaluation(const worker::Evaluation& evaluation, const std::string& run_id) {
  execute(upsert_evaluation_,
          run_id,
          evaluation.step,
          evaluation.loss,
          evaluation.tokens,
          evaluation.seconds);
  execute(delete_scores_, run_id, evaluation.step);
  for (const auto& [name, score] : evaluation.scores) {
    execute(insert_score_, run_id, evaluation.step, name, score.value, score.count);
  }
}

}  // namespace forge::store
