#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/run/identity.h"

namespace forge::weights {
struct CheckpointState;
}

namespace forge::run {

/// run.json: which run a folder holds. Written before the run begins. After that only the workspace
/// changes, where it is moved (moved_files.h).
struct RunRecord {
  std::string id;       ///< the folder's name: "<config>-<key>", with --force "…-2"
  std::string project;  ///< path of the project below the workspace, e.g. "projects/canon"
  /// Root of the workspace, absolute: of one that came from elsewhere that which it came to. "":
  /// not recorded.
  std::string workspace = {};
  std::string workspace_id = {};  ///< project::workspace_id of it, "": not recorded
  std::string config;             ///< name of the config, without .yaml
  std::string key;                ///< run_key(identity)
  std::string created;            ///< UTC
  std::string command;            ///< as typed
  std::string revision;  ///< git commit of the workspace, "…-dirty" with changed files, or ""
  std::string imported_from;  ///< folder of an imported model, or ""
  std::string imported =
      {};  ///< UTC, when the run came here from another runs folder; "": made here
  /// The seeds with which the command that made the run wanted to train this config.
  std::vector<int64_t> planned_seeds;
  /// The claims of the project's tables about this config when the run was made, by their keys
  /// (tables::claim_key).
  std::vector<std::string> planned_claims;
  /// The project's tables with a row of this config when the run was made, each with its
  /// tables::recorded_design; none: not recorded.
  std::optional<std::map<std::string, std::string>> planned_tables = {};
  /// config_key of its config as its files had it then, without --set, or no_own_config; "": not
  /// recorded.
  std::string planned_config = {};
  /// Names the order that the command drew in which to train several configs, each at its place in
  /// every turn; "": it drew none.
  std::string drawn_order = {};
  /// Id of an older run of the same seed that told other losses of the steps which this one took
  /// over from another run (repeated_run); "": none.
  std::string repeats = {};
  std::string inputs_hash = {};  ///< of the request that it was planned with, "": not recorded
  int64_t train_rows = 0;  ///< different rows that it trains on; 0: of several texts, or not known
  int64_t evaluation_rows = 0;  ///< that there are of train.eval_rows; 0: not known
  /// Nats a token that no model can predict of the text evaluated on; none: not known.
  std::optional<double> entropy_floor;
  /// Of the sentences evaluated on, the fraction that the training rows hold too; none: not known.
  std::optional<double> repeated_sentences;
  Identity identity;

  /// Whether it came from elsewhere, so that anybody may have written it.
  bool is_imported() const { return !imported.empty() || workspace.empty(); }
};

/// State of a run, from its files and the queue's. A run that never began is queued, or it is not
/// started: it left the queue again, or was never put there. One whose supervisor was killed is
/// queued as well while it is in the queue.
enum class RunState { not_started, queued, running, completed, stopped, failed };
const std::vector<std::string>& names_of(RunState);
/// "not started", "queued", "running", "completed", "stopped", "failed".
const std::string& name_of(RunState state);

/// The state of a run, and how it ended.
struct RunStatus {
  RunState state = RunState::not_started;
  int attempt = 0;           ///< number of the attempt that ended last, 0: none yet
  std::string reason;        ///< why it failed or stopped, ""
  std::string hint;          ///< what to do about it, ""
  int exit_status = 0;       ///< of the last worker
  int signal = 0;            ///< that killed the last worker, 0: none
  bool storage = false;      ///< failed because the disk is full or fails
  bool diverged = false;     ///< failed because the numbers of training no longer made sense
  bool interrupted = false;  ///< failed without an end: the supervisor was killed
  bool halved = false;       ///< stopped at a step up to which it was to train (core/run/halving.h)
  /// Failed because it was completed and its files do not say so any more: numbers would be those
  /// of an earlier step, and it cannot go on from what is left.
  bool damaged = false;
  /// errno of what kept its files from being read, so that nothing is known of it; 0: nothing did.
  int unreadable = 0;
  std::vector<std::string> stderr_lines;  ///< the last ones that it wrote
  int rank = 0;                           ///< of the process that wrote them
};

/// How long the files of a worker's messages are: what stands in them before that was said before.
struct StderrSizes {
  std::optional<int64_t> first = {};                ///< of stderr.log; none without the file
  std::optional<std::vector<int64_t>> others = {};  ///< of other processes' by rank; none without

  /// 0 for one that is not there.
  int64_t of(int rank) const;
};

/// Processes of a run on this machine that are stopped (SIGSTOP, or a debugger): it waits for them.
struct StoppedProcesses {
  int supervisor = 0;        ///< its process id; 0: it is not stopped
  std::vector<int> workers;  ///< and what they started

  bool any() const { return supervisor != 0 || !workers.empty(); }
  /// "the supervisor (process 4711) is stopped: 'kill -CONT 4711' continues it"; "" where none is.
  std::string text() const;
};

/// What the reason for which a run stopped ends with where all runs were asked to.
constexpr const char* with_all_text = ", as all runs";
/// Whether it does. A search does not
/// send the others on then.
bool is_stopped_with_all(const std::string& reason);

enum class StopRequest {
  after_checkpoint,  ///< finish the step, save a checkpoint, end
  immediately,       ///< kill the worker
};

/// The checkpoint that a run resumes from.
struct FoundCheckpoint {
  /// The newest whole one among those that the run's events name, else the newest whole one, or "".
  std::string folder;
  std::vector<std::string> damaged;  ///< what is wrong with each newer one
  bool recorded = false;  ///< the run's events tell of it, or they have lost what they told
};

/// Whether a name can be that of a run's folder: at most 200 bytes of UTF-8 without "/", "*", "?"
/// and control characters, no name that an option, a hidden file, forge.sqlite or a file on its way
/// in has.
bool is_run_name(const std::string& name);

/// The id of a run of a config, without the number of a repetition. Configs may lie in folders;
/// runs lie side by side.
std::string run_id(const std::string& config, const std::string& key);

/// Whether the record's id is one that a run of its config has.
bool names_its_config(const RunRecord& record);

/// Throws Error where the run that a folder holds has the key of the identity that is asked for,
/// and another identity: its numbers would be taken for those of what is asked for.
void require_identity(const RunRecord& found, const Identity& asked);

/// Throws Error where a config is not, in all that decides results, the one of the run's identity.
/// `file` is where it was read from.
void require_config_of(const RunRecord& record,
                       const nlohmann::json& config,
                       const std::filesystem::path& file);

/// The files of one run. The object holds only the path; each member opens what it needs.
///
///     run.json            RunRecord
///     config.json         resolved config, complete
///     config.origin.json  {"model.hidden_size": {"origin": "file:line:col", "set_by": …}, …}
///     request.json        the worker's request line; an imported run has none
///     tokenizer.json      the tokenizer that its token ids come from
///     events.jsonl        append-only truth: every line {"time":…,"attempt":N,"event":…,…}
///     stderr.log          the worker's messages; stderr-<rank>.log those of its other processes
///     env.json            what it ran on
///     progress.json       the latest progress event, rewritten twice a second at most
///     supervisor.log      the supervisor's messages, mostly none
///     lock                held (flock) by the supervisor while it lives, and signed
///     stop                its presence asks for a stop: "save" or "now"
///     save                its presence asks for one checkpoint
///     meeting_place/      in which the processes of an attempt find each other, while it lasts
///     remarks.json        Annotations, if there are any
///     checkpoints/<step>/ zero-padded to 9 digits, newest last
///     DONE                written last, by the supervisor, when the job is completed; whether it
///                         is, events.jsonl has to say too
///
/// events.jsonl holds the worker's events and the supervisor's (AttemptStarted, AttemptEnded).
/// "time" is in seconds since 1970. The events "attempt", "ended", "checkpoint" and "evaluation"
/// have "stderr_bytes", the size of stderr.log at that time, and "other_stderr_bytes", those of
/// other processes' files. A resumed attempt repeats the steps after its checkpoint: of two events
/// for one step the later attempt's counts.
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
  /// `rank`: of one of several processes.
  std::filesystem::path stderr_file(int rank = 0) const {
    return path_ / (rank == 0 ? "stderr.log" : "stderr-" + std::to_string(rank) + ".log");
  }
  /// stderr.log, and those of other processes that there are, by rank.
  std::vector<std::filesystem::path> stderr_files() const;
  std::filesystem::path environment_file() const { return path_ / "env.json"; }
  std::filesystem::path progress_file() const { return path_ / "progress.json"; }
  std::filesystem::path supervisor_log() const { return path_ / "supervisor.log"; }
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  std::filesystem::path stop_file() const { return path_ / "stop"; }
  std::filesystem::path save_file() const { return path_ / "save"; }
  std::filesystem::path annotations_file() const { return path_ / "remarks.json"; }
  std::filesystem::path meeting_place() const { return path_ / "meeting_place"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path done_file() const { return path_ / "DONE"; }

  /// Whether a symbolic link stands in the folder's place: that is no run of the runs folder,
  /// whatever it leads to.
  bool is_linked() const;
  /// Whether run.json is there. Throws Error where that cannot be looked at: the folder is closed
  /// to this user, say.
  bool has_record() const;
  /// Throws Error naming the file where it cannot be read, its key is not that of its identity (it
  /// was changed), or no config can have its config's name.
  RunRecord record() const;
  /// The resolved config. Throws Error naming the file where it cannot be read, or is not that of
  /// the run's identity.
  nlohmann::json config() const { return config(record()); }
  nlohmann::json config(const RunRecord& record) const;  ///< the same; `record` is this run's
  /// The config, read. Throws Error where another version of forge wrote it.
  config::Experiment experiment() const;
  /// Reads the state of one of the run's checkpoints; every file of it is compared with its hash.
  /// Throws Error where it is damaged, has the name of another step, or is of another run.
  weights::CheckpointState read_checkpoint(const std::filesystem::path& checkpoint) const;
  /// The newest one that can be read so.
  std::string newest_checkpoint() const { return find_checkpoint().folder; }
  /// The same with what was passed over. Throws Error for one that cannot be read at the moment, as
  /// is_unreadable tells: an older one would take its place for good.
  FoundCheckpoint find_checkpoint() const;
  StderrSizes stderr_sizes() const;
  /// Whether a supervisor holds the run's lock.
  bool is_running() const { return FileLock::is_held(lock_file()); }
  /// The run's lock; none where a supervisor holds it. Who asks whether it is held shares it for an
  /// instant, which is waited for. Throws Error where another process shares it for longer: who may
  /// read the file can lock it.
  std::optional<FileLock> try_lock(double patience_seconds = 2) const;
  RunState state() const { return status().state; }
  /// A run is completed where its log ends with a worker that finished at the config's last step.
  /// Who knows train.max_steps saves reading config.json for it.
  RunStatus status(std::optional<int64_t> max_steps = {}) const;
  /// The same, asked for again where the files cannot be read for a moment: by who acts on it.
  RunStatus patient_status() const;
  /// That for who holds the run's lock: that it is held says nothing.
  RunStatus status_before_lock() const;
  /// Throws Error where the folder, its checkpoints or a file that is appended to is a link or
  /// anything else but a real folder or file: who writes to the run would change something
  /// elsewhere.
  void require_own_files() const;
  /// Throws Error with the reason and what to do about it where the status is a damaged one, or the
  /// run could not be read.
  void require_undamaged(const RunStatus& status) const;
  /// Nothing is known of another machine's.
  StoppedProcesses stopped_processes() const;
  /// Asks the supervisor for a stop. The next supervisor ignores requests from before its start.
  /// One that is stopped (SIGSTOP) is continued, or it would not hear of it. `with_all`: all runs
  /// are asked at once, which the reason of its end says (is_stopped_with_all).
  void request_stop(StopRequest stop, bool with_all = false) const;
  /// Asks the supervisor to let the worker save a checkpoint and continue. Ignored by a worker that
  /// cannot do so.
  void request_save() const;

 private:
  RunStatus status_from_events(std::optional<int64_t> max_steps, bool is_own_lock) const;
  RunStatus status_of(std::optional<int64_t> max_steps, bool is_own_lock) const;

  std::filesystem::path path_;
};

nlohmann::json to_json(const RunRecord& record);
RunRecord record_from_json(const nlohmann::json& json);

/// Why a supervisor ended without an "ended" event: the last lines of supervisor.log.
std::string supervisor_error(const RunFolder& folder);

/// What is wrong with a link in the place of a run folder, and what mends it.
constexpr const char* linked_run_text =
    "a symbolic link stands in the place of its folder; remove the link, or put what it leads to "
    "in its place";

}  // namespace forge::run
