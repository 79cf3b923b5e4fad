#include "app/run_plan.h"
#include "app/output.h"

#include <iostream>
#include <map>
#include <optional>

#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/benchmark/probe.h"
#include "core/run/local_launcher.h"
#include "core/store/forecast.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

/// What tells how long a run will take.
enum class Known { nothing, past_run, probe };

const char* name_of(Known known) {
  static const char* const names[] = {"nothing", "past run", "probe"};
  return names[static_cast<int>(known)];
}

/// A launch with what is left to do for it.
struct PlannedLaunch {
  const Launch* launch = nullptr;
  PreparedLaunch prepared;
  store::Forecast forecast;
  Known known = Known::nothing;

  bool to_do() const { return prepared.planned.action != run::Action::cached; }
};

std::vector<store::RunSummary> past_runs(const Context& context) {
  const std::filesystem::path runs_dir = context.runs_dir();
  if (!std::filesystem::exists(runs_dir)) return {};
  store::ResultStore store(store::store_path(runs_dir));
  store.sync(runs_dir);
  return store.runs();
}

std::vector<PlannedLaunch> planned(const Context& context,
                                   const std::vector<Launch>& launches,
                                   const LaunchOptions& options) {
  const std::vector<store::RunSummary> past = past_runs(context);
  std::vector<PlannedLaunch> plan;
  for (const Launch& launch : launches) {
    PlannedLaunch entry{&launch, prepare_launch(context, launch, options), {}, Known::nothing};
    entry.forecast = store::forecast(past, entry.prepared.planned, entry.prepared.inputs);
    if (entry.forecast.seconds) entry.known = Known::past_run;
    plan.push_back(std::move(entry));
  }
  return plan;
}

/// What decides how long a step takes, as far as the config says.
std::string cost_key(const Launch& launch) {
  nlohmann::json experiment = launch.resolved.json;
  for (const char* key : {"name", "description", "seed", "data"}) experiment.erase(key);
  experiment.at("train").erase("max_steps");
  experiment.at("optimizer").erase("lr");
  return json_text(experiment);
}

/// Measures, one after the other, what no past run tells of. One that cannot be measured is said
/// and left open.
void probe_the_unknown(const Context& context,
                       const LaunchOptions& options,
                       std::vector<PlannedLaunch>& plan) {
  std::map<std::string, std::optional<benchmark::Probe>> probes;
  run::LocalLauncher launcher;
  for (PlannedLaunch& entry : plan) {
    if (!entry.to_do() || entry.known != Known::nothing) continue;
    const auto [found, is_new] = probes.try_emplace(cost_key(*entry.launch));
    if (is_new) {
      try {
        ProgressLine line("probing " + entry.launch->label);
        found->second = benchmark::probe(
            launcher,
            benchmark_subject(context, *entry.launch, options),
            [&](double fraction, const std::string& text) { line.show(fraction, text); });
      } catch (const Error& error) {
        std::cerr << "warning: " << entry.launch->label << " cannot be probed: " << error.message()
                  << "\n";
      }
    }
    if (!found->second) continue;
    entry.known = Known::probe;
    entry.forecast.seconds = double(entry.forecast.steps) * found->second->seconds_per_step;
    entry.forecast.memory_bytes = found->second->memory_bytes;
  }
}

/// "10 runs: 8 new, 2 cached; about 3m 20s, judged by the newest runs like them".
std::string plan_summary(const std::vector<PlannedLaunch>& plan) {
  std::map<run::Action, int> counts;
  std::map<Known, int> to_do;
  double seconds = 0;
  for (const PlannedLaunch& entry : plan) {
    ++counts[entry.prepared.planned.action];
    if (entry.to_do()) ++to_do[entry.known];
    seconds += entry.forecast.seconds.value_or(0);
  }
  std::vector<std::string> parts;
  for (const auto& [action, count] : counts)
    parts.push_back(std::to_string(count) + " " + run::name_of(action));
  std::string text =
      std::to_string(plan.size()) + (plan.size() == 1 ? " run: " : " runs: ") + join(parts, ", ");
  if (to_do.empty()) return text;
  const int unknown = to_do[Known::nothing];
  if (to_do[Known::past_run] + to_do[Known::probe] == 0)
    return text + "; no past run like them tells how long, --probe measures it";
  std::vector<std::string> sources;
  if (to_do[Known::past_run] > 0) sources.push_back("the newest runs like them");
  if (to_do[Known::probe] > 0) sources.push_back("a probe of their steps alone");
  text += "; about " + human_duration(seconds) + " one after the other, judged by " +
          join(sources, " and ");
  if (unknown > 0)
    text += ", without " + std::to_string(unknown) + " that no run is like (--probe measures them)";
  return text;
}

nlohmann::json to_json(const PlannedLaunch& entry) {
  const store::Forecast& forecast = entry.forecast;
  nlohmann::json json = {{"run", entry.prepared.planned.record.id},
                         {"config", entry.launch->resolved.config_name},
                         {"label", entry.launch->label},
                         {"action", run::name_of(entry.prepared.planned.action)},
                         {"steps", forecast.steps},
                         {"seconds", nullptr},
                         {"memory_bytes", nullptr},
                         {"judged_by", name_of(entry.known)}};
  if (forecast.seconds) json["seconds"] = *forecast.seconds;
  if (forecast.memory_bytes) json["memory_bytes"] = *forecast.memory_bytes;
  return json;
}

std::vector<std::string> line_of(const PlannedLaunch& entry) {
  const store::Forecast& forecast = entry.forecast;
  const std::string time = forecast.seconds ? human_duration(*forecast.seconds) : "?";
  return {entry.launch->label,
          run::name_of(entry.prepared.planned.action),
          with_thousands(forecast.steps),
          entry.to_do() ? time : "—",
          forecast.memory_bytes ? human_bytes(double(*forecast.memory_bytes)) : "?"};
}

void save(const Context& context,
          const std::vector<PlannedLaunch>& plan,
          const LaunchOptions& options,
          const std::string& file) {
  run::SavedPlan saved;
  saved.created = utc_timestamp();
  saved.command = context.command_line();
  saved.device = options.device;
  saved.threads = options.threads;
  saved.continue_run = options.continue_run;
  for (const PlannedLaunch& entry : plan) {
    const run::RunInputs& inputs = entry.prepared.inputs;
    const run::RunRecord& record = entry.prepared.planned.record;
    saved.runs.push_back({entry.launch->label,
                          inputs.project,
                          inputs.config,
                          record.id,
                          inputs.revision,
                          inputs.experiment,
                          inputs.origins,
                          record.identity});
  }
  run::write_plan(file, saved);
  std::cerr << "wrote " << file << "; 'forge run --plan " << file << "' executes it as it is\n";
}

}  // namespace

void print_plan(const Context& context,
                const std::vector<Launch>& launches,
                const LaunchOptions& launch_options,
                const PlanOptions& options) {
  std::vector<PlannedLaunch> plan = planned(context, launches, launch_options);
  if (options.probe) probe_the_unknown(context, launch_options, plan);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const PlannedLaunch& entry : plan) list.push_back(to_json(entry));
    print_json(list);
  } else {
    std::vector<std::vector<std::string>> lines = {{"Run", "What", "Steps", "Time", "Memory"}};
    for (const PlannedLaunch& entry : plan) lines.push_back(line_of(entry));
    std::cout << aligned(lines, {2, 3, 4}) << "\n" << plan_summary(plan) << "\n";
  }
  if (!options.save.empty()) save(context, plan, launch_options, options.save);
}

}  // namespace forge::app
