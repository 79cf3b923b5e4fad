#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"
#include "core/run/scorer.h"
#include "core/run/supervisor.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::run {

/// How one worker's life ended.
struct AttemptEnd {
  RunState state = RunState::failed;  ///< completed, stopped or failed
  worker::ExitStatus exit;
  std::string reason;
  std::string hint;
  bool retryable = false;                         ///< a fresh worker may succeed
  bool storage = false;                           ///< the disk is full or fails
  bool saved = false;                             ///< the worker saved a checkpoint
  std::optional<double> other_process_load = {};  ///< machine_load.h
};

/// One worker from its start to its exit: reads its lines, records its events, watches for silence,
/// passes on the wish to stop.
class Attempt {
 public:
  /// `worker` has just been started.
  Attempt(const RunFolder& folder,
          const SupervisorOptions& options,
          int number,
          worker::RunningWorker& worker,
          Scorer& scorer,
          EventLog& log,
          StopRequests& stop_requests);

  /// Returns once the worker is gone. Throws Error when events cannot be recorded any more; the
  /// worker is then gone, too.
  AttemptEnd run();

 private:
  AttemptEnd watch();
  void on_line(const std::string& line);
  void on_event(const worker::Event& event);
  /// The worker's event, with the size of stderr.log.
  nlohmann::json with_stderr_size(const worker::Event& event) const;
  void on_answers(const worker::Answers& answers);
  void on_checkpoint(const worker::CheckpointSaved& saved);
  void on_progress(const worker::Progress& progress);
  void on_hello(const worker::Hello& hello);
  void write_environment(const worker::Environment& environment) const;
  void pass_on_stop();
  void pass_on_save();
  void watch_silence();
  void run_periodic_task();
  void sample_machine_load();
  void fail(std::string reason, std::string hint = "");
  void reset_silence_timer() { last_sign_ = options_.clock(); }
  AttemptEnd finish(const worker::ExitStatus& exit) const;
  void kill_without_record();

  const RunFolder& folder_;
  const SupervisorOptions& options_;
  int number_;
  worker::RunningWorker& worker_;
  Scorer& scorer_;
  EventLog& log_;
  StopRequests& stop_requests_;

  std::optional<worker::Hello> hello_;
  std::optional<worker::Progress> progress_;
  std::optional<worker::Evaluation> evaluated_;  ///< the last one
  double progress_written_ = -1e9;
  double last_sign_;
  double periodic_task_at_ = -1e9;
  std::optional<StopRequest> stop_passed_on_;
  /// The verdict, once it is known: what the worker says after it counts for nothing.
  std::optional<AttemptEnd> verdict_;
  bool killed_ = false;
  bool saved_ = false;        ///< a checkpoint
  MachineLoad machine_load_;  ///< since training began
  std::optional<double> machine_load_at_;
};

}  // namespace forge::run
