#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/run/run_folder.h"
#include "core/worker/messages.h"

namespace forge::run {

/// Reads the complete lines of a growing file from a byte offset on. The text behind the last
/// newline is still being written and is not read.
class LineReader {
 public:
  /// Longest line that is kept: the protocol's limit and room for what the supervisor adds.
  static constexpr size_t max_line_bytes = size_t{2} << 20;

  /// A file that does not exist has no lines. Throws Error where it cannot be read.
  LineReader(const std::filesystem::path& path, int64_t offset);

  /// Moves to the next complete line; false where there is none yet.
  bool next();

  const std::string& line() const { return line_; }     ///< without its newline
  bool too_long() const { return too_long_; }           ///< line() is empty then
  int64_t line_offset() const { return line_offset_; }  ///< of the line's first byte
  int64_t next_offset() const { return next_offset_; }  ///< of the byte after its newline

 private:
  bool fill();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::string buffer_;
  size_t position_ = 0;      ///< in buffer_ of the next unread byte
  int64_t read_offset_ = 0;  ///< in the file, of the byte after buffer_
  std::string line_;
  bool too_long_ = false;
  int64_t line_offset_ = 0;
  int64_t next_offset_ = 0;
};

/// The supervisor's event "attempt": it has started a worker.
struct AttemptStarted {
  int64_t pid = 0;
  std::string host;
  std::string resume_from;           ///< the checkpoint, "": from the start
  std::vector<std::string> damaged;  ///< what is wrong with each newer checkpoint
  StderrSizes stderr_sizes = {};
  std::optional<int64_t> stop_after = {};  ///< SupervisorOptions::stop_after, none: the last step
  std::string recompute = {};              ///< train.recompute, "": not recorded
  /// numerics_variables(), none: not recorded.
  std::optional<std::map<std::string, std::string>> variables = {};
  std::map<std::string, std::string> inputs = {};  ///< InputFiles::states
  /// InputFiles::changed_since of the attempt before, whose supervisor was killed.
  std::vector<std::string> changed_inputs = {};
  std::vector<std::string> devices =
      {};  ///< of the host, that it was started on; none: not recorded
};

/// The supervisor's event "ended": the worker has ended, and with it the run unless `retry`.
struct AttemptEnded {
  RunState status = RunState::failed;
  std::optional<int> exit_status = {};
  std::optional<int> signal = {};
  std::string reason = {};
  std::string hint = {};
  int rank = 0;                                  ///< of the process that explains the end
  std::vector<std::string> stderr_lines = {};    ///< the last ones, of that process
  bool retry = false;                            ///< another worker starts
  std::optional<double> wait_seconds = {};       ///< before it does
  bool storage = false;                          ///< failed because the disk is full or fails
  bool diverged = false;                         ///< failed because its numbers make no sense
  std::optional<double> busy_elsewhere = {};     ///< fraction of the cores that others kept busy
  std::optional<double> stopped_seconds = {};    ///< that the worker was stopped (SIGSTOP)
  std::vector<std::string> changed_inputs = {};  ///< InputFiles::changed, at the end
  StderrSizes stderr_sizes = {};
  /// Stopped because SupervisorOptions::stop_after was reached; none: for another reason.
  std::optional<int64_t> stop_after = {};
};

/// "stderr_bytes" and "other_stderr_bytes" of an event, as far as they are known.
nlohmann::json to_json(const StderrSizes& sizes);
/// Those of a line of events.jsonl. Throws Error where they are no sizes.
StderrSizes stderr_sizes_from(const nlohmann::json& event);

/// A line of events.jsonl: a worker's event, or one of the supervisor's own.
struct StoredEvent {
  double time = 0;  ///< seconds since 1970
  int attempt = 0;
  std::string name;
  nlohmann::json json;                         ///< the whole line
  std::optional<worker::Event> event;          ///< none for the supervisor's, or one unknown here
  std::optional<AttemptStarted> started = {};  ///< of "attempt"
  std::optional<AttemptEnded> ended = {};      ///< of "ended"
  /// Of "taken_over": an event of the run that this one continues. It says under what the steps
  /// were trained that this run has taken over, and nothing else of this run.
  std::shared_ptr<const StoredEvent> taken_over = {};
};

/// What the event says of the beginning of an attempt: of the run, or of the one that it continues,
/// whose attempts its first steps are of. Null for other events.
const worker::Started* started_of(const StoredEvent& stored);

/// Throws Error for what is no such line.
StoredEvent stored_event_from_line(const std::string& line);

/// What a run that continues another one takes over of an event of that, as a line of its own log:
/// attempt 0. Losses and measures stay what they are; what says under which conditions they came
/// about (program, device, processes, load, changed files) is wrapped in "taken_over", so that only
/// who asks for these conditions meets it. "": nothing.
std::string taken_over_line(const StoredEvent& stored);

/// The files of which the event says that they changed while weights were trained that the run
/// still goes on with. An attempt from the start goes on with nothing that was read before it.
std::vector<std::string> changed_inputs_of(const StoredEvent& stored);

/// The fraction of the cores that other processes kept busy so far, or while the attempt lasted.
std::optional<double> load_of(const StoredEvent& stored);

/// Seconds that the attempt's worker was stopped so far, or while it lasted.
std::optional<double> stopped_seconds_of(const StoredEvent& stored);

/// Calls `take` with each whole line of an events file, in order; with none where there is no file.
/// Holds one at a time, however long a run trains. Throws Error naming file and line number, also
/// where a number cannot be (worker::require_plausible).
void for_each_event(const std::filesystem::path& events_file,
                    const std::function<void(const StoredEvent&)>& take);

/// All of them, where they are few.
std::vector<StoredEvent> read_events(const std::filesystem::path& events_file);

/// A line of an events file: what it says, or why it cannot be read. Of a train event `json` is
/// empty.
struct ReadLine {
  int64_t offset = 0;  ///< of its first byte
  std::optional<StoredEvent> event;
  std::string problem;
};

/// Reads the whole lines of an events file from an offset on, fast and one at a time. A line that
/// cannot be read has a problem, also a worker's event that this version does not know, and one
/// with a number that cannot be (worker::require_plausible).
class EventReader {
 public:
  /// Throws Error if the file cannot be read.
  EventReader(const std::filesystem::path& events_file, int64_t offset)
      : lines_(events_file, offset) {}

  /// The next line; nullopt where there is none yet.
  std::optional<ReadLine> next();
  /// Of the byte behind the last line.
  int64_t next_offset() const { return lines_.next_offset(); }

 private:
  LineReader lines_;
};

/// Consecutive lines of an events file.
struct EventBatch {
  int64_t begin = 0;  ///< offset of the first byte
  int64_t end = 0;    ///< of the byte after the last line
  bool whole = true;  ///< up to the last whole line of the file
  std::vector<ReadLine> lines;
};

/// The lines of an EventReader that begin in the first `most_bytes` behind `offset`.
EventBatch read_event_lines(const std::filesystem::path& events_file,
                            int64_t offset,
                            int64_t most_bytes = INT64_MAX);

/// The start of the newest attempt, where the file does not tell of its end: its supervisor was
/// killed.
std::optional<AttemptStarted> unended_attempt(const std::filesystem::path& events_file);

/// Steps of the checkpoints that the file tells of, each with the last attempt that saved it,
/// without reading its other lines. A worker's events are recorded in its order: all that it had to
/// say before such a checkpoint is there, too.
std::map<int64_t, int> recorded_checkpoints(const std::filesystem::path& events_file);

/// Writer of events.jsonl; its holder holds the run's lock. An event is acknowledged once it is
/// synced, which happens for many at a time.
class EventLog {
 public:
  /// At most so long an event waits to be synced, as far as sync_if_due is called.
  static constexpr double sync_every_seconds = 0.2;

  /// Cuts a torn last line, which a crash in mid-write left.
  explicit EventLog(const std::filesystem::path& events_file);

  /// Number of the last attempt in the file, 0 where there is none.
  int last_attempt() const { return last_attempt_; }

  /// Adds time and attempt to the event and appends it; another run's checkpoint may fill the disk
  /// for a moment, which it waits for. Throws Error when it cannot be written; the file then ends
  /// with the line before.
  void append(nlohmann::json event, int attempt);
  void append(const AttemptStarted& event, int attempt);
  void append(const AttemptEnded& event, int attempt);
  void sync();
  /// Throws Error where the file was removed or replaced: what is appended would be lost.
  void require_in_place() const;
  /// Syncs what waits for longer than sync_every_seconds at `now` of a steady clock.
  void sync_if_due(double now);

 private:
  std::filesystem::path path_;
  AppendFile file_;
  int last_attempt_ = 0;
  bool unsynced_ = false;
  double synced_at_ = 0;
};

/// The event with time and attempt, as it is stored.
nlohmann::json stamped(nlohmann::json event, int attempt);

/// What happened in a run since the last look.
struct Update {
  std::vector<StoredEvent> events;           ///< new ones, in order
  std::optional<worker::Progress> progress;  ///< the latest, where it is a new one
  bool over = false;  ///< nobody supervises the run, nothing more will come: see RunFolder::status
};

/// How far an active run is, and how fast. Times are those of its events, in seconds since 1970:
/// who begins to follow a run reads the events of hours in a moment.
class Pace {
 public:
  void take(const worker::Event& event, double time);

  int64_t step() const { return step_; }
  int64_t max_steps() const { return max_steps_; }  ///< 0 before training begins
  double fraction() const { return max_steps_ > 0 ? double(step_) / double(max_steps_) : 0; }
  /// At the time `now`: counts down between two reports. None before the second report of a step:
  /// the first steps may wait for a compiler, or for memory.
  std::optional<double> seconds_left(double now) const;

 private:
  void advance(int64_t step, double time);

  bool is_timed_ = false;  ///< since the first report of a step
  int64_t timed_step_ = 0, step_ = 0, max_steps_ = 0;
  double timed_from_ = 0, stepped_at_ = 0;
};

/// Reads a run folder that somebody else writes. Starts with the first event.
class Follower {
 public:
  explicit Follower(RunFolder folder) : folder_(std::move(folder)) {}
  /// Skips what is there already.
  void skip_to_end();
  /// At most so much is read at once: a run that has trained for weeks has a long log.
  static constexpr int64_t max_poll_bytes = int64_t{8} << 20;
  /// Does not wait. A run with more events than are read at once is not over yet. Throws Error when
  /// the events file cannot be read.
  Update poll();

 private:
  std::optional<worker::Progress> new_progress();

  RunFolder folder_;
  int64_t offset_ = 0;  ///< of the first byte not yet read, at the start of a line
  std::string progress_line_;
};

}  // namespace forge::run
