#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/protocol/messages.h"
#include "core/run/run_folder.h"

namespace forge::store {

/// What a run is and how far it got: its row of the table `runs`, whose columns have the fields'
/// names, and the scores of its last evaluation.
struct RunSummary {
  std::string id;
  std::string project;
  std::string config;
  std::string key;
  std::string name;
  std::string description;
  std::string command;
  std::string revision;  ///< git commit of the workspace, ""
  std::string created;   ///< UTC
  std::string updated;   ///< UTC, of the newest event
  std::string profile;
  std::string backend;
  std::string backend_version;
  std::string device_type;
  std::string device_name;
  int64_t threads = 0;
  int64_t numerics_version = 0;
  int64_t seed = 0;
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::string evaluation;  ///< e.g. "500 rows of 512 tokens"
  run::RunState status = run::RunState::queued;
  int64_t attempts = 0;
  int64_t step = 0;
  int64_t max_steps = 0;
  int64_t tokens_per_step = 0;
  int64_t tokens = 0;  ///< trained on
  int64_t parameters = 0;
  std::optional<int64_t> eval_step;  ///< step of eval_loss; none: not evaluated yet
  std::optional<double> eval_loss;   ///< NaN where an evaluation gave no number
  std::optional<double> train_loss;
  std::optional<double> tokens_per_second;
  std::optional<double> wall_seconds;
  std::optional<int64_t> peak_memory_bytes;
  std::optional<int64_t> peak_resident_bytes;
  std::optional<int64_t> exit_status;
  std::optional<int64_t> exit_signal;
  std::string failure_reason;  ///< why it failed or stopped, ""
  std::string failure_hint;
  int64_t archived = 0;  ///< 1: lists and tables leave it out
  std::string note;
  std::vector<std::string> tags;            ///< sorted
  std::optional<int64_t> micro_batch_size;  ///< rows computed at once; none: all of a step
  std::optional<double> selection_loss;     ///< at eval_step, of train.selection_rows
  /// Share of the machine's cores that other processes kept busy meanwhile, in the attempt where it
  /// was the most; none: not known.
  std::optional<double> busy_elsewhere;
  int64_t shared_device = 0;  ///< 1: another process held memory of the GPU at the end
  std::map<std::string, protocol::Score> scores;  ///< at eval_step; rows of the table `scores`
};

/// The columns of the table, once: `visit.column(name, field)` for each, in the table's order.
template <class Visitor, class Run>
void columns(Visitor& visit, Run& run) {
  visit.column("id", run.id);
  visit.column("project", run.project);
  visit.column("config", run.config);
  visit.column("key", run.key);
  visit.column("name", run.name);
  visit.column("description", run.description);
  visit.column("command", run.command);
  visit.column("revision", run.revision);
  visit.column("created", run.created);
  visit.column("updated", run.updated);
  visit.column("profile", run.profile);
  visit.column("backend", run.backend);
  visit.column("backend_version", run.backend_version);
  visit.column("device_type", run.device_type);
  visit.column("device_name", run.device_name);
  visit.column("threads", run.threads);
  visit.column("numerics_version", run.numerics_version);
  visit.column("seed", run.seed);
  visit.column("data_fingerprint", run.data_fingerprint);
  visit.column("tokenizer_fingerprint", run.tokenizer_fingerprint);
  visit.column("evaluation", run.evaluation);
  visit.column("status", run.status);
  visit.column("attempts", run.attempts);
  visit.column("step", run.step);
  visit.column("max_steps", run.max_steps);
  visit.column("tokens_per_step", run.tokens_per_step);
  visit.column("tokens", run.tokens);
  visit.column("parameters", run.parameters);
  visit.column("eval_step", run.eval_step);
  visit.column("eval_loss", run.eval_loss);
  visit.column("train_loss", run.train_loss);
  visit.column("tokens_per_second", run.tokens_per_second);
  visit.column("wall_seconds", run.wall_seconds);
  visit.column("peak_memory_bytes", run.peak_memory_bytes);
  visit.column("peak_resident_bytes", run.peak_resident_bytes);
  visit.column("exit_status", run.exit_status);
  visit.column("exit_signal", run.exit_signal);
  visit.column("failure_reason", run.failure_reason);
  visit.column("failure_hint", run.failure_hint);
  visit.column("archived", run.archived);
  visit.column("note", run.note);
  visit.column("tags", run.tags);
  visit.column("micro_batch_size", run.micro_batch_size);
  visit.column("selection_loss", run.selection_loss);
  visit.column("busy_elsewhere", run.busy_elsewhere);
  visit.column("shared_device", run.shared_device);
}

/// Inverse of run::name_of. Throws Error for another word.
run::RunState status_from_name(const std::string& name);
/// Whether nothing about the run changes any more unless its event log grows.
bool is_final(run::RunState status);

/// Steps done of all steps, in percent, rounded down; 0 where the number of steps is not known.
int progress_percent(const RunSummary& run);

}  // namespace forge::store
