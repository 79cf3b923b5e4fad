#include "core/results/store/run_summary.h"

#include <algorithm>
#include <limits>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace forge::store {

run::RunState status_from_name(const std::string& name) {
  const std::vector<std::string>& names = run::names_of(run::RunState{});
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error("'" + name + "' is not one of " + join(names, ", "));
  return static_cast<run::RunState>(found - names.begin());
}

bool is_final(run::RunState status) {
  return status != run::RunState::not_started && status != run::RunState::queued &&
         status != run::RunState::running;
}

std::string processes_text(const RunSummary& run) {
  const bool is_single = run.processes.empty() || run.processes == "1";
  return is_single ? "a single process" : run.processes + " processes";
}

nlohmann::json processes_value(const RunSummary& run) {
  if (is_mixed(run.processes)) return run.processes;
  return run.processes.empty() ? 1 : std::stoll(run.processes);
}

std::string variables_text(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : variables) settings.push_back(name + "=" + value);
  return settings.empty() ? no_variables : join(settings, " ");
}

namespace {

constexpr const char* between_attempts = " and ";

/// Adds what another attempt has to what earlier ones had.
void add_distinct(const std::string& value, std::string& all) {
  const std::string and_then = between_attempts;
  if (value.empty() || (and_then + all + and_then).find(and_then + value + and_then) < all.npos)
    return;
  all += (all.empty() ? "" : and_then) + value;
}

/// The versions that decide numbers. A library that is known by its path alone is not compared, and
/// neither is what programs are built or read by.
void add_libraries(const nlohmann::json& libraries, std::string& all) {
  if (!libraries.is_object()) return;
  nlohmann::json known = all.empty() ? nlohmann::json::object() : nlohmann::json::parse(all);
  for (const auto& [name, version] : libraries.items()) {
    if (!version.is_string() || name == "cxx" || name == "python") continue;
    std::string versions = known.value(name, std::string());
    add_distinct(version.get<std::string>(), versions);
    known[name] = versions;
  }
  all = known.empty() ? "" : json_text(known);
}

}  // namespace

bool is_mixed(const std::string& text) { return text.find(between_attempts) != text.npos; }

int progress_percent(const RunSummary& run) {
  if (run.max_steps <= 0) return 0;
  const double part = static_cast<double>(run.step) / static_cast<double>(run.max_steps);
  return static_cast<int>(100 * std::clamp(part, 0.0, 1.0));
}

std::optional<double> RunSummary::metric(const std::string& metric_name) const {
  if (metric_name == results::parameters_name) return static_cast<double>(parameters);
  if (metric_name == results::state_per_token_name) return static_cast<double>(state_per_token);
  if (metric_name == results::fixed_state_name) return static_cast<double>(fixed_state);
  if (metric_name == results::loss_above_floor_name) {
    const std::optional<double> loss = metric(results::eval_loss_name);
    return loss && entropy_floor ? std::optional<double>(*loss - *entropy_floor) : std::nullopt;
  }
  if (const auto found = metrics.find(metric_name); found != metrics.end()) return found->second;
  const auto score = scores.find(metric_name);
  return score == scores.end() ? std::nullopt : std::optional<double>(score->second.value);
}

const Scores::value_type* headline(const Scores& scores) {
  const auto is_whole = [](const auto& score) {
    return score.first.find('.') == std::string::npos;
  };
  const auto found = std::find_if(scores.begin(), scores.end(), is_whole);
  return found == scores.end() ? nullptr : &*found;
}

namespace {

/// Collects the names of columns.
struct NameCollector {
  std::vector<std::string> names = {};
  template <class T>
  void column(const char* name, const T&) {
    names.emplace_back(name);
  }
};

}  // namespace

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names = [] {
    NameCollector collector;
    const RunSummary any;
    columns(collector, any);
    return std::move(collector.names);
  }();
  return names;
}

namespace {

/// Product of two counts; a worker may claim any number, so it stops at the largest.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

/// Adds what an event of an attempt says about the conditions under which its steps were trained.
class ConditionsUpdate {
 public:
  explicit ConditionsUpdate(RunSummary& run) : run_(run) {}

  void operator()(const worker::Hello& hello) {
    add_distinct(hello.backend_version, run_.backend_version);
  }
  void operator()(const worker::Environment& environment) {
    add_distinct(environment.device_name, run_.device_name);
    add_libraries(environment.libraries, run_.libraries);
  }
  void operator()(const worker::Started& started) {
    add_distinct(std::to_string(started.processes.value_or(1)), run_.processes);
    if (started.micro_batch_size) reduce_micro_batch(*started.micro_batch_size);
  }
  void operator()(const worker::MicroBatch& reduced) {
    if (reduced.phase == "train") reduce_micro_batch(reduced.rows);
  }
  void operator()(const worker::Finished& finished) {
    if (finished.shared_device) run_.shared_device = 1;
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  void reduce_micro_batch(int64_t rows) {
    run_.micro_batch_size = std::min(run_.micro_batch_size.value_or(rows), rows);
  }

  RunSummary& run_;
};

/// Updates the summary by the events that say something about the run as a whole.
class SummaryUpdate {
 public:
  SummaryUpdate(RunSummary& run, const worker::Event& event) : run_(run), event_(event) {}

  void operator()(const worker::Hello& hello) { run_.numerics_version = hello.numerics_version; }
  void operator()(const worker::Environment& environment) {
    run_.device_type = environment.device_type;
  }
  void operator()(const worker::Started& started) {
    run_.parameters = started.parameters;
    run_.max_steps = started.max_steps;
    run_.tokens_per_step = started.tokens_per_step;
    run_.step = run_.kept_step = started.first_step;
    run_.tokens = product(started.first_step, started.tokens_per_step);
  }
  void operator()(const worker::TrainMetrics& metrics) {
    run_.step = metrics.step;
    run_.tokens = metrics.tokens;
    set(results::train_loss_name, metrics.loss);
    if (metrics.tokens_per_second) set(results::tokens_per_second_name, *metrics.tokens_per_second);
    set(results::wall_seconds_name, metrics.elapsed_seconds);
  }
  void operator()(const worker::Evaluation& evaluation) {
    run_.step = evaluation.step;
    run_.eval_step = evaluation.step;
    set_metrics();
  }
  void operator()(const worker::Finished& finished) {
    run_.step = finished.step;
    run_.tokens = product(finished.step, run_.tokens_per_step);
    if (finished.eval_loss) run_.eval_step = finished.step;
    run_.parameters = finished.parameters;
    set_metrics();
    drop_unmeasured();
  }
  void operator()(const worker::CheckpointSaved& saved) {
    run_.kept_step = std::max(run_.kept_step, saved.step);
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  void set(std::string_view name, double value) {
    const auto found = run_.metrics.find(name);
    if (found != run_.metrics.end()) {
      found->second = value;
    } else {
      run_.metrics.emplace(name, value);
    }
  }

  void set_metrics() {
    for (const auto& [name, value] : worker::metrics_of(event_)) {
      const results::Metric* const metric = results::find_metric(name);
      if (metric && metric->source == results::Source::run) set(name, value);
    }
  }

  /// Workers of version 0.1.0 said 0 for what a run that was stopped at once had not measured.
  void drop_unmeasured() {
    const auto speed = run_.metrics.find(results::tokens_per_second_name);
    if (speed == run_.metrics.end() || speed->second > 0) return;
    run_.metrics.erase(speed);
    const auto loss = run_.metrics.find(results::train_loss_name);
    if (loss != run_.metrics.end() && loss->second == 0) run_.metrics.erase(loss);
  }

  RunSummary& run_;
  const worker::Event& event_;
};

void add_changed_inputs(const std::vector<std::string>& files, RunSummary& run) {
  for (const std::string& file : files) {
    if (run.changed_inputs.find(file) == std::string::npos)
      run.changed_inputs += (run.changed_inputs.empty() ? "" : ", ") + file;
  }
}

/// One that begins from the start keeps nothing of earlier attempts.
void add_conditions(const run::AttemptStarted& started, RunSummary& run) {
  if (started.resume_from.empty()) {
    for (std::string* text : {&run.backend_version,
                              &run.device_name,
                              &run.libraries,
                              &run.processes,
                              &run.changed_inputs})
      text->clear();
    run.micro_batch_size.reset();
    run.busy_elsewhere.reset();
    run.stopped_seconds.reset();
    run.shared_device = 0;
    if (started.variables) run.variables.clear();
    if (!started.recompute.empty()) run.recompute.clear();
    if (!started.devices.empty()) run.places.clear();
    run.continued = 0;
  }
  if (started.variables) add_distinct(variables_text(*started.variables), run.variables);
  add_distinct(started.recompute, run.recompute);
  if (!started.devices.empty())
    add_distinct(started.host + " " + join(started.devices, ", "), run.places);
}

/// The conditions under which an attempt's steps were trained, which mark the run's results. Of all
/// attempts that it goes on with, also of those of a run that it continues.
void add_conditions(const run::StoredEvent& stored, RunSummary& run) {
  if (stored.started) add_conditions(*stored.started, run);
  // Times add up over all attempts, so the highest load counts.
  if (const auto load = run::load_of(stored))
    run.busy_elsewhere = std::max(run.busy_elsewhere.value_or(0), *load);
  if (const auto stopped = run::stopped_seconds_of(stored))
    run.stopped_seconds = std::max(run.stopped_seconds.value_or(0), *stopped);
  add_changed_inputs(run::changed_inputs_of(stored), run);
  if (stored.event) std::visit(ConditionsUpdate(run), *stored.event);
}

}  // namespace

namespace {

bool is_before_year_10000(double time) { return time >= 0 && time < 253402300800.0; }

/// Losses of attempt 0 are those of a run that this one continues.
bool tells_loss(const run::StoredEvent& stored) {
  return stored.attempt > 0 && stored.event &&
         (std::holds_alternative<worker::TrainMetrics>(*stored.event) ||
          std::holds_alternative<worker::Evaluation>(*stored.event));
}

}  // namespace

void apply(const run::StoredEvent& stored, RunSummary& run) {
  const bool is_own_start = stored.started && stored.attempt > 0;
  if (is_own_start && !run.first_loss.empty()) ++run.resumptions;
  if (is_own_start && run.first_loss.empty() && is_before_year_10000(stored.time))
    run.begun = utc_timestamp(stored.time);
  if (run.first_loss.empty() && tells_loss(stored) && is_before_year_10000(stored.time))
    run.first_loss = utc_timestamp(stored.time);
  add_conditions(stored.taken_over ? *stored.taken_over : stored, run);
  if (stored.taken_over || (stored.event && stored.attempt == 0)) run.continued = 1;
  if (stored.started) {
    run.attempts = stored.attempt;
    run.exit_status.reset();
    run.exit_signal.reset();
  }
  if (stored.ended) {
    run.exit_status = stored.ended->exit_status;
    run.exit_signal = stored.ended->signal;
    if (stored.ended->status == run::RunState::failed) ++run.failed_attempts;
  }
  if (stored.event) std::visit(SummaryUpdate(run, *stored.event), *stored.event);
}

void go_back(const KeptMetrics& kept, RunSummary& run) {
  const int64_t step = run.step, tokens = run.tokens;
  run.metrics.clear();
  run.eval_step.reset();
  const auto update = [&](const worker::Event& event) {
    std::visit(SummaryUpdate(run, event), event);
  };
  if (kept.train) update(*kept.train);
  if (kept.tokens_per_second)
    run.metrics[results::tokens_per_second_name] = *kept.tokens_per_second;
  if (kept.evaluation) update(*kept.evaluation);
  run.step = step;
  run.tokens = tokens;
}

void apply_times(const std::vector<run::ReadLine>& lines, RunSummary& run) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const double time = line->event ? line->event->time : -1;
    if (!is_before_year_10000(time)) continue;
    run.updated = utc_timestamp(time);
    return;
  }
}

}  // namespace forge::store
