#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/model/weights/safetensors.h"

namespace forge::weights {

/// Files of a checkpoint folder. manifest.json is written last, with the state of the job and the
/// size and hash of the others. Several processes write the files together, each its own part of
/// every tensor: they have the same bytes as those of one.
constexpr const char* weights_file = "weights.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* manifest_file = "manifest.json";
/// An empty file in a checkpoint that a supervisor knew of.
constexpr const char* acknowledged_file = "acknowledged";

/// Where a job stands besides its tensors.
struct CheckpointState {
  int64_t step = 0;                                 ///< steps done
  int64_t rows_served = 0;                          ///< position in the data
  double elapsed_seconds = 0;                       ///< wall time of training so far
  std::string identity = "";                        ///< key of the run that it belongs to
  std::optional<double> eval_loss = {};             ///< of an evaluation after this very step
  nlohmann::json extra = nlohmann::json::object();  ///< backend's own (measures that go on)
};

/// Writes folder `checkpoints/<step, 9 digits>` aside, syncs, renames: a crash at any moment leaves
/// the whole folder or none. A checkpoint of the same step is replaced. Returns the folder's path;
/// `bytes`, where given, receives its size. `on_bytes` counts each tensor's bytes twice, when they
/// are written and when they are hashed. An error leaves nothing behind.
std::filesystem::path write_checkpoint(const std::filesystem::path& checkpoints,
                                       const CheckpointState& state,
                                       const std::map<std::string, TensorView>& weights,
                                       const std::map<std::string, TensorView>& optimizer,
                                       int64_t* bytes = nullptr,
                                       const OnBytes& on_bytes = {});

/// Which of several processes that write a checkpoint together.
struct CheckpointPart {
  int rank = 0;
  int count = 1;

  bool is_first() const { return rank == 0; }
};

/// The same for one of several processes, with its own parts of the tensors: all begin the same
/// checkpoint. The first one waits for the others, until `gives_up`, and writes the manifest.
std::filesystem::path write_checkpoint_part(const std::filesystem::path& checkpoints,
                                            const CheckpointState& state,
                                            const std::map<std::string, TensorPart>& weights,
                                            const std::map<std::string, TensorPart>& optimizer,
                                            const CheckpointPart& part,
                                            const std::function<bool()>& gives_up,
                                            int64_t* bytes = nullptr,
                                            const OnBytes& on_bytes = {});

/// Name of the folder of a step's checkpoint: the step in nine digits at least.
std::string checkpoint_name(int64_t step);

/// The step of a checkpoint folder, from its name; none for a name that no checkpoint has.
std::optional<int64_t> checkpoint_step(const std::filesystem::path& folder);

/// Writes the manifest of a checkpoint whose writer left that to forge: of every file in the folder
/// as it is now. Does nothing where there is a manifest, or no folder. Throws Error where the
/// folder holds anything but plain files, or cannot be written.
void seal_checkpoint(const std::filesystem::path& folder, const CheckpointState& state);

/// To be called when a writer says that it has saved the checkpoint of `state.step`: seals it where
/// that was left to forge. Throws Error where there is no such folder, or where it is not a whole
/// checkpoint of that step and of `state.identity`: files are compared with their size alone, since
/// a worker trains on meanwhile. Marks it, so that is_acknowledged tells of it.
void acknowledge_checkpoint(const std::filesystem::path& folder, const CheckpointState& state);

/// Whether a supervisor knew of the checkpoint, and so of all that its writer said before.
bool is_acknowledged(const std::filesystem::path& folder);

/// How the files that a manifest lists are checked: size and hash, size alone, not at all.
enum class FileCheck { content, size, none };

/// Reads and checks the manifest and, as `check` asks, the files that it lists. Throws Error naming
/// what is damaged or missing, and where the folder has the name of another step.
CheckpointState read_checkpoint_state(const std::filesystem::path& folder,
                                      FileCheck check = FileCheck::content);

/// The step of a whole checkpoint whose folder has the name of another one; none for any other.
std::optional<int64_t> misnamed_step(const std::filesystem::path& folder,
                                     FileCheck check = FileCheck::content);

/// Checkpoint folders below `checkpoints`, oldest first; unfinished ones are not listed. They are
/// not read: whether one is whole, read_checkpoint_state tells.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& checkpoints);

/// Which checkpoints are kept.
struct Retention {
  int newest = 2;    ///< number of the latest ones
  bool best = true;  ///< and the one with the lowest eval_loss, the later of two equal ones
  /// And those of which this is true; none: no others. Asked of those that else were not to be
  /// kept.
  std::function<bool(const std::filesystem::path&)> is_needed = {};
};

/// The checkpoints that are not to be kept.
std::vector<std::filesystem::path> surplus_checkpoints(const std::filesystem::path& checkpoints,
                                                       const Retention& retention);

/// Keeps a checkpoint from remove_surplus_checkpoints while the lock is there: for who reads it
/// while its run trains on. Nothing where it is gone already.
std::optional<FileLock> hold_checkpoint(const std::filesystem::path& folder);

/// Removes those up to `last_step`, the newest that a run's events tell of, but for held ones.
/// Later ones do not count: a run may have to resume from what was recorded, however far its worker
/// got.
void remove_surplus_checkpoints(const std::filesystem::path& checkpoints,
                                const Retention& retention,
                                int64_t last_step);

/// Removes every unfinished checkpoint and those of steps after `last_step`: a run that stands
/// there has left their course. For the process that writes them, since it takes another's
/// unfinished checkpoint for an abandoned one.
void remove_abandoned_checkpoints(const std::filesystem::path& checkpoints, int64_t last_step);

/// Text of manifest.json for the state and the named files of `folder`, which are read for their
/// hashes:
///
///     {"manifest": {"version": 1, "state": {…}, "files": {"weights.safetensors": {"bytes": N,
///      "hash": "…"}, …}}, "hash": "…"}
///
/// The last hash is that of the inner object, so that damage to the manifest itself is found.
/// `on_bytes`, where given, counts the files' bytes as they are hashed.
std::string manifest_text(const CheckpointState& state,
                          const std::filesystem::path& folder,
                          const std::vector<std::string>& files,
                          const OnBytes& on_bytes = {});

/// Where several processes write a checkpoint until it is whole.
std::filesystem::path shared_folder(const std::filesystem::path& checkpoints, int64_t step);

/// Removes what other attempts left there: for the first process, before any of them writes.
void remove_shared_folders(const std::filesystem::path& checkpoints);

/// A checkpoint that is whole under its final name; of a process that is not the first, its part.
struct WrittenCheckpoint {
  int64_t step = 0;
  std::filesystem::path folder;
  int64_t bytes = 0;
};

/// Writes the checkpoints of a run from a thread of its own, one at a time, and removes abandoned
/// ones. Where the disk is full it tries again for 15 seconds. Used by one thread. The
/// first of several processes waits for the others, as long as it takes.
class CheckpointWriter {
 public:
  using Tensors = std::map<std::string, TensorPart>;

  explicit CheckpointWriter(std::filesystem::path checkpoints, const CheckpointPart& part = {})
      : checkpoints_(std::move(checkpoints)), part_(part) {}
  /// Waits for a write that is under way, but no longer for other processes or for room.
  ~CheckpointWriter() {
    gives_up_ = true;
    if (pending_.valid()) pending_.wait();
  }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins to write. The viewed tensors must not change until take_written() has returned this
  /// checkpoint. No other write may be in progress.
  void start(CheckpointState state, Tensors weights, Tensors optimizer);

  /// Whether a checkpoint was begun that take_written() has not returned yet.
  bool is_busy() const { return pending_.valid(); }

  /// Progress of the last write that was begun, from 0 to 1.
  double fraction() const;
  /// How much of the time in which it tries again is over, from 0 to 1, while the disk is full;
  /// none while it writes. Several processes do not tell.
  std::optional<double> room_wait() const;

  /// The checkpoint that was begun, once it is written: waits for it, at most `seconds`. Throws
  /// Error with ExitCode::storage when it could not be written; those before it are untouched then.
  std::optional<WrittenCheckpoint> take_written(double seconds = 0);

 private:
  std::filesystem::path checkpoints_;
  CheckpointPart part_;
  std::atomic<bool> gives_up_{false};
  int64_t bytes_to_handle_ = 0;            ///< that are written or hashed
  std::atomic<int64_t> bytes_handled_{0};  ///< by the thread
  std::atomic<double> room_wait_{-1};      ///< below 0: it does not wait
  std::future<WrittenCheckpoint> pending_;
};

}  // namespace forge::weights
