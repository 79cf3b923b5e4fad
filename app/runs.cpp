#include "app/runs.h"

#include <sys/stat.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/manage/run_log.h"
#include "core/model/weights/checkpoint.h"
#include "core/project/names.h"
#include "core/results/metrics.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/run/event_log.h"
#include "core/run/halving.h"
#include "core/run/open_model.h"
#include "core/run/queue/hosts.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

/// Of those that count here though it may be another workspace's that was moved, or copied.
void tell_left_out(size_t runs) {
  if (runs > 0)
    std::cerr
        << "note: left out " << counted(runs, "run")
        << " of a workspace that is not where it was; to choose them, too, give their ids, or "
           "leave out -p\n";
}

/// Runs by patterns and conditions, archived ones too.
std::vector<run::RunFolder> matching_runs(const Context& context,
                                          const std::vector<std::string>& patterns,
                                          const std::vector<std::string>& conditions) {
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return {};
  store::RunQuery query;
  query.patterns = patterns;
  query.conditions = conditions;
  store::RunFilter filter = chosen_project(context);
  const std::vector<store::ConfiguredRun> matching =
      store::select(store->configured_runs(filter), query);
  filter.own = !filter.workspace.empty();
  std::set<std::string> own;
  if (filter.own)
    for (const store::RunSummary& run : store->runs(filter)) own.insert(run.id);
  std::vector<run::RunFolder> folders;
  for (const store::ConfiguredRun& run : matching)
    if (!filter.own || own.count(run.summary.id) > 0)
      folders.emplace_back(context.runs_dir() / run.summary.id);
  tell_left_out(matching.size() - folders.size());
  return folders;
}

std::vector<run::RunFolder> named_runs(const Context& context,
                                       const std::vector<std::string>& names) {
  std::vector<run::RunFolder> folders;
  std::set<fs::path> seen;
  const auto add = [&](run::RunFolder folder) {
    if (seen.insert(folder.path()).second) folders.push_back(std::move(folder));
  };
  for (const std::string& name : names) {
    if (!project::is_pattern(name)) {
      add(context.find_run(name));
      continue;
    }
    const std::vector<run::RunFolder> matching = matching_runs(context, {name}, {});
    if (matching.empty())
      throw Error("no runs match '" + name + "'", "'forge runs --archived' lists all runs");
    for (const run::RunFolder& folder : matching) add(folder);
  }
  return folders;
}

}  // namespace

store::SyncWatch watch_with(LateProgress& progress) {
  const auto wait = [](const std::string& reason) { std::cerr << reason << std::endl; };
  return {progress.reporter(), progress.reporter(), wait};
}

namespace {

/// 0 where there is no file.
uint64_t inode_of(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

store::ResultStore open_store(const Context& context) {
  const std::filesystem::path runs_dir = context.runs_dir();
  run::require_runs_dir(runs_dir);
  if (!store::can_write_store(runs_dir)) {
    const std::string store = shown_path(store::store_path(runs_dir));  // it may throw
    std::cerr << "note: " << (run::can_write(runs_dir) ? "the index of " : "")
              << "the runs folder '" << shown_path(runs_dir)
              << "' cannot be written; what it holds is listed in '" << store << "'\n";
  }
  const auto open = [&] {
    LateProgress progress("reading runs");
    store::ResultStore store(store::store_path(runs_dir));
    const store::SyncReport report = store.sync(runs_dir, watch_with(progress));
    print_warnings(report.warnings);
    return store;
  };
  // Who deletes the index while it is read makes forge build it anew.
  constexpr int most_tries = 3;
  for (int tries = 1;; ++tries) {
    const uint64_t before = inode_of(store::store_path(runs_dir));
    try {
      return open();
    } catch (const Error& problem) {
      const bool is_replaced = inode_of(store::store_path(runs_dir)) != before;
      if (is_replaced && tries < most_tries) continue;
      if (problem.exit_code() != ExitCode::storage || !store::use_other_store(runs_dir)) throw;
      const std::string store = shown_path(store::store_path(runs_dir));
      std::cerr << "warning: " << problem.message() << "; the runs are listed in '" << store
                << "'\n";
    }
  }
}

std::optional<store::ResultStore> find_store(const Context& context) {
  if (!fs::exists(context.runs_dir())) return std::nullopt;
  return open_store(context);
}

std::string stopped_text(const run::RunFolder& folder) {
  const std::string text = folder.stopped_processes().text();
  return text.empty() ? "" : "run " + folder.id() + " waits: " + text;
}

store::RunFilter filter_of(const Context& context, const project::Project& project) {
  store::RunFilter filter;
  filter.project = project.path;
  filter.workspace = project.workspace_root.string();
  filter.runs_dir = context.runs_dir();
  return filter;
}

store::RunFilter chosen_project(const Context& context) {
  store::RunFilter filter;
  if (context.names_workspace()) {
    filter.workspace = context.workspace().root.string();
    filter.runs_dir = context.runs_dir();
  } else if (context.names_project()) {
    filter = filter_of(context, context.project());
  }
  filter.archived = true;
  return filter;
}

std::vector<store::RunSummary> stored_runs(const Context& context, const store::RunFilter& filter) {
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return {};
  std::vector<store::RunSummary> runs = store->runs(filter);
  for (store::RunSummary& run : runs) run.step = store::current_step(context.runs_dir(), run);
  return runs;
}

std::vector<store::ConfiguredRun> select_stored(const Context& context,
                                                std::vector<store::RunSummary> runs,
                                                const store::RunQuery& query,
                                                bool with_configs) {
  if (runs.empty()) return store::select(std::vector<store::ConfiguredRun>(), query);
  const auto configured = [&](const std::vector<store::RunSummary>& found) {
    try {
      return store::ResultStore(store::store_path(context.runs_dir())).with_configs(found);
    } catch (const Error&) {
      return open_store(context).with_configs(found);  // the index was deleted since
    }
  };
  if (!store::names_columns_only(query)) return store::select(configured(runs), query);
  runs = store::select(std::move(runs), query);
  if (with_configs) return configured(runs);
  std::vector<store::ConfiguredRun> bare;
  for (store::RunSummary& run : runs) bare.push_back({std::move(run), {}, {}});
  return bare;
}

void add_run_selector(const Command& command, RunSelector& selector) {
  command.add_option("RUN", selector.names, "Run ids, prefixes of them, patterns, or run folders");
  command
      .add_option("--where <CONDITION>",
                  selector.conditions,
                  "Select runs by COLUMN=VALUE or KEY=VALUE (also !=, <, <=, >, >=); all "
                  "conditions must hold")
      .repeated();
}

std::vector<run::RunFolder> selected_runs(const Context& context, const RunSelector& selector) {
  if (selector.empty()) {
    throw Error("name runs or use --where", "'forge runs' lists them");
  }
  const std::vector<run::RunFolder> named = named_runs(context, selector.names);
  if (selector.conditions.empty()) return named;
  const std::vector<run::RunFolder> matching = matching_runs(context, {}, selector.conditions);
  if (selector.names.empty()) return matching;
  const std::vector<std::string> ids = texts_of(matching, &run::RunFolder::id);
  const std::set<std::string> meets(ids.begin(), ids.end());
  std::vector<run::RunFolder> both;
  for (const run::RunFolder& folder : named) {
    if (meets.count(folder.id()) > 0) both.push_back(folder);
  }
  return both;
}

void print_skipped_checkpoints(const run::RunModel& model) {
  print_warnings(texts_of(model.skipped_checkpoints, [&](const std::string& problem) {
    return model.name + ": " + problem + "; step " + std::to_string(model.step) + " is used";
  }));
}

std::string loss_text(const std::optional<double>& loss) {
  return loss ? results::fixed_text(*loss, 4) : "-";
}

namespace {

std::string score_text(const worker::Score& score) {
  return loss_text(score.value) + "  (" + with_thousands(score.count) +
         (score.count == 1 ? " case)" : " cases)");
}

std::string speed_text(const std::optional<double>& speed) {
  return speed ? with_thousands(std::llround(*speed)) : "-";
}

std::string memory_text(const std::optional<double>& bytes) {
  return bytes ? human_bytes(*bytes) : "-";
}

std::string status_text(const store::RunSummary& run) {
  if (run.status == run::RunState::running)
    return "running " + std::to_string(store::progress_percent(run)) + "%";
  // What stopped half-way at a rung is a record of its own, and no result.
  if (run.status == run::RunState::stopped && run::is_halved(run.failure_reason))
    return "stopped " + std::to_string(store::progress_percent(run)) + "%, halved";
  return run::name_of(run.status);
}

Style status_style(run::RunState status) {
  switch (status) {
    case run::RunState::completed: return Style::green;
    case run::RunState::failed: return Style::red;
    case run::RunState::stopped: return Style::yellow;
    default: return Style::plain;
  }
}

/// How a run's numbers are computed, e.g. "bfloat16, weights master_copies, not deterministic".
std::string precision_text(const nlohmann::json& config) {
  if (!config.is_object() || !config.contains("train")) return "-";
  const nlohmann::json& train = config.at("train");
  std::string text = tables::printable(train.value("precision", "-"));
  const std::string weights = train.value("bfloat16_weights", "none");
  if (weights != "none") text += ", weights " + tables::printable(weights);
  const auto deterministic = train.find("deterministic");
  if (deterministic == train.end() || !deterministic->is_boolean()) return text;
  return text + (deterministic->get<bool>() ? ", deterministic" : ", not deterministic");
}

/// A value of a column that no other function knows how to print.
std::string column_text(const nlohmann::json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return tables::printable(value.get<std::string>());
  if (value.is_array()) {
    return value.empty() ? "-" : join(texts_of(value, column_text), ", ");
  }
  return json_text(value);
}

}  // namespace

std::string result_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::string& folder) {
  std::string head = styled(tables::printable(run.config), Style::bold) + "  " +
                     styled(status_text(run), status_style(run.status));
  if (const auto seconds = run.metric(results::wall_seconds_name))
    head += "  " + human_duration(*seconds);
  if (run.status == run::RunState::stopped) {
    head += "  at step " + std::to_string(run.step);
    if (run::is_halved(run.failure_reason))
      head += " of " + std::to_string(run.max_steps) + " by halving";
  }
  std::vector<std::vector<std::string>> lines;
  const auto add = [&](const std::string& name, const std::string& text) {
    lines.push_back({"  " + name, text});
  };
  if (const auto loss = run.metric(results::eval_loss_name))
    add("eval loss", loss_text(loss) + "  (" + run.evaluation + ")");
  if (const auto loss = run.metric(results::validation_loss_name))
    add("validation loss", loss_text(loss));
  for (const auto& [name, score] : run.scores) add(tables::printable(name), score_text(score));
  if (const auto loss = run.metric(results::train_loss_name)) add("train loss", loss_text(loss));
  if (const auto speed = run.metric(results::tokens_per_second_name))
    add("speed", speed_text(speed) + " tok/s");
  if (const std::string load = tables::load_text(run); !load.empty()) add("", load);
  if (const auto rows = run.micro_batch_size)
    add("micro-batch", with_thousands(*rows) + (*rows == 1 ? " row" : " rows"));
  if (store::processes_value(run) != 1) add("trained by", store::processes_text(run));
  if (const auto peak = run.metric(results::peak_memory_name)) {
    add("peak memory",
        memory_text(peak) + " in tensors, " + memory_text(run.metric(results::peak_resident_name)) +
            " resident");
  }
  if (run.parameters > 0) add("parameters", with_thousands(run.parameters));
  add("profile",
      run.profile + "  (" + with_thousands(run.tokens) + " tokens, seed " +
          std::to_string(run.seed) + (run.device_name.empty() ? "" : ", " + run.device_name) + ")");
  add("precision", precision_text(config));
  if (const std::string changed = tables::changed_inputs_text(run); !changed.empty())
    add("warning", tables::printable(changed));
  if (!run.tags.empty()) add("tags", join(run.tags, ", "));
  if (!run.note.empty()) add("note", tables::printable(run.note));
  if (run.archived != 0) add("archived", "not in lists and tables");
  add("run", folder);
  return head + "\n" + aligned(lines);
}

std::string continued_text(const std::filesystem::path& checkpoint) {
  return "step " + with_thousands(weights::checkpoint_step(checkpoint).value_or(0)) + " of " +
         tables::printable(run::run_of_checkpoint(checkpoint).filename().string());
}

nlohmann::json continued_json(const std::filesystem::path& checkpoint) {
  if (checkpoint.empty()) return nullptr;
  return {{"run", run::run_of_checkpoint(checkpoint).filename().string()},
          {"step", or_null(weights::checkpoint_step(checkpoint))}};
}

std::string origin_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::filesystem::path& continued) {
  std::vector<std::vector<std::string>> lines = {
      {"  steps", with_thousands(run.step) + " of " + with_thousands(run.max_steps)}};
  if (run.status == run::RunState::failed) {
    lines.push_back({"  reason", column_text(run.failure_reason)});
    if (!run.failure_hint.empty()) lines.push_back({"  hint", column_text(run.failure_hint)});
  }
  if (!continued.empty()) lines.push_back({"  continues", continued_text(continued)});
  if (const nlohmann::json* const rate = find_value(config, "optimizer.lr"))
    lines.push_back({"  learning rate", column_text(*rate)});
  lines.push_back({"  created", column_text(run.created)});
  lines.push_back({"  command", column_text(run.command)});
  return aligned(lines);
}

std::string result_table(const std::vector<store::ConfiguredRun>& runs, size_t most_keys) {
  const std::vector<std::string> varied = store::varied_keys(runs, most_keys);
  std::vector<std::string> titles = {"Config", "Status", "Profile", "Seed"};
  titles.insert(titles.end(), varied.begin(), varied.end());
  for (const char* title : {"Eval Loss", "Train Loss", "Tok/s", "Memory", "Parameters", "Run"})
    titles.emplace_back(title);
  std::vector<std::vector<std::string>> lines = {titles};
  for (const store::ConfiguredRun& configured : runs) {
    const store::RunSummary& run = configured.summary;
    std::vector<std::string> line = {
        run.config, status_text(run), run.profile, std::to_string(run.seed)};
    for (const std::string& key : varied)
      line.push_back(column_text(store::value_of(configured, key)));
    line.insert(line.end(),
                {loss_text(run.metric(results::eval_loss_name)),
                 loss_text(run.metric(results::train_loss_name)),
                 speed_text(run.metric(results::tokens_per_second_name)),
                 memory_text(run.metric(results::peak_memory_name)),
                 run.parameters > 0 ? with_thousands(run.parameters) : "-",
                 run.id});
    lines.push_back(std::move(line));
  }
  std::vector<size_t> numbers;
  for (size_t column = 3; column + 1 < titles.size(); ++column) numbers.push_back(column);
  return bold_table(lines, numbers);
}

std::string result_table(const std::vector<store::RunSummary>& runs) {
  std::vector<store::ConfiguredRun> configured;
  for (const store::RunSummary& run : runs) configured.push_back({run, {}, {}});
  return result_table(configured);
}

std::string column_table(const std::vector<store::ConfiguredRun>& runs,
                         const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> lines = {columns};
  for (const store::ConfiguredRun& run : runs)
    lines.push_back(texts_of(
        columns, [&](const std::string& name) { return column_text(store::value_of(run, name)); }));
  return aligned(lines);
}

nlohmann::json to_json(const store::RunSummary& run) {
  nlohmann::json json = store::columns_of(run);
  json["scores"] = to_json(run.scores);
  return json;
}

nlohmann::json to_json(const std::map<std::string, worker::Score>& scores) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, score] : scores) {
    json[name] = {{"value", score.value}, {"count", score.count}};
  }
  return json;
}

nlohmann::json to_json(const worker::Evaluation& evaluation) {
  return {{"step", evaluation.step},
          {"loss", evaluation.loss},
          {"tokens", evaluation.tokens},
          {"seconds", evaluation.seconds},
          {"scores", to_json(evaluation.scores)}};
}

namespace {

/// What the run folders say where no disk has room for a store: how each run ended.
void print_ends(const Context& context, const std::vector<std::string>& ids, bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& id : ids) {
    const run::RunFolder folder(context.runs_dir() / id);
    const std::string status = run::name_of(folder.state());
    const std::vector<std::string> last = last_whole_lines(folder.events_file(), 2);
    std::string end;
    nlohmann::json loss;
    if (last.size() == 2) {
      const run::StoredEvent event = run::stored_event_from_line(last[0]);
      end = manage::event_text(event);
      const auto* finished = event.event ? std::get_if<worker::Finished>(&*event.event) : nullptr;
      if (finished && finished->eval_loss) loss = *finished->eval_loss;
    }
    list.push_back(
        {{"id", id}, {"status", status}, {"eval_loss", loss}, {"folder", folder.path().string()}});
    if (!json)
      std::cout << tables::printable(id) << "  " << status << "  " << tables::printable(end)
                << "\n";
  }
  if (json) print_json(list);
}

}  // namespace

void print_results(const Context& context, const std::vector<std::string>& ids, bool json) {
  if (!json) allow_lost_output("forge runs");  // the exit code tells how the runs ended
  std::optional<store::ResultStore> opened;
  try {
    opened.emplace(open_store(context));
  } catch (const Error& problem) {
    if (problem.exit_code() != ExitCode::storage) throw;
    print_warnings({problem.message() + "; the runs' folders have their results"});
    return print_ends(context, ids, json);
  }
  const store::ResultStore& store = *opened;
  std::vector<store::RunSummary> runs;
  for (const std::string& id : ids) {
    if (auto summary = store.run(id)) runs.push_back(std::move(*summary));
  }
  if (json) {
    print_json(json_list(runs, [](const store::RunSummary& run) { return app::to_json(run); }));
  } else if (runs.size() == 1) {
    std::cout << result_text(
        runs[0], store.config(runs[0].id), shown_path(context.runs_dir() / runs[0].id));
  } else if (!runs.empty()) {
    std::vector<store::ConfiguredRun> configured;
    for (const store::RunSummary& run : runs) configured.push_back({run, store.config(run.id), {}});
    constexpr size_t all_swept = 12;  // of one command: what it varied is its question
    std::cout << result_table(configured, all_swept);
    std::vector<std::string> warnings;
    for (const store::RunSummary& run : runs) {
      const std::string changed = tables::changed_inputs_text(run);
      if (!changed.empty()) warnings.push_back(run.id + ": " + changed);
    }
    print_warnings(warnings);
  }
}

std::string unserved_text(const std::string& run) {
  if (run.empty()) return "";
  return "No process serves the queue; 'forge runs resume " + shell_quoted(run) + "' does.\n";
}

void warn_of_unserved_queue(const std::filesystem::path& runs_dir) {
  const std::string run = queue::unserved_run(runs_dir);
  if (run.empty()) return;
  print_new_warnings(
      {"no process serves the queue; 'forge runs resume " + shell_quoted(run) + "' does"});
}

}  // namespace forge::app
