#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/run/identity.h"

namespace forge::run {

/// run.json: which run a folder holds. Written once, before the supervisor starts.
struct RunRecord {
  std::string
      id;  ///< name of the folder below the runs folder: "<config>-<key>" or "…-2" on --force
  std::string project;  ///< path of the project below the workspace, e.g. "projects/canon"
  std::string config;   ///< name of the config, without .yaml
  std::string key;      ///< run_key(identity)
  std::string created;  ///< UTC
  std::string command;  ///< as typed
  std::string
      revision;  ///< git commit of the workspace, "-dirty" where files differ from it, or ""
  std::string imported_from;  ///< folder of a model that was trained elsewhere, or ""
  Identity identity;
};

/// State of a run, from its files alone.
enum class RunState { queued, running, completed, stopped, failed };
const std::vector<std::string>& names_of(RunState);
/// "queued", "running", "completed", "stopped", "failed".
const std::string& name_of(RunState state);

/// How a run stands, and for one that ended how it ended.
struct RunStatus {
  RunState state = RunState::queued;
  int attempt = 0;                        ///< number of the attempt that ended last, 0: none yet
  std::string reason;                     ///< why it failed or stopped, ""
  std::string hint;                       ///< what to do about it, ""
  int exit_status = 0;                    ///< of the last worker
  int signal = 0;                         ///< that killed the last worker, 0: none
  bool storage = false;                   ///< failed because the disk is full or fails
  bool interrupted = false;               ///< failed without an end: its supervisor was killed
  std::vector<std::string> stderr_lines;  ///< the last ones that it wrote
};

enum class StopRequest {
  after_checkpoint,  ///< finish the step, save a checkpoint, end
  immediately,       ///< kill the worker
};

/// Where a run can go on from.
struct FoundCheckpoint {
  /// The newest one that is whole and that the run's events know of; where there is none of these,
  /// the newest whole one; or "".
  std::string folder;
  std::vector<std::string> damaged;  ///< of each newer one what is wrong with it
};

/// The files of one run. The object holds only the path; each member opens what it needs.
///
///     run.json            RunRecord
///     config.json         resolved config, complete
///     config.origin.json  {"model.hidden_size": {"origin": "file:line:col", "set_by": …}, …}
///     request.json        the worker's request line; an imported run has none
///     tokenizer.json      the tokenizer that its token ids come from
///     events.jsonl        append-only truth: every line {"time":…,"attempt":N,"event":…,…}
///     stderr.log          the worker's prose
///     env.json            what it ran on
///     progress.json       the latest progress event, rewritten twice a second at most
///     supervisor.log      what the supervisor itself had to say, mostly nothing
///     lock                held (flock) by the supervisor while it lives
///     stop                its presence asks for a stop: "save" or "now"
///     save                its presence asks for a checkpoint: the supervisor passes it on, once
///     remarks.json        note, tags and whether it is archived, where there is any of them
///     checkpoints/<step>/ zero-padded to 9 digits, newest last
///     DONE                written last, by the supervisor, when the job is completed
///
/// Lines that the supervisor adds to the worker's own events:
///     {"event":"attempt","attempt":N,"pid":…,"host":…,"resume_from":…,"damaged":["what is wrong
///      with each newer checkpoint"]}                                 a worker starts
///     {"event":"ended","status":"completed|stopped|failed","exit_status":N,"signal":N,"reason":"…",
///      "hint":"…","stderr":["last","lines"],"retry":false}           and has ended; true: another
///      starts after "wait_seconds"; with "storage":true it failed because the disk is full or
///      fails; "busy_elsewhere": 0.02 is the share of the cores that other processes kept busy
/// These two, "checkpoint" and "evaluation" have "stderr_bytes": so long stderr.log was then.
/// "time" is in seconds since 1970. A resumed attempt repeats the steps after its checkpoint: of
/// two events for one step the later attempt's counts.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string id() const { return path_.filename().string(); }
  std::filesystem::path record_file() const { return path_ / "run.json"; }
  std::filesystem::path config_file() const { return path_ / "config.json"; }
  std::filesystem::path origin_file() const { return path_ / "config.origin.json"; }
  std::filesystem::path request_file() const { return path_ / "request.json"; }
  std::filesystem::path tokenizer_file() const { return path_ / "tokenizer.json"; }
  std::filesystem::path events_file() const { return path_ / "events.jsonl"; }
  std::filesystem::path stderr_file() const { return path_ / "stderr.log"; }
  std::filesystem::path environment_file() const { return path_ / "env.json"; }
  std::filesystem::path progress_file() const { return path_ / "progress.json"; }
  std::filesystem::path supervisor_log() const { return path_ / "supervisor.log"; }
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  std::filesystem::path stop_file() const { return path_ / "stop"; }
  std::filesystem::path save_file() const { return path_ / "save"; }
  std::filesystem::path annotations_file() const { return path_ / "remarks.json"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path done_file() const { return path_ / "DONE"; }

  RunRecord record() const;
  /// As find_checkpoint: every file of it is read, and is as it was written.
  std::string newest_checkpoint() const { return find_checkpoint().folder; }
  FoundCheckpoint find_checkpoint() const;
  std::optional<int64_t> stderr_bytes() const;  ///< size of stderr.log; none without the file
  /// Whether a supervisor holds the run's lock.
  bool is_running() const { return FileLock::is_held(lock_file()); }
  RunState state() const { return status().state; }
  RunStatus status() const;
  /// Asks the supervisor for a stop; without one the next supervisor forgets it.
  void request_stop(StopRequest stop) const;
  /// Asks the supervisor to let the worker save a checkpoint and go on; where the worker cannot do
  /// that, or there is none, it is forgotten.
  void request_save() const;

 private:
  std::filesystem::path path_;
};

nlohmann::json to_json(const RunRecord& record);
RunRecord record_from_json(const nlohmann::json& json);

/// Why a supervisor ended without an "ended" event: the last lines of supervisor.log.
std::string supervisor_error(const RunFolder& folder);

/// Every run folder (one that holds run.json) directly below `runs_dir`, sorted by name.
std::vector<RunFolder> list_runs(const std::filesystem::path& runs_dir);

/// The run of that id, or whose id alone begins so; nothing where none does. Throws Error with the
/// candidates where several do.
std::optional<RunFolder> find_run(const std::filesystem::path& runs_dir, const std::string& id);

/// Notes and tags that people add to a run: remarks.json of its folder. They do not change the
/// run's identity.
struct Annotations {
  bool archived = false;  ///< lists and tables leave it out
  std::string note;
  std::vector<std::string> tags;  ///< sorted, each once
};

/// Empty without a file. Throws Error where the file cannot be read.
Annotations read_annotations(const RunFolder& folder);

/// Replaces the file, or removes it when there are no annotations.
void write_annotations(const RunFolder& folder, Annotations remarks);

/// Throws Error for what is no tag: letters, digits, '-', '_', '.', '/' and ':', at most 64.
void check_tag(const std::string& tag);

nlohmann::json to_json(const Annotations& remarks);

/// The folder that holds the run folders, absolute: FORGE_RUNS_DIR where that is set, else
/// `workspace_root`/runs where that is or could be made writable, else ./runs (shipped projects of
/// an installed forge are read-only). Makes nothing.
std::filesystem::path runs_dir(const std::filesystem::path& workspace_root);

/// Makes the folder where it is missing; throws Error (exit code `failed`) with path, reason and
/// what to do when runs cannot be written to it.
void make_runs_dir(const std::filesystem::path& runs_dir);

}  // namespace forge::run
