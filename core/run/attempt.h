#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/input_files.h"
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
  bool not_started = false;                       ///< no worker: the machine's making, it may pass
  bool storage = false;                           ///< the disk is full or fails
  bool diverged = false;                          ///< its numbers no longer make sense
  bool saved = false;                             ///< the worker saved a checkpoint, a whole one
  int rank = 0;                                   ///< of several processes the one to blame
  bool halved = false;                            ///< stopped at SupervisorOptions::stop_after
  std::optional<double> other_process_load = {};  ///< host.h
  std::optional<double> stopped_seconds = {};     ///< that its worker was stopped (SIGSTOP)
  std::vector<std::string> changed_inputs = {};   ///< InputFiles::changed
};

/// The run and the supervisor's part of it.
struct AttemptContext {
  const RunFolder& folder;
  const RunRecord& record;  ///< the folder's: a file that cannot be read later ends no training
  RunLock& lock;
  const SupervisorOptions& options;
  int number = 0;
  weights::Retention retention;
  Scorer& scorer;
  EventLog& log;
  StopRequests& stop_requests;
  const config::Experiment& experiment;  ///< its config
  /// Those of its request.
  const std::vector<worker::TokenSource>& evaluation_tokens;
  int processes = 1;          ///< that the worker is made of
  std::string program_state;  ///< program_hash.h, before the worker started; "": of forge's own
  const InputFiles& inputs;   ///< before the worker started
};

/// Follows a worker that has just been started until it is gone: reads its lines, records its
/// events, watches for silence, passes on stop requests. Throws Error if events can no longer be
/// recorded; the worker is gone then, too.
AttemptEnd run_attempt(const AttemptContext& context, worker::RunningWorker& worker);

}  // namespace forge::run
