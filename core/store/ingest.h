#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/protocol/messages.h"
#include "core/run/run_folder.h"
#include "core/store/read_ahead.h"
#include "core/store/run_summary.h"

/// Private to core/store: from the files of one run to its rows.
namespace forge::store {

/// How far a run's files have been read: a row of the table `sources`.
struct Source {
  FileStamp record;        ///< run.json
  FileStamp events;        ///< events.jsonl
  FileStamp remarks = {};  ///< remarks.json
  int64_t events_offset = 0;
};

/// Stamps of a run's files as they are now; the offset stays 0.
Source stamps_of(const run::RunFolder& folder);

/// Writes the rows of runs. Every call belongs into a write transaction of the caller's, because
/// what is new is what follows the offset that the database holds.
class Ingester {
 public:
  explicit Ingester(SQLite::Database& database);

  /// Brings a run's rows up to its files. `ahead` is used where it begins at what the database
  /// lacks: somebody else may have been faster. A line that cannot be read is recorded, skipped and
  /// told in `warnings`. Throws Error, with the run's rows as they were, where run.json or
  /// config.json cannot be read.
  void ingest(const run::RunFolder& folder,
              const ReadAhead& ahead,
              std::vector<std::string>& warnings);

  /// Removes a run and all that hangs on it.
  void remove(const std::string& run_id);

 private:
  std::optional<Source> read_source(const std::string& run_id);
  RunSummary read_summary(const std::string& run_id);
  void write_summary(const RunSummary& run);
  void write_source(const std::string& run_id, const Source& source);
  RunSummary add_run(const run::RunFolder& folder);
  static void add_remarks(const run::RunFolder& folder,
                          RunSummary& run,
                          std::vector<std::string>& warnings);
  void write_environment(const run::RunFolder& folder);
  void ingest_lines(const run::RunFolder& folder,
                    const std::vector<ReadLine>& lines,
                    RunSummary& run,
                    std::vector<std::string>& warnings);
  void write_event(const protocol::Event& event, int64_t byte_offset, const std::string& run_id);
  void write_evaluation(const protocol::Evaluation& evaluation, const std::string& run_id);
  void forget_after(const std::string& run_id, int64_t step);

  /// Binds the values in their order and runs the statement.
  template <class... Values>
  static void execute(SQLite::Statement& statement, const Values&... values);

  SQLite::Database& database_;
  SQLite::Statement select_source_;
  SQLite::Statement select_run_;
  SQLite::Statement upsert_run_;
  SQLite::Statement upsert_source_;
  std::vector<SQLite::Statement> delete_run_;  ///< with all that refers to it
  SQLite::Statement upsert_config_;
  SQLite::Statement upsert_environment_;
  SQLite::Statement upsert_train_metrics_;
  SQLite::Statement upsert_evaluation_;
  SQLite::Statement delete_scores_;
  SQLite::Statement insert_score_;
  SQLite::Statement insert_result_;
  SQLite::Statement insert_damaged_line_;
  SQLite::Statement forget_train_metrics_;
  SQLite::Statement forget_evaluations_;
  SQLite::Statement forget_scores_;
};

}  // namespace forge::store
