#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/results/store/database.h"
#include "core/results/store/read_run.h"
#include "core/results/store/run_summary.h"
#include "core/run/run_folder.h"

/// Private to the store: the rows of a run, from its files.
namespace forge::store {

/// The columns of `sources` behind run_id, in the order of FileState.
constexpr const char* file_state_columns =
    "record_size, record_modified_ns, record_inode, config_size, config_modified_ns, config_inode, "
    "events_size, events_modified_ns, events_inode, "
    "remarks_size, remarks_modified_ns, remarks_inode, events_offset";
FileState read_file_state(RowReader& row);

/// The columns of `train_metrics` behind run_id, and their values in the same order.
constexpr const char* train_metrics_columns =
    "step, tokens, loss, learning_rate, gradient_norm, tokens_per_second, elapsed_seconds";
template <class Visitor, class Metrics>
void train_metrics_values(Visitor& visit, Metrics& metrics) {
  visit.value(metrics.step);
  visit.value(metrics.tokens);
  visit.value(metrics.loss);
  visit.value(metrics.learning_rate);
  visit.value(metrics.gradient_norm);
  visit.value(metrics.tokens_per_second);
  visit.value(metrics.elapsed_seconds);
}

/// Writes the rows of runs. The caller holds a write transaction, since new lines begin at the
/// offset that the database holds.
class Ingester {
 public:
  explicit Ingester(SQLite::Database& database);

  /// Brings a run's rows up to its files. What was `read` is used if it is still what the files say
  /// behind the offset that the database holds; another process may have moved that. A line that
  /// cannot be read is skipped and becomes a problem. Throws Error, and leaves the run's rows as
  /// they were, where one of its files cannot be read: nothing that comes of that is kept.
  void ingest(const run::RunFolder& folder, ReadRun& read);

  /// Removes a run and all rows that refer to it.
  void remove(const std::string& run_id);

 private:
  void ingest_files(const run::RunFolder& folder, ReadRun& read);

  void add_problem(const std::string& run_id,
                   const std::string& source,
                   int64_t place,
                   const std::string& text);

  void add_damaged_line(const run::RunFolder& folder, const run::ReadLine& line);

  /// Damaged annotations are a problem; the run is kept.
  void add_remarks(const run::RunFolder& folder, RunSummary& run);

  std::optional<FileState> read_state(const std::string& run_id);

  RunSummary read_summary(const std::string& run_id);

  void write_summary(const RunSummary& run);

  /// Its row is written once the events are read.
  RunSummary add_run(Description description);

  /// What a run ran on decides none of its numbers: a damaged file is a problem alone.
  void write_environment(const run::RunFolder& folder);

  void ingest_lines(const run::RunFolder& folder,
                    const std::vector<run::ReadLine>& lines,
                    RunSummary& run);

  /// A resumed run repeats the steps after its checkpoint, and may stop before it reaches the step
  /// at which the earlier attempt died: what that said of them is about weights that are gone.
  void forget_later_steps(int64_t first_step, RunSummary& run);

  /// The run's row has the last values of the weights that it goes on from; the curves keep the
  /// steps of a lost attempt until they are trained again.
  void keep_values_up_to(int64_t step, RunSummary& run);

  void write_event(const worker::Event& event, const std::string& run_id);

  /// An evaluation made again takes the place of the earlier one with all its scores.
  void write_evaluation(const worker::Evaluation& evaluation, const std::string& run_id);

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

}  // namespace forge::store
