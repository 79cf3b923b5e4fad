-- The results store: an index over run folders and files of measurements, which are the truth.
-- database.cpp adds a REAL column to `runs` for each metric of Source::run (metrics.cpp). A store
-- that another schema made is emptied and rebuilt from the run folders. Rows of a run refer to it
-- by run_id; the ingester removes them together. Numbers that are not finite are NULL.

CREATE TABLE runs (
  id                    TEXT PRIMARY KEY,   -- name of the run's folder
  project               TEXT NOT NULL,
  workspace             TEXT NOT NULL,      -- its root, '': not recorded
  workspace_id          TEXT NOT NULL,      -- that it keeps where it is moved, '': not recorded
  config                TEXT NOT NULL,
  key                   TEXT NOT NULL,      -- hash of what identifies the run
  name                  TEXT NOT NULL,
  description           TEXT NOT NULL,
  command               TEXT NOT NULL,
  revision              TEXT NOT NULL,      -- git commit of the workspace, or ''
  planned_seeds         TEXT NOT NULL,      -- that its command asked for, with commas between
  planned_claims        TEXT NOT NULL,      -- keys of the tables' claims at that time
  planned_tables        TEXT NOT NULL,      -- JSON: name and design of the tables; '': not known
  planned_config        TEXT NOT NULL,      -- key of its config without --set then; '': not known
  drawn_order           TEXT NOT NULL,      -- of the command that drew the order of its configs; '': none
  repeats               TEXT NOT NULL,      -- older run with other losses of steps that it took over; '': none
  train_rows            INTEGER NOT NULL,   -- different ones that it trains on; 0: not known
  entropy_floor         REAL,               -- of the text evaluated on, nats a token
  repeated_sentences    REAL,               -- fraction of the evaluated ones that are trained on
  created               TEXT NOT NULL,      -- UTC
  updated               TEXT NOT NULL,      -- UTC, of the newest event
  begun                 TEXT NOT NULL,      -- UTC, when the attempt began that told the first loss, or the last one; '': none began
  first_loss            TEXT NOT NULL,      -- UTC, when an attempt of its own first told a loss; '': none yet
  imported              TEXT NOT NULL,      -- UTC, when it came here from another runs folder; '': it was made here
  profile               TEXT NOT NULL,
  backend               TEXT NOT NULL,
  backend_version       TEXT NOT NULL,
  device_type           TEXT NOT NULL,
  device_name           TEXT NOT NULL,      -- this, backend_version, libraries, variables, processes and recompute have " and " between where attempts differ
  libraries             TEXT NOT NULL,      -- JSON: name to version; '': not known
  variables             TEXT NOT NULL,      -- that change how libraries compute; '': not recorded
  threads               INTEGER NOT NULL,   -- on a CPU, else 0
  numerics_version      INTEGER NOT NULL,
  seed                  INTEGER NOT NULL,
  data_fingerprint      TEXT NOT NULL,
  tokenizer_fingerprint TEXT NOT NULL,
  initial_weights_hash  TEXT NOT NULL,      -- of the weights that it began from; '': they were drawn
  program               TEXT NOT NULL,      -- hash of the files of an external backend's command; '': forge's own
  evaluation            TEXT NOT NULL,      -- e.g. "500 rows of 512 tokens"
  status                TEXT NOT NULL
    CHECK (status IN ('not started', 'queued', 'running', 'completed', 'stopped', 'failed')),
  damaged               INTEGER NOT NULL,   -- 1: failed, since its files do not say any more that it was completed
  diverged              INTEGER NOT NULL,   -- 1: failed, since the numbers of training no longer made sense
  attempts              INTEGER NOT NULL,
  failed_attempts       INTEGER NOT NULL,   -- of them; the run was tried again by itself or by a command
  resumptions           INTEGER NOT NULL,   -- attempts that began after one had told a loss
  lost_windows          INTEGER NOT NULL,   -- rows of lost_train_metrics
  redone_losses         INTEGER NOT NULL,   -- evaluations and windows that told another loss in a lost attempt
  step                  INTEGER NOT NULL,
  kept_step             INTEGER NOT NULL,   -- of the newest checkpoint, from which it goes on; 0: none
  max_steps             INTEGER NOT NULL,
  tokens_per_step       INTEGER NOT NULL,
  tokens                INTEGER NOT NULL,   -- trained on
  parameters            INTEGER NOT NULL,
  state_per_token       INTEGER NOT NULL,   -- numbers that generation keeps of each token
  fixed_state           INTEGER NOT NULL,   -- and of a row, whatever its length
  eval_step             INTEGER,            -- step of eval_loss; NULL: not evaluated yet
  exit_status           INTEGER,
  exit_signal           INTEGER,
  failure_reason        TEXT NOT NULL,      -- why it failed or stopped, or ''
  failure_hint          TEXT NOT NULL,
  archived              INTEGER NOT NULL,   -- 1: not in lists and tables
  note                  TEXT NOT NULL,
  tags                  TEXT NOT NULL,      -- with commas between
  micro_batch_size      INTEGER,            -- rows computed at once; NULL: all rows of a step
  processes             TEXT NOT NULL,      -- that trained it; '': not begun
  recompute             TEXT NOT NULL,      -- train.recompute, as the worker was told
  places                TEXT NOT NULL,      -- hosts and their devices that trained it, "atlas cuda:1"; with " and " between; '': not known
  continued             INTEGER NOT NULL,   -- 1: another run trained its first steps
  busy_elsewhere        REAL,               -- fraction of the cores that other processes kept busy
  stopped_seconds       REAL,               -- of training, that its worker was stopped (SIGSTOP)
  shared_device         INTEGER NOT NULL,   -- 1: another process held memory of the GPU
  changed_inputs        TEXT NOT NULL,      -- files that it reads and that changed while it trained; '': none
  not_numbers           TEXT NOT NULL       -- metrics that are NULL because they were measured and were no numbers
) STRICT;

CREATE INDEX runs_by_config ON runs (config, created);
CREATE INDEX runs_by_created ON runs (created DESC, id DESC);

-- How far a run's files have been read.
CREATE TABLE sources (
  run_id              TEXT PRIMARY KEY,
  record_size         INTEGER NOT NULL,
  record_modified_ns  INTEGER NOT NULL,
  record_inode        INTEGER NOT NULL,
  config_size         INTEGER NOT NULL,
  config_modified_ns  INTEGER NOT NULL,
  config_inode        INTEGER NOT NULL,
  events_size         INTEGER NOT NULL,
  events_modified_ns  INTEGER NOT NULL,
  events_inode        INTEGER NOT NULL,
  remarks_size        INTEGER NOT NULL,
  remarks_modified_ns INTEGER NOT NULL,
  remarks_inode       INTEGER NOT NULL,
  events_offset       INTEGER NOT NULL      -- first byte of events.jsonl that has not been read
) STRICT, WITHOUT ROWID;

-- What is wrong with a run's files, to be told as long as they stay so.
CREATE TABLE problems (
  run_id TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('events', 'environment', 'remarks')),
  place  INTEGER NOT NULL,   -- byte of events.jsonl, else 0
  text   TEXT NOT NULL,
  PRIMARY KEY (run_id, source, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE configs (
  run_id TEXT PRIMARY KEY,
  config TEXT NOT NULL CHECK (json_valid(config))
) STRICT;

CREATE TABLE environments (
  run_id      TEXT PRIMARY KEY,
  environment TEXT NOT NULL CHECK (json_valid(environment))
) STRICT;

-- Training metrics of the window of steps that ends with `step`.
CREATE TABLE train_metrics (
  run_id            TEXT NOT NULL,
  step              INTEGER NOT NULL,
  tokens            INTEGER NOT NULL,
  loss              REAL,
  learning_rate     REAL,
  gradient_norm     REAL,
  tokens_per_second REAL,           -- NULL: not measured
  elapsed_seconds   REAL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations (
  run_id          TEXT NOT NULL,
  step            INTEGER NOT NULL,
  loss            REAL,
  validation_loss REAL,             -- NULL: not measured
  tokens          INTEGER NOT NULL,
  seconds         REAL,
  rows            TEXT CHECK (rows IS NULL OR json_valid(rows)),  -- after the last step: [losses, scored tokens] of each row
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- What attempts told of weights that were lost: of each evaluation the first loss.
CREATE TABLE lost_evaluations (
  run_id TEXT NOT NULL,
  step   INTEGER NOT NULL,
  loss   REAL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- Of each window of training steps the first loss.
CREATE TABLE lost_train_metrics (
  run_id TEXT NOT NULL,
  step   INTEGER NOT NULL,
  loss   REAL,            -- NULL: the window began before the step from which it was trained anew
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- Scores of a task at an evaluation.
CREATE TABLE scores (
  run_id TEXT NOT NULL,
  step   INTEGER NOT NULL,
  name   TEXT NOT NULL,                     -- e.g. "answer_accuracy.hop_8"
  value  REAL,
  count  INTEGER NOT NULL,                  -- cases that the value is the mean of
  PRIMARY KEY (run_id, step, name)
) STRICT, WITHOUT ROWID;

-- Measured speed: an index over the files of the folder benchmarks.
CREATE TABLE benchmarks (
  id                TEXT PRIMARY KEY,       -- name of the file, without .json
  kind              TEXT NOT NULL CHECK (kind IN ('training', 'operations')),
  call              TEXT NOT NULL,          -- the same for all that one command measured
  created           TEXT NOT NULL,          -- UTC
  project           TEXT NOT NULL,          -- '' for operations
  config            TEXT NOT NULL,          -- '' for operations
  device_type       TEXT NOT NULL,
  device_name       TEXT NOT NULL,
  threads           INTEGER NOT NULL,
  precision         TEXT NOT NULL,
  tokens_per_second REAL,                   -- median of the windows; NULL for operations
  spread            REAL,                   -- half of their interquartile range over the median
  record            TEXT NOT NULL CHECK (json_valid(record)),  -- the whole file
  file_size         INTEGER NOT NULL,
  file_modified_ns  INTEGER NOT NULL,
  file_inode        INTEGER NOT NULL
) STRICT;

CREATE INDEX benchmarks_by_config ON benchmarks (config, created);

-- For other programs, see docs/STORE.md: there the tables and views that they may rely on are listed.

-- Every number that a run reported while it trained: a row each.
CREATE VIEW metrics AS
  SELECT run_id, step, 'train_loss' AS name, loss AS value FROM train_metrics WHERE loss IS NOT NULL
  UNION ALL
  SELECT run_id, step, 'learning_rate', learning_rate FROM train_metrics WHERE learning_rate IS NOT NULL
  UNION ALL
  SELECT run_id, step, 'gradient_norm', gradient_norm FROM train_metrics WHERE gradient_norm IS NOT NULL
  UNION ALL
  SELECT run_id, step, 'tokens_per_second', tokens_per_second FROM train_metrics
    WHERE tokens_per_second IS NOT NULL
  UNION ALL
  SELECT run_id, step, 'elapsed_seconds', elapsed_seconds FROM train_metrics
    WHERE elapsed_seconds IS NOT NULL
  UNION ALL
  SELECT run_id, step, 'eval_loss', loss FROM evaluations WHERE loss IS NOT NULL;

-- The keys in which runs of one config and profile differ, with the value of each of those runs.
CREATE VIEW sweeps AS
  WITH leaves AS MATERIALIZED (
    SELECT runs.id AS run_id, runs.project, runs.config, runs.profile,
           substr(leaf.fullkey, 3) AS key, leaf.atom AS value
    FROM runs JOIN configs ON configs.run_id = runs.id, json_tree(configs.config) AS leaf
    WHERE leaf.type NOT IN ('object', 'array')),
  varied AS MATERIALIZED (
    SELECT project, config, profile, key FROM leaves
    WHERE key NOT IN ('seed', 'name', 'description')
    GROUP BY project, config, profile, key
    HAVING min(ifnull(value, '')) <> max(ifnull(value, '')))
  SELECT run_id, key, value FROM leaves JOIN varied USING (project, config, profile, key);

-- Of what this file promises to other programs: it grows where a name or a meaning changes.
CREATE VIEW store_version AS SELECT 1 AS version;
