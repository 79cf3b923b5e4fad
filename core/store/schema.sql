-- Version 1 of the results store. A published version is never edited: a change is a further step
-- in schema.cpp.
--
-- The run folders are the truth and this is an index over them, so every table hangs on `runs` and
-- goes with its run. Losses that are not a number are stored as NULL.

CREATE TABLE runs (
  id                    TEXT PRIMARY KEY,   -- name of the run's folder
  project               TEXT NOT NULL,
  config                TEXT NOT NULL,
  key                   TEXT NOT NULL,      -- hash of what identifies the run
  name                  TEXT NOT NULL,
  description           TEXT NOT NULL,
  command               TEXT NOT NULL,
  revision              TEXT NOT NULL,      -- git commit of the workspace, or ''
  created               TEXT NOT NULL,      -- UTC
  updated               TEXT NOT NULL,      -- UTC, of the newest event
  profile               TEXT NOT NULL,
  backend               TEXT NOT NULL,
  backend_version       TEXT NOT NULL,
  device_type           TEXT NOT NULL,
  device_name           TEXT NOT NULL,
  threads               INTEGER NOT NULL,   -- on a CPU, else 0
  numerics_version      INTEGER NOT NULL,
  seed                  INTEGER NOT NULL,
  data_fingerprint      TEXT NOT NULL,
  tokenizer_fingerprint TEXT NOT NULL,
  evaluation            TEXT NOT NULL,      -- e.g. "500 rows of 512 tokens"
  status                TEXT NOT NULL
    CHECK (status IN ('queued', 'running', 'completed', 'stopped', 'failed')),
  attempts              INTEGER NOT NULL,
  step                  INTEGER NOT NULL,
  max_steps             INTEGER NOT NULL,
  tokens_per_step       INTEGER NOT NULL,
  tokens                INTEGER NOT NULL,   -- trained on
  parameters            INTEGER NOT NULL,
  eval_step             INTEGER,            -- step of eval_loss; NULL: not evaluated yet
  eval_loss             REAL,
  train_loss            REAL,
  tokens_per_second     REAL,
  wall_seconds          REAL,
  peak_memory_bytes     INTEGER,
  peak_resident_bytes   INTEGER,
  exit_status           INTEGER,
  exit_signal           INTEGER,
  failure_reason        TEXT NOT NULL,      -- why it failed or stopped, or ''
  failure_hint          TEXT NOT NULL
) STRICT;

CREATE INDEX runs_by_config ON runs (config, created);

-- How far a run's files have been read.
CREATE TABLE sources (
  run_id             TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  record_size        INTEGER NOT NULL,
  record_modified_ns INTEGER NOT NULL,
  record_inode       INTEGER NOT NULL,
  events_size        INTEGER NOT NULL,
  events_modified_ns INTEGER NOT NULL,
  events_inode       INTEGER NOT NULL,
  events_offset      INTEGER NOT NULL       -- first byte of events.jsonl that has not been read
) STRICT, WITHOUT ROWID;

CREATE TABLE configs (
  run_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  config TEXT NOT NULL CHECK (json_valid(config))
) STRICT;

CREATE TABLE environments (
  run_id      TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  environment TEXT NOT NULL CHECK (json_valid(environment))
) STRICT;

-- Training metrics of the window of steps that ends with `step`.
CREATE TABLE train_metrics (
  run_id            TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step              INTEGER NOT NULL,
  tokens            INTEGER NOT NULL,
  loss              REAL,
  learning_rate     REAL,
  gradient_norm     REAL,
  tokens_per_second REAL,
  elapsed_seconds   REAL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations (
  run_id  TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step    INTEGER NOT NULL,
  loss    REAL,
  tokens  INTEGER NOT NULL,
  seconds REAL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- Numbers that a worker reported of its own accord.
CREATE TABLE results (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  byte_offset INTEGER NOT NULL,             -- of the line in events.jsonl
  result      TEXT NOT NULL CHECK (json_valid(result)),
  PRIMARY KEY (run_id, byte_offset)
) STRICT, WITHOUT ROWID;

-- Lines of events.jsonl that could not be read and were skipped.
CREATE TABLE damaged_lines (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  byte_offset INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  PRIMARY KEY (run_id, byte_offset)
) STRICT, WITHOUT ROWID;
