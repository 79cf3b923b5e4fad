#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/base/fs.h"
#include "core/config/experiment.h"
#include "core/protocol/messages.h"
#include "core/run/run_folder.h"

namespace forge::tests {

/// What a run folder made for a test says of its run. The defaults are the quick profile on a CPU.
struct MadeRun {
  MadeRun();

  std::string id;  ///< name of the folder, "": <config>-<key>
  std::string project = "projects/canon";
  std::string config = "train_llama";
  std::string created = "2026-11-20T10:00:00.000Z";
  std::string data_fingerprint = "d1d1d1d1d1d1";
  std::string tokenizer_fingerprint = "e2e2e2e2e2e2";
  std::string device_type = "cpu";
  std::string device_name = "Test CPU";
  int threads = 2;
  int64_t parameters = 4434176;
  config::Experiment experiment;
};

/// The figures of a run that has ended well.
struct Outcome {
  double eval_loss = 3.25;
  double tokens_per_second = 4300;
  int64_t peak_memory_bytes = int64_t{1} << 30;
  std::map<std::string, protocol::Score> scores = {};
  std::optional<double> selection_loss = {};
  double busy_elsewhere = 0;
  bool shared_device = false;
};

/// Writes run.json, config.json and config.origin.json: a run that waits to be started.
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

/// A run that was stopped on request after `step` steps.
run::RunFolder make_stopped_run(const std::filesystem::path& runs_dir,
                                const MadeRun& run,
                                int64_t step);

/// A run that trains; it runs for as long as the lock lives.
FileLock make_running_run(const std::filesystem::path& runs_dir, const MadeRun& run, int64_t step);

/// Appends one event, or one line as it stands, to events.jsonl.
void append_event(const run::RunFolder& folder, const protocol::Event& event, int attempt = 1);
void append_line(const run::RunFolder& folder, const std::string& line);
void append_attempt(const run::RunFolder& folder, int attempt);
void append_ended(const run::RunFolder& folder,
                  const std::string& status,
                  const std::string& reason = "",
                  double busy_elsewhere = 0);

/// Training metrics of a step with figures that follow from the step alone.
protocol::TrainMetrics metrics_at(int64_t step);

}  // namespace forge::tests
