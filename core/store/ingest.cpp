#include "core/store/ingest.h"

#include <SQLiteCpp/Savepoint.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/run/event_log.h"
#include "core/run/remarks.h"
#include "core/store/event_effects.h"
#include "core/store/rows.h"

namespace forge::store {
namespace {

/// INSERT of `names` that replaces the row of the same id without touching what refers to it.
std::string upsert_sql(const std::string& table, const std::vector<std::string>& names) {
  std::vector<std::string> marks(names.size(), "?");
  std::vector<std::string> updates;
  for (const std::string& name : names) updates.push_back(name + " = excluded." + name);
  return "INSERT INTO " + table + " (" + join(names, ", ") + ") VALUES (" + join(marks, ", ") +
         ") ON CONFLICT DO UPDATE SET " + join(updates, ", ");
}

/// What removes a run: first the rows that refer to it, then its own.
std::vector<SQLite::Statement> deletions(SQLite::Database& database) {
  std::vector<SQLite::Statement> statements;
  for (const char* table : {"sources",
                            "configs",
                            "environments",
                            "train_metrics",
                            "evaluations",
                            "scores",
                            "results",
                            "damaged_lines"})
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

std::string dump(const nlohmann::json& json) { return json_text(json); }

/// Whether the files can be read on from where the last time ended: neither was replaced nor cut.
bool continues(const Source& before, const Source& now) {
  return before.record == now.record && before.events_offset <= now.events.size &&
         (before.events_offset == 0 || before.events.inode == now.events.inode);
}

}  // namespace

bool operator==(const FileStamp& a, const FileStamp& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

FileStamp stamp_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          static_cast<int64_t>(status.st_ino)};
}

Source stamps_of(const run::RunFolder& folder) {
  return {stamp_of(folder.record_file()),
          stamp_of(folder.events_file()),
          stamp_of(folder.remarks_file()),
          0};
}

Ingester::Ingester(SQLite::Database& database)
    : database_(database),
      select_source_(
          database,
          "SELECT record_size, record_modified_ns, record_inode, events_size, "
          "events_modified_ns, events_inode, remarks_size, remarks_modified_ns, remarks_inode, "
          "events_offset FROM sources WHERE run_id = ?"),
      select_run_(database, "SELECT " + join(run_column_names(), ", ") + " FROM runs WHERE id = ?"),
      upsert_run_(database, upsert_sql("runs", run_column_names())),
      upsert_source_(database,
                     upsert_sql("sources",
                                {"run_id",
                                 "record_size",
                                 "record_modified_ns",
                                 "record_inode",
                                 "events_size",
                                 "events_modified_ns",
                                 "events_inode",
                                 "remarks_size",
                                 "remarks_modified_ns",
                                 "remarks_inode",
                                 "events_offset"})),
      delete_run_(deletions(database)),
      upsert_config_(database, upsert_sql("configs", {"run_id", "config"})),
      upsert_environment_(database, upsert_sql("environments", {"run_id", "environment"})),
      upsert_train_metrics_(database,
                            upsert_sql("train_metrics",
                                       {"run_id",
                                        "step",
                                        "tokens",
                                        "loss",
                                        "learning_rate",
                                        "gradient_norm",
                                        "tokens_per_second",
                                        "elapsed_seconds"})),
      upsert_evaluation_(
          database, upsert_sql("evaluations", {"run_id", "step", "loss", "tokens", "seconds"})),
      delete_scores_(database, "DELETE FROM scores WHERE run_id = ? AND step = ?"),
      insert_score_(database, upsert_sql("scores", {"run_id", "step", "name", "value", "count"})),
      insert_result_(database, upsert_sql("results", {"run_id", "byte_offset", "result"})),
      insert_damaged_line_(database,
                           upsert_sql("damaged_lines", {"run_id", "byte_offset", "reason"})),
      forget_train_metrics_(database, "DELETE FROM train_metrics WHERE run_id = ? AND step > ?"),
      forget_evaluations_(database, "DELETE FROM evaluations WHERE run_id = ? AND step > ?"),
      forget_scores_(database, "DELETE FROM scores WHERE run_id = ? AND step > ?") {}

template <class... Values>
void Ingester::execute(SQLite::Statement& statement, const Values&... values) {
  statement.reset();
  Binder binder(statement);
  (binder.value(values), ...);
  statement.exec();
}

void Ingester::ingest(const run::RunFolder& folder,
                      const ReadAhead& ahead,
                      std::vector<std::string>& warnings) {
  SQLite::Savepoint savepoint(database_, "run");  // rolled back when an exception leaves
  Source now = stamps_of(folder);
  std::optional<Source> before = read_source(folder.id());
  if (before && !continues(*before, now)) {
    remove(folder.id());
    before.reset();
  }
  RunSummary run = before ? read_summary(folder.id()) : add_run(folder);
  const int64_t offset = before ? before->events_offset : 0;
  if (ahead.begin == offset) {
    ingest_lines(folder, ahead.lines, run, warnings);
    now.events = ahead.stamp;
    now.events_offset = ahead.end;
  } else {
    const ReadAhead rest = read_ahead(folder.events_file(), offset);
    ingest_lines(folder, rest.lines, run, warnings);
    now.events = rest.stamp;
    now.events_offset = rest.end;
  }
  if (now.events_offset != offset) write_environment(folder);
  const run::RunStatus status = folder.status();
  run.status = status.state;
  run.failure_reason = status.reason;
  run.failure_hint = status.hint;
  add_remarks(folder, run, warnings);
  write_summary(run);
  write_source(folder.id(), now);
  savepoint.release();
}

/// Remarks that cannot be read are no reason to leave a run out.
void Ingester::add_remarks(const run::RunFolder& folder,
                           RunSummary& run,
                           std::vector<std::string>& warnings) {
  run::Remarks remarks;
  try {
    remarks = run::read_remarks(folder);
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

std::optional<Source> Ingester::read_source(const std::string& run_id) {
  select_source_.reset();
  select_source_.bind(1, run_id);
  if (!select_source_.executeStep()) return std::nullopt;
  Source source;
  RowReader row(select_source_);
  for (FileStamp* stamp : {&source.record, &source.events, &source.remarks}) {
    row.value(stamp->size);
    row.value(stamp->modified_ns);
    row.value(stamp->inode);
  }
  row.value(source.events_offset);
  select_source_.reset();
  return source;
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

void Ingester::write_source(const std::string& run_id, const Source& source) {
  execute(upsert_source_,
          run_id,
          source.record.size,
          source.record.modified_ns,
          source.record.inode,
          source.events.size,
          source.events.modified_ns,
          source.events.inode,
          source.remarks.size,
          source.remarks.modified_ns,
          source.remarks.inode,
          source.events_offset);
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
  execute(upsert_config_, run.id, dump(config_json));
  return run;
}

void Ingester::write_environment(const run::RunFolder& folder) {
  if (!fs::exists(folder.environment_file())) return;
  execute(upsert_environment_, folder.id(), dump(read_json(folder.environment_file())));
}

void Ingester::ingest_lines(const run::RunFolder& folder,
                            const std::vector<ReadLine>& lines,
                            RunSummary& run,
                            std::vector<std::string>& warnings) {
  for (const ReadLine& line : lines) {
    if (line.event) {
      apply(*line.event, run);
      if (line.event->event) write_event(*line.event->event, line.offset, run.id);
      continue;
    }
    execute(insert_damaged_line_, run.id, line.offset, line.problem);
    warnings.push_back("'" + folder.events_file().string() + "', byte " +
                       std::to_string(line.offset) + ": " + line.problem + "; the line is skipped");
  }
  apply_times(lines, run);
}

void Ingester::write_event(const protocol::Event& event,
                           int64_t byte_offset,
                           const std::string& run_id) {
  if (const auto* started = std::get_if<protocol::Started>(&event)) {
    forget_after(run_id, started->first_step);
  } else if (const auto* metrics = std::get_if<protocol::TrainMetrics>(&event)) {
    execute(upsert_train_metrics_,
            run_id,
            metrics->step,
            metrics->tokens,
            metrics->loss,
            metrics->learning_rate,
            metrics->gradient_norm,
            metrics->tokens_per_second,
            metrics->elapsed_seconds);
  } else if (const auto* evaluation = std::get_if<protocol::Evaluation>(&event)) {
    write_evaluation(*evaluation, run_id);
  } else if (const auto* result = std::get_if<protocol::Result>(&event)) {
    execute(insert_result_, run_id, byte_offset, dump(result->values));
  }
}

/// An evaluation made again takes the place of the earlier one with all its scores.
void Ingester::write_evaluation(const protocol::Evaluation& evaluation, const std::string& run_id) {
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

/// A resumed run repeats the steps after its checkpoint, and may stop before it reaches the step
/// where the earlier attempt died: what that attempt said of later steps no longer holds.
void Ingester::forget_after(const std::string& run_id, int64_t step) {
  execute(forget_train_metrics_, run_id, step);
  execute(forget_evaluations_, run_id, step);
  execute(forget_scores_, run_id, step);
}

}  // namespace forge::store
