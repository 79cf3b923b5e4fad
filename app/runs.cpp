#include "app/runs.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/manage/run_log.h"
#include "core/project/names.h"
#include "core/results/metrics.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/run/event_log.h"
#include "core/run/halving.h"
#include "core/run/open_model.h"
#include "core/run/queue/dispatch.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

/// Runs by patterns and conditions, archived ones too.
std::vector<run::RunFolder> matching_runs(const Context& context,
                                          const std::vector<std::string>& patterns,
                                          const std::vector<std::string>& conditions) {
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return {};
  store::RunFilter filter;
  filter.archived = true;
  store::RunQuery query;
  query.patterns = patterns;
  query.conditions = conditions;
  std::vector<run::RunFolder> folders;
  for (const store::ConfiguredRun& run : store::select(store->configured_runs(filter), query))
    folders.emplace_back(context.runs_dir() / run.summary.id);
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
      add(run::find_run_by_name_or_path(context.runs_dir(), name));
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

store::ResultStore open_store(const Context& context) {
  const std::filesystem::path runs_dir = context.runs_dir();
  run::require_runs_dir(runs_dir);
  if (!store::can_write_store(runs_dir)) {
    std::cerr << "note: " << (run::can_write(runs_dir) ? "the index of " : "")
              << "the runs folder '" << shown_path(runs_dir)
              << "' cannot be written; what it holds is listed in '"
              << shown_path(store::store_path(runs_dir)) << "'\n";
  }
  // The first look at a folder of ten thousand runs takes seconds.
  constexpr size_t many = 500;
  ProgressLine line("reading runs");
  store::SyncWatch watch;
  watch.waiting = [](const std::string& reason) {
    std::cerr << tables::printable(reason) << std::endl;
  };
  watch.progress = [&](size_t done, size_t all) {
    if (all < many || !is_terminal(STDERR_FILENO)) return;
    line.show(double(done) / double(all),
              with_thousands(int64_t(done)) + " of " + with_thousands(int64_t(all)));
  };
  const auto open = [&] {
    store::ResultStore store(store::store_path(runs_dir));
    const store::SyncReport report = store.sync(runs_dir, watch);
    line.clear();
    print_warnings(report.warnings);
    return store;
  };
  while (true) {
    try {
      return open();
    } catch (const Error& problem) {
      line.clear();
      if (problem.exit_code() != ExitCode::storage || !store::use_other_store(runs_dir)) throw;
      std::cerr << "warning: " << problem.message() << "; the runs are listed in '"
                << shown_path(store::store_path(runs_dir)) << "'\n";
    }
  }
}

std::optional<store::ResultStore> find_store(const Context& context) {
  if (!fs::exists(context.runs_dir())) return std::nullopt;
  return open_store(context);
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
  const store::ResultStore store(store::store_path(context.runs_dir()));
  if (!store::names_columns_only(query))
    return store::select(store.with_configs(std::move(runs)), query);
  runs = store::select(std::move(runs), query);
  if (with_configs) return store.with_configs(std::move(runs));
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
  for (const auto& [name, score] : run.scores) add(tables::printable(name), score_text(score));
  if (const auto loss = run.metric(results::train_loss_name)) add("train loss", loss_text(loss));
  if (const auto speed = run.metric(results::tokens_per_second_name))
    add("speed", speed_text(speed) + " tok/s");
  if (const std::string load = tables::load_text(run); !load.empty()) add("", load);
  if (const auto rows = run.micro_batch_size)
    add("micro-batch", with_thousands(*rows) + (*rows == 1 ? " row" : " rows"));
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
  if (!run.tags.empty()) add("tags", join(run.tags, ", "));
  if (!run.note.empty()) add("note", tables::printable(run.note));
  if (run.archived != 0) add("archived", "not in lists and tables");
  add("run", folder);
  return head + "\n" + aligned(lines);
}

std::string origin_text(const store::RunSummary& run, const nlohmann::json& config) {
  std::vector<std::vector<std::string>> lines = {
      {"  steps", with_thousands(run.step) + " of " + with_thousands(run.max_steps)}};
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

/// Whether a line of the worker's stderr says no more than the reason that it gave.
bool repeats_reason(const std::string& line, const std::string& reason) {
  const std::string prefix = "error: ";
  const std::string text(trim(starts_with(line, prefix) ? line.substr(prefix.size()) : line));
  constexpr size_t cut_off = 300;  // of a longer line only so much may be kept
  for (const std::string& said : split(reason, '\n')) {
    if (text == trim(said) || (text.size() > cut_off && starts_with(said, text))) return true;
  }
  return false;
}

void report_failure(const std::string& label,
                    const run::RunFolder& folder,
                    const run::RunStatus& status) {
  std::cerr << "error: " << label << " failed: " << status.reason << "\n";
  for (const std::string& line : status.stderr_lines) {
    if (!repeats_reason(line, status.reason)) std::cerr << "    " << line << "\n";
  }
  if (!status.hint.empty()) std::cerr << "hint: " << status.hint << "\n";
  const bool is_named = status.hint.find(folder.stderr_file().string()) != std::string::npos;
  if (!is_named && path_exists(folder.stderr_file()))
    std::cerr << "full log: " << shown_path(folder.stderr_file()) << "\n";
}

/// As the supervisor's own: a stop and a full disk have a code each.
int run_exit_code(const run::RunStatus& status) {
  if (status.state == run::RunState::completed) return run::supervised_completed;
  if (status.state == run::RunState::stopped) return run::supervised_stopped;
  return status.storage ? run::supervised_storage : run::supervised_failed;
}

void print_queued(const std::vector<PendingRun>& runs, bool json) {
  if (json) {
    print_json(json_list(runs, [](const PendingRun& run) -> nlohmann::json {
      return {{"run", run.planned.record.id},
              {"label", run.label},
              {"action", name_of(run.planned.action)}};
    }));
    return;
  }
  for (const PendingRun& run : runs) std::cout << tables::printable(run.planned.record.id) << "\n";
  std::cerr << "'forge status' shows their progress, 'forge runs stop' stops them\n";
}

/// What the user can do about a run that was left as it is.
std::string left_text(const run::RunFolder& folder) {
  const std::string stop = quoted_command("forge runs stop " + shell_quoted(folder.id())) + " ";
  return folder.is_running() ? "left " + folder.id() + " running; " + stop + "stops it"
                             : "left " + folder.id() + " in the queue; " + stop + "removes it";
}

/// The store, kept up to date while runs are followed. Where no disk has room for it, it is left
/// alone: the runs need none, and what they found is in their folders.
class FollowedStore {
 public:
  FollowedStore(const Context& context, const Interrupts& interrupts)
      : runs_dir_(context.runs_dir()), interrupts_(interrupts) {
    attempt([&] { store_.emplace(open_store(context)); });
  }
  void update() {
    if (store_) attempt([&] { print_warnings(store_->sync(runs_dir_).warnings); });
  }

 private:
  template <class Action>
  void attempt(const Action& action) {
    try {
      action();
    } catch (const Error& problem) {
      const bool interrupted = interrupts_.count() > 0;  // while it waited for another process
      if (problem.exit_code() != ExitCode::storage && !interrupted) throw;
      store_.reset();
      if (!interrupted) print_warnings({problem.message() + "; the runs go on without it"});
    }
  }

  std::filesystem::path runs_dir_;
  const Interrupts& interrupts_;
  std::optional<store::ResultStore> store_;
};

/// The last end of each run, in the order in which they began.
std::vector<EndedRun> last_ends(std::vector<EndedRun> ended) {
  std::vector<EndedRun> last;
  for (EndedRun& end : ended) {
    const auto same = [&](const EndedRun& other) {
      return other.run.planned.record.id == end.run.planned.record.id;
    };
    const auto before = std::find_if(last.begin(), last.end(), same);
    if (before == last.end()) {
      last.push_back(std::move(end));
    } else {
      *before = std::move(end);
    }
  }
  return last;
}

/// `halves`: whether a run that halving stopped has ended as it should.
ExecutedRuns report_ends(const std::vector<EndedRun>& all, bool halves) {
  std::vector<std::string> ended;
  int worst = run::supervised_completed;
  bool some_are_open = false;  // not started, or left
  std::vector<std::string> stopped;
  for (const auto& [run, outcome] : last_ends(all)) {
    const std::string& id = run.planned.record.id;
    if (outcome.ending != Ending::ended) {
      some_are_open = true;
      std::cerr << (outcome.ending == Ending::left
                        ? left_text(run.planned.folder)
                        : run.label + ": not started; the same command starts it")
                << "\n";
      continue;
    }
    ended.push_back(id);
    if (halves && outcome.status.halved) continue;
    if (outcome.status.state == run::RunState::failed)
      report_failure(run.label, run.planned.folder, outcome.status);
    if (outcome.status.state == run::RunState::stopped) stopped.push_back(id);
    worst = std::max(worst, run_exit_code(outcome.status));
  }
  if (!stopped.empty())
    std::cerr << quoted_command("forge runs resume " + shell_quoted(stopped))
              << (stopped.size() == 1 ? " continues it from its" : " continues them from their")
              << " newest checkpoint\n";
  if (worst == run::supervised_completed && some_are_open) worst = run::supervised_stopped;
  return {worst, false, std::move(ended)};
}

ExecutedRuns follow_and_report(const Context& context,
                               const std::vector<PendingRun>& runs,
                               std::set<std::string> own,
                               const Interrupts& interrupts,
                               const QueueOptions& queue,
                               RunSource* source) {
  FollowedStore store(context, interrupts);
  const std::vector<EndedRun> ended = follow_runs(
      context, runs, own, interrupts, [&] { store.update(); }, queue, source);
  return report_ends(ended, source != nullptr);
}

/// Takes runs out of the queue and removes the folders that this command made for them, but for
/// those that somebody has started. Returns whether nobody has started one.
bool withdraw(const Context& context,
              const std::vector<PendingRun>& runs,
              const std::set<std::string>& own) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::set<std::string> made;
  for (const PendingRun& run : runs) {
    if (run.made) made.insert(run.planned.record.id);
  }
  if (!own.empty()) queue::cancel_queued(runs_dir, {own.begin(), own.end()}, made);
  queue::remove_unqueued(runs_dir, made);
  return std::none_of(own.begin(), own.end(), [&](const std::string& run) {
    return run::RunFolder(runs_dir / run).is_running();
  });
}

}  // namespace

void withdraw_unqueued(const Context& context, const std::vector<PendingRun>& runs) {
  withdraw(context, runs, {});
}

ExecutedRuns tell_withdrawn() {
  std::cerr << "interrupted before these runs were started: they are out of the queue, and the "
               "folders made for them are removed\n";
  return {run::supervised_stopped, false, {}};
}

void add_queue_options(const Command& command, QueueOptions& queue) {
  command
      .add_option("--jobs",
                  queue.jobs,
                  "Run at most N of these runs at once: on a CPU each gets an equal share of the "
                  "cores; more runs than GPUs share the GPUs [default: one per GPU, or one on the "
                  "CPU]")
      .at_least(1);
  command.add_option("--priority", queue.priority, "Higher priority starts first").show_default();
  command.add_flag("--detach",
                   queue.detach,
                   "Queue and return; 'forge status' shows the progress. Ctrl-\\ does so later");
}

ExecutedRuns execute_runs(const Context& context,
                          const std::vector<PendingRun>& runs,
                          const QueueOptions& queue,
                          Interrupts& interrupts,
                          bool json,
                          RunSource* source) {
  interrupts.let_second_end_program(true);
  const std::set<std::string> own = enqueue(context, runs, queue, interrupts);
  if (interrupts.count() > 0 && withdraw(context, runs, own)) return tell_withdrawn();
  interrupts.let_second_end_program(false);
  if (!queue.detach && !detach_requested())
    return follow_and_report(context, runs, own, interrupts, queue, source);
  queue::dispatch(context.runs_dir(), context.program(), queue::IfLocked::wait);
  print_queued(runs, json);
  return {queue.detach ? run::supervised_completed : run::supervised_stopped, true, {}};
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
  }
}

}  // namespace forge::app
