#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/results/store/database.h"
#include "core/results/store/run_summary.h"
#include "core/run/event_log.h"
#include "core/run/run_folder.h"

/// What the store reads of a run's folder. It needs no database, so several runs are read at once,
/// before the write lock is taken.
namespace forge::store {

/// How far a run's files have been read: a row of the table `sources`.
struct FileState {
  FileStamp record;        ///< run.json
  FileStamp config;        ///< config.json
  FileStamp events;        ///< events.jsonl
  FileStamp remarks = {};  ///< remarks.json
  int64_t events_offset = 0;
};

/// The state of a run's files now; the offset stays 0.
FileState file_state_of(const run::RunFolder& folder);

/// Whether the files can be read on from where the last time ended: neither was replaced nor cut,
/// nor, as far as the end of a line tells, written anew in place.
bool continues(const FileState& before,
               const FileState& now,
               const std::filesystem::path& events_file);

/// New lines of a run's events file.
struct NewEvents {
  FileStamp stamp;        ///< of the file before it was read
  run::EventBatch lines;  ///< the first of them
};

/// So much of a run's events is held at once, by each core.
constexpr int64_t max_event_bytes = int64_t{1} << 20;

/// What run.json and config.json say of a run. Parsing and checking them takes most of the time of
/// a new run.
struct Description {
  FileStamp record, config;  ///< of run.json and config.json before they were read
  RunSummary run;
  std::string config_text;
};

/// What is read of a changed run before the write lock is taken.
struct ReadRun {
  NewEvents events;
  std::optional<Description> description;  ///< of a new run
};

/// Throws Error if run.json or config.json cannot be read.
Description describe(const run::RunFolder& folder);

NewEvents read_new_events(const run::RunFolder& folder, int64_t offset);

}  // namespace forge::store
