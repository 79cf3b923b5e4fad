#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/protocol/messages.h"
#include "core/run/event_log.h"
#include "core/run/examiner.h"
#include "core/run/launcher.h"
#include "core/run/machine_load.h"
#include "core/run/run_folder.h"
#include "core/run/stop.h"
#include "core/run/supervisor.h"

namespace forge::run {

/// How one worker's life ended.
struct AttemptEnd {
  RunState state = RunState::failed;  ///< completed, stopped or failed
  ExitStatus exit;
  std::string reason;
  std::string hint;
  bool mendable = false;                      ///< a fresh worker may get further
  bool storage = false;                       ///< the disk is full or fails
  bool saved = false;                         ///< the worker saved a checkpoint
  std::optional<double> busy_elsewhere = {};  ///< machine_load.h
};

/// One worker from its start to its exit: reads its lines, records its events, watches for silence,
/// passes on the wish to stop.
class Attempt {
 public:
  /// `worker` has just been started.
  Attempt(const RunFolder& folder,
          const SupervisorOptions& options,
          int number,
          RunningWorker& worker,
          Examiner& examiner,
          EventLog& log,
          StopWatch& stop_watch);

  /// Returns once the worker is gone. Throws Error when events cannot be recorded any more; the
  /// worker is then gone, too.
  AttemptEnd run();

 private:
  AttemptEnd watch();
  void on_line(const std::string& line);
  void on_event(const protocol::Event& event);
  /// The worker's event, with how far its prose had come.
  nlohmann::json with_prose(const protocol::Event& event) const;
  void on_answers(const protocol::Answers& answers);
  void on_checkpoint(const protocol::CheckpointSaved& saved);
  void on_progress(const protocol::Progress& progress);
  void on_hello(const protocol::Hello& hello);
  void write_environment(const protocol::Environment& environment) const;
  void pass_on_stop();
  void pass_on_save();
  void watch_silence();
  void look_elsewhere();
  void look_at_machine();
  void give_up(std::string reason, std::string hint = "");
  void sign_of_life() { last_sign_ = options_.clock(); }
  AttemptEnd conclude(const ExitStatus& exit) const;
  void end_unrecorded();

  const RunFolder& folder_;
  const SupervisorOptions& options_;
  int number_;
  RunningWorker& worker_;
  Examiner& examiner_;
  EventLog& log_;
  StopWatch& stop_watch_;

  std::optional<protocol::Hello> hello_;
  std::optional<protocol::Progress> progress_;
  std::optional<protocol::Evaluation> evaluated_;  ///< the last one
  double progress_written_ = -1e9;
  double last_sign_;
  double looked_elsewhere_ = -1e9;
  std::optional<Stop> stop_passed_on_;
  /// The verdict, once it is known: what the worker says after it counts for nothing.
  std::optional<AttemptEnd> verdict_;
  bool killed_ = false;
  bool saved_ = false;        ///< a checkpoint
  MachineLoad machine_load_;  ///< since training began
  std::optional<double> looked_at_machine_;
};

}  // namespace forge::run
