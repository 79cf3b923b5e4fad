#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::tests {

/// A steady clock that stands still but where a fake worker is silent.
struct FakeClock {
  double seconds = 1000;
};

/// What a fake worker does, one step after the other.
struct Says {
  std::string line;
};
struct IsSilent {
  double seconds = 0;
};
struct Exits {
  worker::ExitStatus status;
};
/// Calls back between two lines, e.g. to write the stop file.
struct Does {
  std::function<void()> action;
};
/// Writes a checkpoint without weights into the folder that it was started in, and says so.
struct Saves {
  int step = 0;
};
using Step = std::variant<Says, IsSilent, Exits, Does, Saves>;
using Script = std::vector<Step>;

struct WorkerScript {
  Script steps;               ///< silent for ever after the last one, if that is no Exits
  Script when_asked_to_stop;  ///< replaces what is left of `steps`; empty: it does not listen
};

/// Replays one script a start, in order, and keeps what it was asked for.
class FakeLauncher : public worker::Launcher {
 public:
  FakeLauncher(FakeClock& clock, std::vector<WorkerScript> scripts)
      : clock_(clock), scripts_(scripts.begin(), scripts.end()) {}

  /// One more start, after those that are scripted.
  void add(WorkerScript script) { scripts_.push_back(std::move(script)); }
  std::unique_ptr<worker::RunningWorker> start(const worker::Launch& launch) override;

  std::vector<worker::Launch> launches;
  std::vector<std::string> signals;  ///< "stop", "save" or "kill", as sent
  /// "1: LINE" for a line sent to the worker that was started first, "1: end" for the end of input.
  std::vector<std::string> sent;

 private:
  FakeClock& clock_;
  std::deque<WorkerScript> scripts_;
};

/// What a run folder made for a test says of its run. The defaults are the quick profile on a CPU.
struct MadeRun {
  MadeRun();

  std::string id;  ///< name of the folder, "": <config>-<key>
  std::string project = "projects/canon";
  std::string workspace;     ///< "": not recorded
  std::string workspace_id;  ///< "": not recorded
  std::string config = "train_llama";
  std::string created = "2026-11-20T10:00:00.000Z";
  std::string begun = {};     ///< when its attempt began; "": as soon as it was made
  std::string imported = {};  ///< run::RunRecord::imported
  std::string data_fingerprint = "d1d1d1d1d1d1";
  std::string tokenizer_fingerprint = "e2e2e2e2e2e2";
  std::string initial_weights = "";  ///< their hash; "": they were drawn
  std::string program = "";          ///< hash of an external backend's files
  std::string device_type = "cpu";
  std::string device_name = "Test CPU";
  int threads = 2;
  int64_t parameters = 4434176;
  std::vector<int64_t> planned_seeds;  ///< that the command asked for
  std::optional<std::map<std::string, std::string>> planned_tables =
      {};                           ///< when it was made; none: not recorded
  std::string planned_config = {};  ///< the same; "": not recorded
  std::string drawn_order = {};     ///< run::RunRecord
  std::string repeats = {};         ///< run::RunRecord::repeats
  std::optional<double> entropy_floor;
  std::optional<double> repeated_sentences;
  config::Experiment experiment;
};

/// The figures of a run that has ended well.
struct Outcome {
  double eval_loss = 3.25;
  double tokens_per_second = 4300;
  int64_t peak_memory_bytes = int64_t{1} << 30;
  std::map<std::string, worker::Score> scores = {};
  std::optional<double> validation_loss = {};
  double busy_elsewhere = 0;
  bool shared_device = false;
  std::vector<std::string> changed_inputs = {};
  bool is_exact = false;  ///< the loss is as given, for every seed
};

/// Writes run.json, config.json and config.origin.json: a run that never began.
run::RunFolder make_unstarted_run(const std::filesystem::path& runs_dir, const MadeRun& run);

/// The same with an entry in the queue.
run::RunFolder make_queued_run(const std::filesystem::path& runs_dir, const MadeRun& run);

/// A run as a supervisor and a worker leave it when all went well.
run::RunFolder make_completed_run(const std::filesystem::path& runs_dir,
                                  const MadeRun& run,
                                  const Outcome& outcome = {});

/// A run that trained for `step` steps and failed for `reason`.
run::RunFolder make_failed_run(const std::filesystem::path& runs_dir,
                               const MadeRun& run,
                               int64_t step,
                               const std::string& reason);

/// A run that ended after `step` steps because its loss was no number.
run::RunFolder make_diverged_run(const std::filesystem::path& runs_dir,
                                 const MadeRun& run,
                                 int64_t step);

/// A run that was stopped on request after `step` steps.
run::RunFolder make_stopped_run(const std::filesystem::path& runs_dir,
                                const MadeRun& run,
                                int64_t step);

/// A run that trains; it runs for as long as the lock lives.
FileLock make_running_run(const std::filesystem::path& runs_dir, const MadeRun& run, int64_t step);

/// Appends one event, or one line as it stands, to events.jsonl.
void append_event(const run::RunFolder& folder, const worker::Event& event, int attempt = 1);
void append_line(const run::RunFolder& folder, const std::string& line);
void append_attempt(const run::RunFolder& folder,
                    int attempt,
                    const std::string& resume_from = "",
                    std::optional<double> time = {});
void append_ended(const run::RunFolder& folder,
                  const std::string& status,
                  const std::string& reason = "",
                  double busy_elsewhere = 0,
                  const std::vector<std::string>& changed_inputs = {});

/// Seconds since 1970 of ten o'clock on a day of November 2026.
double time_of_day(int day);

/// Gives the events of a run other times, in seconds since 1970: those that tell a loss, and those
/// behind them.
void set_times(const run::RunFolder& folder, double of_losses, double of_end);

/// Training metrics of a step with figures that follow from the step alone.
worker::TrainMetrics metrics_at(int64_t step);

}  // namespace forge::tests
