#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/progress.h"
#include "core/base/staging.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/run_summary.h"
#include "core/worker/messages.h"

namespace forge::store {

/// Whether a file system of this type (f_type of statfs) is remote or goes through another program.
/// Such file systems lack the shared memory and locks that SQLite's write-ahead log needs.
bool is_remote_file_system(int64_t type);

/// Whether this user can write a store into `runs_dir`, and to the one that another user may have
/// made there.
bool can_write_store(const std::filesystem::path& runs_dir);

/// The file of the store of `runs_dir`: `runs_dir`/forge.sqlite, or a file in the user's cache
/// folder if `runs_dir` is on a remote file system or its store cannot be written. Where that
/// folder cannot be written either, it is one for temporary files.
std::filesystem::path store_path(const std::filesystem::path& runs_dir);

/// Where the disk of `runs_dir` has no room for its store: from here on `store_path` names, in this
/// process, a file of the user's cache, and after another call one for temporary files. Returns
/// false where these have no room either.
bool use_other_store(const std::filesystem::path& runs_dir);

/// The file of the user's cache folder for `runs_dir`.
std::filesystem::path cached_store_path(const std::filesystem::path& runs_dir);

/// For a command that is to write nothing into `runs_dir` and reads its runs: while this object
/// lives, `store_path` names in this process a copy of the store that lies there, or would. It is
/// brought up to date instead.
class ScratchStore {
 public:
  explicit ScratchStore(std::filesystem::path runs_dir);
  ~ScratchStore();
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

 private:
  std::filesystem::path runs_dir_;
  PrivateFolder folder_;
};

}  // namespace forge::store

namespace SQLite {
class Database;
}

namespace forge::store {

/// What a synchronisation did.
struct SyncReport {
  int added = 0;
  int updated = 0;
  int removed = 0;
  int benchmarks = 0;                 ///< ingested, new or changed
  std::vector<std::string> warnings;  ///< damaged lines and runs that cannot be read, one text each
  std::map<std::string, std::vector<std::string>> left_out;  ///< ids of such runs by the reason
  std::vector<std::string> damaged;  ///< ids of runs that were completed and are not any more
};

/// What a synchronisation tells those who wait for it. Each function may be empty.
struct SyncWatch {
  CountProgress looking = {};  ///< how many run folders are looked at, on any thread
  /// After each batch of runs: how many of the changed ones are read.
  CountProgress progress = {};
  /// Another process has held the store for `patience`: "waiting for 'forge.sqlite': the process
  /// 4711 writes to it". Called on another thread, while that of the synchronisation waits. Empty:
  /// it is said as all waits are (core/base/waiting.h).
  std::function<void(const std::string& reason)> waiting = {};
  std::chrono::milliseconds patience{3000};
};

/// Selects runs; an empty field selects all.
struct RunFilter {
  std::vector<std::string> configs;  ///< any of these
  std::string project;
  std::string profile;
  std::optional<run::RunState> status;
  bool archived = false;  ///< archived runs too
  /// Root of a workspace: no runs of another one's project of that path (run::is_of_project), nor
  /// of a project that it does not have.
  std::string workspace = {};
  /// With `workspace`: no runs of one that is not there, either, which count in its tables.
  bool own = false;
  /// Where the runs' folders are, with `workspace`: their place tells of those that were moved with
  /// their workspace. Empty: it is not asked.
  std::filesystem::path runs_dir = {};
};

/// Selects measurements; an empty field selects all.
struct BenchmarkFilter {
  std::vector<std::string> configs;  ///< any of these
  std::string project;
  std::optional<benchmark::Kind> kind;
  std::string workspace = {};           ///< as in RunFilter
  std::filesystem::path runs_dir = {};  ///< where their files are, with `workspace`
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

/// What an evaluation found in each of its rows.
struct EvaluationRows {
  std::vector<double> losses;   ///< nats a token
  std::vector<int64_t> tokens;  ///< scored
};

/// An SQLite index over run folders and files of measurements. The files are the truth; the store
/// can be rebuilt from them at any time. One object is for one thread; any number of objects,
/// threads and processes may use one file at once. Every failure is an Error that names the file.
class ResultStore {
 public:
  /// Opens or creates the database. One with another schema is emptied; the next sync rebuilds it.
  /// Throws for a database that is not a results store.
  explicit ResultStore(std::filesystem::path path);
  ~ResultStore();
  ResultStore(ResultStore&&) noexcept;
  ResultStore& operator=(ResultStore&&) noexcept;

  const std::filesystem::path& path() const { return path_; }

  /// Ingests new events and measurements below `runs_dir` and removes runs whose folder was
  /// removed. An unchanged run costs three calls of stat. Damage to files of runs is told as long
  /// as it is there, by this object once; runs that cannot be read for the same reason share a
  /// warning.
  SyncReport sync(const std::filesystem::path& runs_dir, const SyncWatch& watch = {});

  /// Writes all that is in the write-ahead log into the store's file, which is whole by itself
  /// then. Throws Error where the disk is full, or another connection reads the log.
  void fold_log();

  /// Newest first.
  std::vector<RunSummary> runs(const RunFilter& filter = {}) const;
  std::vector<ConfiguredRun> configured_runs(const RunFilter& filter = {}) const;
  /// These runs with their configs, without those that were removed since they were found. Parsing
  /// configs takes most of the time of reading many runs.
  std::vector<ConfiguredRun> with_configs(std::vector<RunSummary> runs) const;
  std::optional<RunSummary> run(const std::string& run_id) const;

  /// By step. Empty for a run that the store does not know.
  std::vector<worker::TrainMetrics> train_metrics(const std::string& run_id) const;
  std::vector<worker::Evaluation> evaluations(const std::string& run_id) const;
  /// Of each row of the last evaluation; empty where the run did not report them.
  EvaluationRows evaluation_rows(const std::string& run_id) const;
  /// By step: what a curve needs of them, which is less to read.
  std::vector<LossPoint> training_losses(const std::string& run_id) const;
  std::vector<LossPoint> evaluation_losses(const std::string& run_id) const;
  /// The resolved configuration; null where there is none.
  nlohmann::json config(const std::string& run_id) const;

  /// Newest first.
  std::vector<benchmark::Record> benchmarks(const BenchmarkFilter& filter = {}) const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<SQLite::Database> database_;
  std::set<std::string> reported_;  ///< warnings
};

/// Rebuilds the store at `path` from the run folders, also if the old one is damaged. The new store
/// is built beside it and renamed, so an interruption leaves the old one.
SyncReport reindex(const std::filesystem::path& path,
                   const std::filesystem::path& runs_dir,
                   const SyncWatch& watch = {});

/// The columns of a run by name, missing values as null.
nlohmann::json columns_of(const RunSummary& run);

/// Selects and sorts runs.
struct RunQuery {
  /// Any of them must match the run's id or config: patterns with * and ?, or beginnings.
  std::vector<std::string> patterns;
  /// All must hold: COLUMN=VALUE, COLUMN!=VALUE, or with <, <=, >, >= for numbers and the bytes of
  /// texts. None holds for a column without a value. tag=x: one of its tags is x.
  std::vector<std::string> conditions;
  /// Columns, the first counts most; "-column" sorts descending. Runs without a value come last.
  std::vector<std::string> order;
  size_t limit = 0;  ///< most rows; 0: all
};

/// Throws Error for an unknown column, with near misses, and for a condition that is none.
std::vector<RunSummary> select(std::vector<RunSummary> runs, const RunQuery& query);

/// The same for conditions and orders on config keys too: model.canon.set=AC, -optimizer.lr.
std::vector<ConfiguredRun> select(std::vector<ConfiguredRun> runs, const RunQuery& query);

/// Whether all names are those of columns, so that they need no configs.
bool are_columns(const std::vector<std::string>& names);
/// Whether the query names columns alone.
bool names_columns_only(const RunQuery& query);

/// The keys in which runs of one config and profile differ, of those that may change results, but
/// for the seed: first the key with the most values, at most `most`, for which a table has room.
std::vector<std::string> varied_keys(const std::vector<ConfiguredRun>& runs, size_t most = 4);

/// The run's value of a column or a dotted key of its config; null without a value.
nlohmann::json value_of(const ConfiguredRun& run, const std::string& name);

/// Throws Error for a name that is neither a column nor a key of the config, with near misses.
void require_names(const std::vector<std::string>& names);

/// The runs that meet all conditions, also on config keys: model.canon.set=AC, optimizer.lr>1e-3.
std::vector<ConfiguredRun> select(std::vector<ConfiguredRun> runs,
                                  const std::vector<std::string>& conditions);

}  // namespace forge::store
