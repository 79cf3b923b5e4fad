#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/results/metrics.h"
#include "core/run/event_log.h"
#include "core/run/run_folder.h"
#include "core/worker/messages.h"

namespace forge::store {

using Scores = std::map<std::string, worker::Score>;

/// What a run is and how far it got: its row of the table `runs`, whose columns have the fields'
/// and metrics' names, and the scores of its last evaluation.
struct RunSummary {
  std::string id;
  std::string project;
  std::string workspace;     ///< root of the project's workspace, "": not recorded
  std::string workspace_id;  ///< project::workspace_id of it, "": not recorded
  std::string config;
  std::string key;
  std::string name;
  std::string description;
  std::string command;
  std::string revision;        ///< git commit of the workspace, ""
  std::string planned_seeds;   ///< that its command asked for, with commas between
  std::string planned_claims;  ///< keys of the tables' claims at that time, with commas between
  std::string planned_tables;  ///< JSON: the tables at that time (run::RunRecord); "": not recorded
  std::string planned_config;  ///< run::config_key of its config by itself then; "": not recorded
  std::string drawn_order;     ///< run::RunRecord::drawn_order
  std::string repeats;         ///< run::RunRecord::repeats
  int64_t train_rows = 0;      ///< different ones that it trains on; 0: not known
  std::optional<double> entropy_floor;       ///< of the text evaluated on, nats a token
  std::optional<double> repeated_sentences;  ///< fraction of those evaluated on
  std::string created;                       ///< UTC
  std::string updated;                       ///< UTC, of the newest event
  /// UTC, when the attempt of its own began that first told a loss, or where none did, the last
  /// one;
  /// "": none began. It may have waited for long.
  std::string begun;
  /// UTC, when one of its own attempts first told a loss, of training or of an evaluation; "": none
  /// yet. A run that is stopped and goes on later has told it all the same.
  std::string first_loss;
  std::string imported;  ///< UTC, when it came here from another runs folder; "": it was made here
  std::string profile;
  std::string backend;
  /// This, the device's name, libraries, variables, `processes` and `recompute` are those of all
  /// attempts since it began from its start, and of the run's whose steps it took over, with " and
  /// " between where attempts differ.
  std::string backend_version;
  std::string device_type;
  std::string device_name;
  std::string libraries;  ///< JSON: name to version, of those that a worker names; "": not known
  std::string variables;  ///< that change how libraries compute; "": not recorded
  int64_t threads = 0;
  int64_t numerics_version = 0;
  int64_t seed = 0;
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::string initial_weights_hash;  ///< of the weights that it began from, "": they were drawn
  std::string program;     ///< hash of the files of an external backend's command, "": forge's own
  std::string evaluation;  ///< e.g. "500 rows of 512 tokens"
  run::RunState status = run::RunState::not_started;
  int64_t damaged = 0;   ///< 1: failed, and was completed: run::RunStatus::damaged
  int64_t diverged = 0;  ///< 1: failed, and the same run would again: run::RunStatus::diverged
  int64_t attempts = 0;
  int64_t failed_attempts = 0;
  int64_t resumptions = 0;  ///< attempts that began after one had told a loss
  /// Windows of training steps of which an attempt told the loss and the speed, and lost them.
  int64_t lost_windows = 0;
  /// Evaluations and such windows that told another loss before their weights were lost.
  int64_t redone_losses = 0;
  int64_t step = 0;
  int64_t kept_step = 0;  ///< of its newest checkpoint, from which it goes on; 0: its start
  int64_t max_steps = 0;
  int64_t tokens_per_step = 0;
  int64_t tokens = 0;  ///< trained on
  int64_t parameters = 0;
  int64_t state_per_token = 0;  ///< model::generation_state
  int64_t fixed_state = 0;
  std::optional<int64_t> eval_step;  ///< step of eval_loss; none: not evaluated yet
  std::optional<int64_t> exit_status;
  std::optional<int64_t> exit_signal;
  std::string failure_reason;  ///< why it failed or stopped, ""
  std::string failure_hint;
  int64_t archived = 0;  ///< 1: not in lists and tables
  std::string note;
  std::vector<std::string> tags;  ///< sorted
  /// Rows computed at once, the fewest of all attempts; none: all of a step.
  std::optional<int64_t> micro_batch_size;
  std::string processes;  ///< that trained it: "1", "4", "1 and 2"; "": not begun
  /// Fraction of the machine's cores that other processes kept busy, the largest of all attempts;
  /// none: not known.
  std::optional<double> busy_elsewhere;
  /// Seconds of training that its worker was stopped (SIGSTOP), in the attempt where it was so
  /// longest; none: it was not.
  std::optional<double> stopped_seconds;
  std::string recompute;  ///< train.recompute as the worker was told
  std::string places;  ///< hosts and their devices that trained it: "atlas cuda:1"; "": not known
  int64_t continued = 0;      ///< 1: its first steps were trained by another run
  int64_t shared_device = 0;  ///< 1: another process held memory of the GPU when an attempt ended
  /// Files that it reads and that changed while it trained, in words with commas between; "": none.
  std::string changed_inputs;
  /// Last values of the metrics that the run has reported (Source::run), by name. NaN where one was
  /// not a number.
  std::map<std::string, double, std::less<>> metrics;
  Scores scores;  ///< at eval_step; rows of the table `scores`

  /// The last value of a metric of any source; none: not measured.
  std::optional<double> metric(const std::string& metric_name) const;
};

/// The columns of the table, once, in its order: `visit.column(name, value)` for each field and, as
/// an optional number, for each metric of a run.
template <class Visitor, class Run>
void columns(Visitor& visit, Run& run) {
  visit.column("id", run.id);
  visit.column("project", run.project);
  visit.column("workspace", run.workspace);
  visit.column("workspace_id", run.workspace_id);
  visit.column("config", run.config);
  visit.column("key", run.key);
  visit.column("name", run.name);
  visit.column("description", run.description);
  visit.column("command", run.command);
  visit.column("revision", run.revision);
  visit.column("planned_seeds", run.planned_seeds);
  visit.column("planned_claims", run.planned_claims);
  visit.column("planned_tables", run.planned_tables);
  visit.column("planned_config", run.planned_config);
  visit.column("drawn_order", run.drawn_order);
  visit.column("repeats", run.repeats);
  visit.column("train_rows", run.train_rows);
  visit.column("entropy_floor", run.entropy_floor);
  visit.column("repeated_sentences", run.repeated_sentences);
  visit.column("created", run.created);
  visit.column("updated", run.updated);
  visit.column("begun", run.begun);
  visit.column("first_loss", run.first_loss);
  visit.column("imported", run.imported);
  visit.column("profile", run.profile);
  visit.column("backend", run.backend);
  visit.column("backend_version", run.backend_version);
  visit.column("device_type", run.device_type);
  visit.column("device_name", run.device_name);
  visit.column("libraries", run.libraries);
  visit.column("variables", run.variables);
  visit.column("threads", run.threads);
  visit.column("numerics_version", run.numerics_version);
  visit.column("seed", run.seed);
  visit.column("data_fingerprint", run.data_fingerprint);
  visit.column("tokenizer_fingerprint", run.tokenizer_fingerprint);
  visit.column("initial_weights_hash", run.initial_weights_hash);
  visit.column("program", run.program);
  visit.column("evaluation", run.evaluation);
  visit.column("status", run.status);
  visit.column("damaged", run.damaged);
  visit.column("diverged", run.diverged);
  visit.column("attempts", run.attempts);
  visit.column("failed_attempts", run.failed_attempts);
  visit.column("resumptions", run.resumptions);
  visit.column("lost_windows", run.lost_windows);
  visit.column("redone_losses", run.redone_losses);
  visit.column("step", run.step);
  visit.column("kept_step", run.kept_step);
  visit.column("max_steps", run.max_steps);
  visit.column("tokens_per_step", run.tokens_per_step);
  visit.column("tokens", run.tokens);
  visit.column("parameters", run.parameters);
  visit.column("state_per_token", run.state_per_token);
  visit.column("fixed_state", run.fixed_state);
  visit.column("eval_step", run.eval_step);
  visit.column("exit_status", run.exit_status);
  visit.column("exit_signal", run.exit_signal);
  visit.column("failure_reason", run.failure_reason);
  visit.column("failure_hint", run.failure_hint);
  visit.column("archived", run.archived);
  visit.column("note", run.note);
  visit.column("tags", run.tags);
  visit.column("micro_batch_size", run.micro_batch_size);
  visit.column("processes", run.processes);
  visit.column("recompute", run.recompute);
  visit.column("places", run.places);
  visit.column("continued", run.continued);
  visit.column("busy_elsewhere", run.busy_elsewhere);
  visit.column("stopped_seconds", run.stopped_seconds);
  visit.column("shared_device", run.shared_device);
  visit.column("changed_inputs", run.changed_inputs);
  std::vector<std::string> not_numbers;
  for (const auto& [name, value] : run.metrics)
    if (std::isnan(value)) not_numbers.push_back(name);
  visit.column("not_numbers", not_numbers);
  for (const results::Metric& metric : results::metrics()) {
    if (metric.source != results::Source::run) continue;
    const auto found = run.metrics.find(metric.name);
    auto value = found == run.metrics.end() ? std::nullopt : std::optional<double>(found->second);
    visit.column(metric.name.c_str(), value);
    if constexpr (!std::is_const_v<Run>) {
      if (value) run.metrics[metric.name] = *value;
    }
  }
  if constexpr (!std::is_const_v<Run>)
    for (const std::string& name : not_numbers) run.metrics[name] = std::nan("");
}

/// The score that summarizes an evaluation in one line: the first that is not a part of another, as
/// "answer_accuracy.hop_8" is. Null for none.
const Scores::value_type* headline(const Scores& scores);

/// Names of all columns, in the table's order.
const std::vector<std::string>& column_names();

/// Inverse of run::name_of. Throws Error for another word.
run::RunState status_from_name(const std::string& name);
/// Whether nothing about the run changes any more unless its event log grows.
bool is_final(run::RunState status);

/// Steps done of all steps, in percent, rounded down; 0 where the number of steps is not known.
int progress_percent(const RunSummary& run);

/// Of RunSummary::variables where none is set.
constexpr const char* no_variables = "no variables";

/// "NAME=VALUE NAME=VALUE", or no_variables.
std::string variables_text(const std::map<std::string, std::string>& variables);

/// Whether the text is of attempts that differ in it.
bool is_mixed(const std::string& text);

/// "4 processes", "a single process", "1 and 2 processes": what trained the run.
std::string processes_text(const RunSummary& run);
/// The same as a number, or as a text where attempts differ.
nlohmann::json processes_value(const RunSummary& run);

/// Updates the summary by a line of events.jsonl. Later lines win. The status is not set here:
/// RunFolder::status() knows it from more than the log.
void apply(const run::StoredEvent& stored, RunSummary& run);

/// The last values that a run reported up to some step.
struct KeptMetrics {
  std::optional<worker::TrainMetrics> train;
  std::optional<double> tokens_per_second;  ///< of a window that was measured
  std::optional<worker::Evaluation> evaluation;
};

/// The run's weights are those of a step before its last one: of its metrics these are left, and
/// what was said at the end of an attempt, such as its memory, is not. How far it came stays.
void go_back(const KeptMetrics& kept, RunSummary& run);

/// The newest time of these lines becomes that of the run.
void apply_times(const std::vector<run::ReadLine>& lines, RunSummary& run);

}  // namespace forge::store
