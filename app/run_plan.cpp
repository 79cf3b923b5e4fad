#include "app/halving_search.h"
#include "app/launch.h"
#include "app/runs.h"
#include "app/terminal.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/model/weights/checkpoint.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/run/request.h"
#include "core/run/saved_plan.h"

namespace forge::app {
namespace {

/// Where an estimate comes from.
enum class ForecastSource { none, history, benchmark };

const char* name_of(ForecastSource source) {
  static const char* const names[] = {"nothing", "past run", "probe"};  // of --json
  return names[static_cast<int>(source)];
}

/// A run with what is left to do for it.
struct PlanEntry {
  const CheckedRun* run = nullptr;
  ForeseenRun foreseen;
  store::Forecast forecast;
  ForecastSource source = ForecastSource::none;
  std::filesystem::path continued = {};  ///< checkpoint of another run that it goes on from, ""
  bool is_halved = false;                ///< it stopped at a rung from which others go on

  /// A run whose data is to be prepared first is new, unless it comes out as one that is there.
  run::Action action() const {
    return foreseen.planned ? foreseen.planned->action : run::Action::start;
  }
  bool is_damaged() const { return action() == run::Action::damaged; }
  bool is_pending() const { return action() != run::Action::cached && !is_damaged() && !is_halved; }
  std::string action_text() const { return is_halved ? "halved" : run::name_of(action()); }
};

/// The checkpoint of another run that a new run goes on from, "". One that has a folder does so as
/// it was asked to before, unless this command names another run.
std::filesystem::path continued_checkpoint(const PlanEntry& entry) {
  const auto& planned = entry.foreseen.planned;
  if (!planned || planned->action != run::Action::start) return "";
  const std::filesystem::path& checkpoint = entry.foreseen.inputs.continue_from.checkpoint;
  if (!checkpoint.empty() || !planned->folder.has_record()) return checkpoint;
  return run::continued_checkpoint(planned->folder);
}

/// Steps that are left; `past` are the runs that there are. One that does not run any more goes on
/// from its checkpoint, or from its start.
int64_t steps_left(const PlanEntry& entry, const store::PastRuns& past) {
  if (!entry.is_pending()) return 0;
  const int64_t steps = entry.run->resolved.experiment.train.max_steps;
  if (!entry.foreseen.planned) return steps;
  int64_t done = weights::checkpoint_step(entry.continued).value_or(0);
  if (const store::RunSummary* own = past.find(entry.foreseen.planned->record.id))
    done = std::max(done, entry.action() == run::Action::running ? own->step : own->kept_step);
  return std::max<int64_t>(steps - done, 0);
}

/// Marks the runs that a search has left behind. Returns what it will take.
HalvingOutlook take_outlook(const std::vector<CheckedRun>& runs,
                            const run::HalvingRule& rule,
                            std::vector<PlanEntry>& plan) {
  std::vector<std::optional<run::RunFolder>> folders;
  for (const PlanEntry& entry : plan) {
    const auto& planned = entry.foreseen.planned;
    folders.push_back(planned ? std::optional(planned->folder) : std::nullopt);
  }
  HalvingOutlook outlook = foresee_halving(runs, folders, rule);
  for (size_t i = 0; i < plan.size(); ++i)
    plan[i].is_halved = outlook.is_out[i] && plan[i].is_pending();
  return outlook;
}

/// What is left to do for the runs, of a search by halving where `halving` is one.
struct Plan {
  std::vector<PlanEntry> entries;
  std::optional<HalvingOutlook> halving;
};

Plan make_plan(const Context& context,
               const std::vector<CheckedRun>& runs,
               LaunchOptions options,
               const std::optional<run::HalvingRule>& halving,
               bool prepares_data) {
  Plan plan;
  LateProgress progress("planning runs");
  for (const CheckedRun& run : runs) {
    progress(plan.entries.size(), runs.size());
    PlanEntry entry{&run, {}, {}, ForecastSource::none};
    if (prepares_data) {
      PreparedRun prepared = prepare_run(context, run, options);
      entry.foreseen = {std::move(prepared.inputs), std::move(prepared.planned)};
    } else {
      entry.foreseen = foresee_run(context, run, options);
    }
    if (entry.foreseen.planned) options.taken.push_back(entry.foreseen.planned->record.id);
    entry.continued = continued_checkpoint(entry);
    plan.entries.push_back(std::move(entry));
  }
  if (halving) plan.halving = take_outlook(runs, *halving, plan.entries);
  const std::optional<store::ResultStore> store = find_store(context);
  const std::vector<store::RunSummary> stored =
      store ? store->runs() : std::vector<store::RunSummary>();
  const store::PastRuns past(stored, [&](const std::string& id) { return store->config(id); });
  for (PlanEntry& entry : plan.entries) {
    const worker::Environment& environment = entry.run->backend.environment;
    entry.forecast = store::forecast(past,
                                     {entry.run->resolved.json,
                                      steps_left(entry, past),
                                      environment.device_type,
                                      environment.device_name,
                                      environment.device_type == "cpu" ? environment.threads : 0});
    if (entry.forecast.seconds) entry.source = ForecastSource::history;
  }
  return plan;
}

/// The part of a config that decides how long a step takes.
std::string cost_key(const CheckedRun& run) {
  nlohmann::json experiment = run.resolved.json;
  for (const char* key : {"name", "description", "seed", "data"}) experiment.erase(key);
  experiment.at("train").erase("max_steps");
  experiment.at("optimizer").erase("lr");
  return json_text(experiment);
}

/// Benchmarks the runs without history, one after the other. Warns of those that fail.
void benchmark_unknown_runs(const Context& context,
                            const LaunchOptions& options,
                            std::vector<PlanEntry>& plan) {
  std::map<std::string, std::optional<benchmark::Probe>> probes;
  for (PlanEntry& entry : plan) {
    if (!entry.is_pending() || entry.source != ForecastSource::none) continue;
    const auto [found, is_new] = probes.try_emplace(cost_key(*entry.run));
    if (is_new) {
      try {
        found->second =
            benchmark::probe(context.launcher(),
                             bench_target(context, *entry.run, options),
                             ProgressLine("benchmarking " + entry.run->label).reporter());
      } catch (const Error& error) {
        std::cerr << "warning: " << tables::printable(entry.run->label)
                  << " cannot be benchmarked: " << error.message() << "\n";
      }
    }
    if (!found->second) continue;
    entry.source = ForecastSource::benchmark;
    entry.forecast.seconds = double(entry.forecast.steps) * found->second->seconds_per_step;
    entry.forecast.memory_bytes = found->second->memory_bytes;
  }
}

/// "; about 3m 20s in sequence, based on past runs on this device".
std::string time_summary(std::map<ForecastSource, int> pending, double seconds) {
  std::vector<std::string> sources;
  if (pending[ForecastSource::history] > 0) sources.emplace_back("past runs on this device");
  if (pending[ForecastSource::benchmark] > 0) sources.emplace_back("a benchmark of single steps");
  if (sources.empty()) return "; no estimate (--probe measures one)";
  const int unknown = pending[ForecastSource::none];
  return "; about " + human_duration(seconds) + " in sequence, based on " + join(sources, " and ") +
         (unknown == 0 ? ""
                       : "; no estimate for " + std::to_string(unknown) + " (--probe measures it)");
}

/// "10 runs: 8 new, 2 cached; about 3m 20s in sequence, based on past runs on this device".
std::string plan_summary(const std::vector<PlanEntry>& plan) {
  std::map<std::pair<run::Action, std::string>, int> counts;
  std::map<ForecastSource, int> pending;
  double seconds = 0;
  for (const PlanEntry& entry : plan) {
    ++counts[{entry.action(), entry.action_text()}];
    if (entry.is_pending()) ++pending[entry.source];
    seconds += entry.forecast.seconds.value_or(0);
  }
  std::vector<std::string> parts;
  for (const auto& [action, count] : counts)
    parts.push_back(std::to_string(count) + " " + action.second);
  const std::string text =
      std::to_string(plan.size()) + (plan.size() == 1 ? " run: " : " runs: ") + join(parts, ", ");
  if (pending.empty()) return text;
  const auto unprepared = std::count_if(
      plan.begin(), plan.end(), [](const PlanEntry& entry) { return !entry.foreseen.planned; });
  return text + time_summary(pending, seconds) +
         (unprepared == 0 ? "" : "; data is prepared first for " + std::to_string(unprepared));
}

nlohmann::json entry_json(const PlanEntry& entry) {
  const store::Forecast& forecast = entry.forecast;
  const auto& planned = entry.foreseen.planned;
  return {{"run", planned ? nlohmann::json(planned->record.id) : nlohmann::json(nullptr)},
          {"config", entry.run->resolved.config_name},
          {"label", entry.run->label},
          {"action", entry.action_text()},
          {"continues", continued_json(entry.continued)},
          {"steps", forecast.steps},
          {"seconds", or_null(forecast.seconds)},
          {"memory_bytes", or_null(forecast.memory_bytes)},
          {"judged_by", name_of(entry.source)}};
}

std::vector<std::string> entry_line(const PlanEntry& entry) {
  const store::Forecast& forecast = entry.forecast;
  const std::string time = forecast.seconds ? human_duration(*forecast.seconds) : "?";
  return {entry.run->label,
          entry.action_text(),
          with_thousands(forecast.steps),
          entry.is_pending() ? time : "—",
          forecast.memory_bytes ? human_bytes(double(*forecast.memory_bytes)) : "?"};
}

void save_plan(const Context& context,
               const std::vector<PlanEntry>& plan,
               const LaunchOptions& options,
               const std::string& file) {
  run::SavedPlan saved;
  saved.created = utc_timestamp();
  saved.command = context.command_line();
  saved.device = options.device;
  saved.threads = options.threads;
  saved.continue_run = options.continue_run;
  for (const PlanEntry& entry : plan) {
    const run::RunInputs& inputs = entry.foreseen.inputs;
    const run::RunRecord& record = entry.foreseen.planned->record;
    saved.runs.push_back({entry.run->label,
                          inputs.project,
                          inputs.workspace,
                          inputs.config,
                          record.id,
                          inputs.revision,
                          inputs.experiment,
                          inputs.origins,
                          record.identity,
                          record.planned_seeds,
                          record.planned_claims,
                          record.planned_tables,
                          record.planned_config,
                          record.drawn_order});
  }
  run::write_plan(file, saved);
  std::cerr << "wrote " << file << "; 'forge run --plan " << shell_quoted(file) << "' runs it\n";
}

/// What halving leaves of the plan, and of its time.
std::string halving_text(const Plan& plan) {
  double seconds = 0;
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const store::Forecast& forecast = plan.entries[i].forecast;
    const int64_t done = plan.entries[i].run->resolved.experiment.train.max_steps - forecast.steps;
    const int64_t left = std::max<int64_t>(plan.halving->ends[i] - done, 0);
    if (forecast.steps > 0)
      seconds += forecast.seconds.value_or(0) * double(left) / double(forecast.steps);
  }
  if (seconds == 0) return plan.halving->text;
  return plan.halving->text + "about " + human_duration(seconds) + " in sequence with halving\n";
}

}  // namespace

void report_damaged(const std::string& label, const Error& problem) {
  std::cerr << "error: " << tables::printable(label) << " cannot be run: " << problem.message()
            << "\n";
  if (!problem.hint().empty()) std::cerr << "hint: " << problem.hint() << "\n";
}

bool print_plan(const Context& context,
                const std::vector<CheckedRun>& runs,
                const LaunchOptions& launch_options,
                const PlanOptions& options) {
  Plan made = make_plan(context, runs, launch_options, options.halving, !options.save.empty());
  std::vector<PlanEntry>& plan = made.entries;
  if (options.probe) benchmark_unknown_runs(context, launch_options, plan);
  if (options.json) {
    print_json(json_list(plan, entry_json));
  } else {
    std::vector<std::vector<std::string>> lines = {{"Run", "Action", "Steps", "Time", "Memory"}};
    for (const PlanEntry& entry : plan) lines.push_back(entry_line(entry));
    std::cout << aligned(lines, {2, 3, 4}) << "\n";
    for (const PlanEntry& entry : plan) {
      if (!entry.continued.empty())
        std::cout << entry.run->label << " goes on from " << continued_text(entry.continued)
                  << "\n";
    }
    std::cout << plan_summary(plan) << "\n";
    if (made.halving) std::cout << halving_text(made);
  }
  bool whole = true;
  for (const PlanEntry& entry : plan) {
    if (!entry.is_damaged()) continue;
    report_damaged(entry.run->label, *entry.foreseen.planned->problem);
    whole = false;
  }
  if (!options.save.empty()) save_plan(context, plan, launch_options, options.save);
  return whole;
}

}  // namespace forge::app
