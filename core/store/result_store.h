#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/benchmark/record.h"
#include "core/protocol/messages.h"
#include "core/store/run_summary.h"

namespace SQLite {
class Database;
}

namespace forge::store {

/// What a synchronisation did.
struct SyncReport {
  int added = 0;
  int updated = 0;
  int removed = 0;
  int benchmarks = 0;                 ///< taken up, new or changed
  std::vector<std::string> warnings;  ///< damaged lines and runs that cannot be read, one text each
};

/// Which runs a query wants; an empty field asks nothing.
struct RunFilter {
  std::vector<std::string> configs;  ///< any of these
  std::string project;
  std::string profile;
  std::optional<run::RunState> status;
  bool archived = false;  ///< those that are archived, too
};

/// Which measurements a query wants; an empty field asks nothing.
struct BenchmarkFilter {
  std::vector<std::string> configs;  ///< any of these
  std::string project;
  std::optional<benchmark::Kind> kind;
};

/// A run with its resolved configuration and what it ran on (null where that is not known).
struct ConfiguredRun {
  RunSummary summary;
  nlohmann::json config;
  nlohmann::json environment;
};

/// A point of a loss curve.
struct LossPoint {
  int64_t step = 0;
  int64_t tokens = 0;          ///< trained on
  double loss = 0;             ///< NaN: no number
  double elapsed_seconds = 0;  ///< wall time since training began; NaN: not known
};

/// An SQLite index over run folders and files of measurements. The files are the truth: the store
/// can be thrown away at any time and is rebuilt from them. One object for one thread; any number
/// of objects, threads and processes may work on one file at once. Every failure is an Error that
/// names the file.
class ResultStore {
 public:
  /// Opens or creates the database. Throws where its schema is newer than the program's.
  explicit ResultStore(std::filesystem::path path);
  ~ResultStore();
  ResultStore(ResultStore&&) noexcept;
  ResultStore& operator=(ResultStore&&) noexcept;

  const std::filesystem::path& path() const { return path_; }

  /// Takes up what is new in the run folders and measurements below `runs_dir` and drops those that
  /// are gone. Three file stamps are all that a run costs in which nothing has changed.
  SyncReport sync(const std::filesystem::path& runs_dir);

  /// Newest first.
  std::vector<RunSummary> runs(const RunFilter& filter = {}) const;
  std::vector<ConfiguredRun> configured_runs(const RunFilter& filter = {}) const;
  std::optional<RunSummary> run(const std::string& run_id) const;
  /// The newest completed run of each config, sorted by config.
  std::vector<RunSummary> newest_completed(const RunFilter& filter = {}) const;

  /// By step. Empty for a run that the store does not know.
  std::vector<protocol::TrainMetrics> train_metrics(const std::string& run_id) const;
  std::vector<protocol::Evaluation> evaluations(const std::string& run_id) const;
  /// By step: what a curve needs of them, which is less to read.
  std::vector<LossPoint> training_losses(const std::string& run_id) const;
  std::vector<LossPoint> evaluation_losses(const std::string& run_id) const;
  /// The resolved configuration, what the run ran on; null where there is none.
  nlohmann::json config(const std::string& run_id) const;
  nlohmann::json environment(const std::string& run_id) const;

  /// Newest first.
  std::vector<benchmark::Record> benchmarks(const BenchmarkFilter& filter = {}) const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<SQLite::Database> database_;
};

/// Builds the store at `path` anew from the run folders: aside, then renamed into its place, so
/// that an interruption leaves the old one. Also where the old one is damaged or newer.
SyncReport reindex(const std::filesystem::path& path, const std::filesystem::path& runs_dir);

}  // namespace forge::store
