#include "core/store/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/base/error.h"

namespace forge::store {

extern const char* const schema_version_1;  // schema.sql, embedded by CMake
namespace {

/// Version 2: what a task measures beside the loss. A figure that is no number is NULL.
constexpr const char* add_scores = R"sql(
CREATE TABLE scores (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step   INTEGER NOT NULL,                  -- of the evaluation
  name   TEXT NOT NULL,                     -- e.g. "answer_accuracy.hop_8"
  value  REAL,
  count  INTEGER NOT NULL,                  -- cases that the value is the mean of
  PRIMARY KEY (run_id, step, name)
) STRICT, WITHOUT ROWID;
)sql";

/// Version 3: measured speed, an index over the files of the folder benchmarks.
constexpr const char* add_benchmarks = R"sql(
CREATE TABLE benchmarks (
  id                TEXT PRIMARY KEY,       -- name of the file, without .json
  kind              TEXT NOT NULL CHECK (kind IN ('training', 'operations')),
  call              TEXT NOT NULL,          -- the same for all that were measured in turns
  created           TEXT NOT NULL,          -- UTC
  project           TEXT NOT NULL,          -- '' for operations
  config            TEXT NOT NULL,          -- '' for operations
  device_type       TEXT NOT NULL,
  device_name       TEXT NOT NULL,
  threads           INTEGER NOT NULL,
  precision         TEXT NOT NULL,
  tokens_per_second REAL,                   -- median of the windows; NULL for operations
  spread            REAL,                   -- half of their interquartile range over the median
  record            TEXT NOT NULL CHECK (json_valid(record)),  -- all that the file says
  file_size         INTEGER NOT NULL,
  file_modified_ns  INTEGER NOT NULL,
  file_inode        INTEGER NOT NULL
) STRICT;

CREATE INDEX benchmarks_by_config ON benchmarks (config, created);
)sql";

/// Version 4: what people say of a run, from remarks.json of its folder.
constexpr const char* add_remarks = R"sql(
ALTER TABLE runs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;  -- 1: lists and tables leave it out
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '';        -- with commas between
ALTER TABLE sources ADD COLUMN remarks_size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN remarks_modified_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN remarks_inode INTEGER NOT NULL DEFAULT 0;
)sql";

/// Version 5: runs are listed newest first without sorting them.
constexpr const char* add_order = R"sql(
CREATE INDEX runs_by_created ON runs (created DESC, id DESC);
)sql";

/// Version 6: how many rows of a step are computed at once, NULL for all. Speed and memory depend
/// on it.
constexpr const char* add_micro_batch_size = R"sql(
ALTER TABLE runs ADD COLUMN micro_batch_size INTEGER;
)sql";

/// Version 7: what runs are chosen by, and who else used the machine.
constexpr const char* add_selection_and_others = R"sql(
ALTER TABLE runs ADD COLUMN selection_loss REAL;   -- of rows of which nothing else is reported
ALTER TABLE runs ADD COLUMN busy_elsewhere REAL;   -- share of the cores, from 0 to 1
ALTER TABLE runs ADD COLUMN shared_device INTEGER NOT NULL DEFAULT 0;  -- 1: a GPU with another user
)sql";

/// "frge": tells a results store from any other SQLite file.
constexpr int application_id = 0x66726765;

int read_pragma(SQLite::Database& database, const std::string& name) {
  return database.execAndGet("PRAGMA " + name).getInt();
}

void refuse_newer(const SQLite::Database& database, int version, int known) {
  throw Error("the results store '" + database.getFilename() + "' has schema version " +
                  std::to_string(version) + "; this forge reads versions up to " +
                  std::to_string(known),
              {},
              "use the newer forge that wrote it, or let 'forge store reindex' build it anew for "
              "this version from the run folders",
              ExitCode::failed);
}

void refuse_foreign(const SQLite::Database& database) {
  throw Error("'" + database.getFilename() + "' is an SQLite database but no results store",
              {},
              "move it away; forge then builds its own from the run folders",
              ExitCode::failed);
}

}  // namespace

const std::vector<std::string>& schema_steps() {
  static const std::vector<std::string> steps = {schema_version_1,
                                                 add_scores,
                                                 add_benchmarks,
                                                 add_remarks,
                                                 add_order,
                                                 add_micro_batch_size,
                                                 add_selection_and_others};
  return steps;
}

int schema_version() { return static_cast<int>(schema_steps().size()); }

void bring_up_to_date(SQLite::Database& database, const std::vector<std::string>& steps) {
  const int known = static_cast<int>(steps.size());
  if (read_pragma(database, "user_version") == known &&
      read_pragma(database, "application_id") == application_id) {
    return;
  }
  // Looked at once more with the write lock held: another process may be doing the same.
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const int version = read_pragma(database, "user_version");
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!empty && read_pragma(database, "application_id") != application_id) refuse_foreign(database);
  if (version > known) refuse_newer(database, version, known);
  for (int next = version; next < known; ++next) database.exec(steps[static_cast<size_t>(next)]);
  database.exec("PRAGMA application_id = " + std::to_string(application_id));
  database.exec("PRAGMA user_version = " + std::to_string(known));
  transaction.commit();
}

}  // namespace forge::store
