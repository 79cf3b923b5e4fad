#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/results/store/database.h"
#include "core/results/store/event_reader.h"
#include "core/results/store/result_store.h"
#include "core/results/store/run_summary.h"
#include "core/run/run_folder.h"
#include "core/worker/messages.h"

/// Private to the store: from the files of one run to its rows.
namespace forge::store {

/// How far a run's files have been read: a row of the table `sources`.
struct FileState {
  FileStamp record;        ///< run.json
  FileStamp events;        ///< events.jsonl
  FileStamp remarks = {};  ///< remarks.json
  int64_t events_offset = 0;
};

/// The columns of `sources` behind run_id, in the order of FileState.
constexpr const char* file_state_columns =
    "record_size, record_modified_ns, record_inode, events_size, events_modified_ns, events_inode, "
    "remarks_size, remarks_modified_ns, remarks_inode, events_offset";
FileState read_file_state(RowReader& row);

/// The columns of `train_metrics` behind run_id, in the order of worker::TrainMetrics.
constexpr const char* train_metrics_columns =
    "step, tokens, loss, learning_rate, gradient_norm, tokens_per_second, elapsed_seconds";

/// The state of a run's files now; the offset stays 0.
FileState file_state_of(const run::RunFolder& folder);

/// Writes the rows of runs. The caller holds a write transaction, since new lines begin at the
/// offset that the database holds.
class Ingester {
 public:
  explicit Ingester(SQLite::Database& database);

  /// Brings a run's rows up to its files. `batch` is used if it begins at the offset that the
  /// database holds; another process may have moved that. A line that cannot be read is skipped
  /// with a warning. Throws Error, and leaves the run's rows as they were, where run.json or
  /// config.json cannot be read.
  void ingest(const run::RunFolder& folder,
              const EventBatch& batch,
              std::vector<std::string>& warnings);

  /// Removes a run and all rows that refer to it.
  void remove(const std::string& run_id);

 private:
  std::optional<FileState> read_state(const std::string& run_id);
  RunSummary read_summary(const std::string& run_id);
  void write_summary(const RunSummary& run);
  RunSummary add_run(const run::RunFolder& folder);
  static void add_remarks(const run::RunFolder& folder,
                          RunSummary& run,
                          std::vector<std::string>& warnings);
  void write_environment(const run::RunFolder& folder);
  void ingest_lines(const run::RunFolder& folder,
                    const std::vector<ReadLine>& lines,
                    RunSummary& run,
                    std::vector<std::string>& warnings);
  void write_event(const worker::Event& event, const std::string& run_id);
  void write_evaluation(const worker::Evaluation& evaluation, const std::string& run_id);

  /// Binds the values in their order and runs the statement.
  template <class... Values>
  static void execute(SQLite::Statement& statement, const Values&... values);

  SQLite::Database& database_;
  SQLite::Statement select_state_;
  SQLite::Statement select_run_;
  SQLite::Statement upsert_run_;
  SQLite::Statement upsert_state_;
  std::vector<SQLite::Statement> delete_run_;  ///< with all rows that refer to it
  SQLite::Statement upsert_config_;
  SQLite::Statement upsert_environment_;
  SQLite::Statement upsert_train_metrics_;
  SQLite::Statement upsert_evaluation_;
  SQLite::Statement delete_scores_;
  SQLite::Statement insert_score_;
  std::vector<SQLite::Statement> delete_later_;  ///< rows behind a step
};

}  // namespace forge::store
