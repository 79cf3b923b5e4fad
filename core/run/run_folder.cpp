#include "core/run/run_folder.h"

#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <functional>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/base/staging.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "core/worker/json_fields.h"
#include "core/worker/messages.h"
#include "core/worker/plausible.h"

namespace forge::run {

using Json = nlohmann::json;

const std::vector<std::string>& names_of(RunState) {
  static const std::vector<std::string> names = {
      "not started", "queued", "running", "completed", "stopped", "failed"};
  return names;
}

const std::string& name_of(RunState state) { return names_of(state)[static_cast<size_t>(state)]; }

template <class Visitor>
void fields(Visitor& visit, RunRecord& record) {
  visit.field("id", record.id);
  visit.field("project", record.project);
  visit.optional("workspace", record.workspace);
  visit.optional("workspace_id", record.workspace_id);
  visit.field("config", record.config);
  visit.field("key", record.key);
  visit.field("created", record.created);
  visit.field("command", record.command);
  visit.optional("revision", record.revision);
  visit.optional("imported_from", record.imported_from);
  visit.optional("imported", record.imported);
  visit.optional("planned_seeds", record.planned_seeds);
  visit.optional("planned_claims", record.planned_claims);
  visit.optional("planned_tables", record.planned_tables);
  visit.optional("planned_config", record.planned_config);
  visit.optional("drawn_order", record.drawn_order);
  visit.optional("repeats", record.repeats);
  visit.optional("planned_inputs", record.inputs_hash);
  visit.optional("train_rows", record.train_rows);
  visit.optional("evaluation_rows", record.evaluation_rows);
  visit.optional("entropy_floor", record.entropy_floor);
  visit.optional("repeated_sentences", record.repeated_sentences);
  visit.field("identity", record.identity);
}

Json to_json(const RunRecord& record) { return worker::write_fields(record); }

RunRecord record_from_json(const Json& json) {
  return worker::read_fields<RunRecord>(json, "record of a run");
}

std::string supervisor_error(const RunFolder& folder) {
  // A worker that writes on makes a folder of that name again.
  if (!path_exists(folder.record_file())) return "its folder was removed or renamed while it ran";
  const std::vector<std::string> words = last_lines(folder.supervisor_log(), 0, 10, 400);
  if (words.empty()) return "its supervisor was killed";
  return "its supervisor gave up: " + words[0];
}

namespace {

/// train.max_steps of a config file. Throws Error naming the file.
int64_t config_max_steps(const fs::path& file) {
  const Json config = read_json_file(file);
  const Json* const steps = config.is_object() ? find_value(config, "train.max_steps") : nullptr;
  if (steps && steps->is_number_integer()) return steps->get<int64_t>();
  throw Error("'" + shown_path(file) + "' is damaged: it does not say train.max_steps",
              ExitCode::failed);
}

/// So many lines at the end of a log hold the last evaluation: checkpoints stand between it and the
/// end, and a run that only had to finish has a few lines of another worker.
constexpr size_t lines_of_end = 12;

/// Throws Error where the end of a run, or the evaluation that it is about, cannot be.
void require_true_end(const worker::Finished& end, const std::vector<std::string>& last) {
  worker::require_plausible(end);
  // The last one counts: an attempt before may have told its step and been given up.
  for (auto found = last.rbegin(); found != last.rend(); ++found) {
    const std::string& line = *found;
    // Other events are judged where they are read; most of these lines need not be parsed.
    if (line.find("\"event\":\"evaluation\"") == std::string::npos) continue;
    StoredEvent stored;
    try {
      stored = stored_event_from_line(line);
    } catch (const Error&) {
      continue;  // whoever reads all events says so
    }
    const auto* evaluation =
        stored.event ? std::get_if<worker::Evaluation>(&*stored.event) : nullptr;
    if (!evaluation || evaluation->step != end.step) continue;
    worker::require_plausible(*evaluation);
    return worker::require_same_loss(*evaluation, end);
  }
}

/// Throws Error where the log of a run that is said to be completed does not end so. An imported
/// model, which nobody trained, ends with a "result".
void require_completion(const RunFolder& folder,
                        const std::vector<std::string>& last,
                        std::optional<int64_t> max_steps) {
  const auto damaged = [&](const std::string& what) {
    return Error("'" + shown_path(folder.events_file()) + "' is damaged: " + what,
                 ExitCode::failed);
  };
  const std::string missing = "the run was completed, and the end of the file is missing";
  if (last.size() < 2) throw damaged(missing);
  StoredEvent finished;
  StoredEvent ended;
  try {
    finished = stored_event_from_line(last[last.size() - 2]);
    ended = stored_event_from_line(last.back());
  } catch (const Error& problem) {
    throw damaged(problem.message());
  }
  if (!ended.ended || ended.ended->status != RunState::completed || ended.ended->retry)
    throw damaged(missing);
  if (finished.event && std::holds_alternative<worker::Result>(*finished.event)) return;
  const auto* end = finished.event ? std::get_if<worker::Finished>(&*finished.event) : nullptr;
  if (!end || !end->completed) throw damaged(missing);
  try {
    require_true_end(*end, last);
  } catch (const Error& problem) {
    throw damaged(problem.message());
  }
  if (!max_steps) max_steps = config_max_steps(folder.config_file());
  if (end->step == *max_steps) return;
  throw damaged("it ends at step " + std::to_string(end->step) + ", and config.json asks for " +
                std::to_string(*max_steps) + " steps");
}

/// What to do about a run whose record is damaged.
std::string damage_hint(const RunFolder& folder) {
  std::string config = "…";
  try {
    config = shell_quoted(folder.record().config);
  } catch (const Error&) {
    // run.json is damaged too.
  }
  return "restore the file from a copy, or train the run again beside it: " +
         quoted_command("forge run " + config + " --force");
}

/// Status of a run that nobody supervises, from the last line of its events.
RunStatus status_after(const std::string& line, const RunFolder& folder) {
  RunStatus status;
  const bool queued = queue::is_queued(folder.path().parent_path(), folder.id());
  if (queued) status.state = RunState::queued;
  if (line.empty()) return status;
  try {
    const StoredEvent last = stored_event_from_line(line);
    if (last.attempt == 0 && !last.ended) return status;  // copied: of the run that it continues
    status.attempt = last.attempt;
    status.state = RunState::failed;
    if (const auto& ended = last.ended) {
      status.state = ended->status;
      status.reason = ended->reason;
      status.hint = ended->hint;
      status.exit_status = ended->exit_status.value_or(0);
      status.signal = ended->signal.value_or(0);
      status.stderr_lines = ended->stderr_lines;
      status.rank = ended->rank;
      status.storage = ended->storage;
      status.diverged = status.state == RunState::failed && ended->diverged;
      status.halved = status.state == RunState::stopped && ended->stop_after;
      status.interrupted = ended->retry;  // the end of a worker, and not yet of the run
    } else {
      status.interrupted = true;
      status.reason = supervisor_error(folder);
      status.hint = "start it again: it resumes from its newest checkpoint";
    }
    // Whoever serves the queue starts it again, as one that never began.
    if (queued && status.interrupted) status.state = RunState::queued;
  } catch (const Error& problem) {
    status.state = RunState::failed;
    status.reason = folder.events_file().string() + " is damaged: " + problem.message();
  }
  return status;
}

}  // namespace

bool is_run_name(const std::string& name) {
  constexpr size_t most_bytes = 200;  // file systems allow 255, and names aside are longer
  return !name.empty() && name.size() <= most_bytes && name[0] != '.' && name[0] != '-' &&
         name.find_first_of("/*?") == std::string::npos && tables::printable(name) == name &&
         !starts_with(name, "forge.sqlite") && !is_aside_name(name);
}

namespace {

/// Whether a project can have a config of that name, which is a path in it.
bool is_config_name(const std::string& name) {
  // As a word of a command, which hints and tables print, it would be an option.
  if (name.empty() || name[0] == '-' || tables::printable(name) != name) return false;
  const std::vector<std::string> parts = split(name, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == "..";
  });
}

}  // namespace

std::string run_id(const std::string& config, const std::string& key) {
  std::string id = config + "-" + key;
  std::replace(id.begin(), id.end(), '/', '_');
  return id;
}

bool names_its_config(const RunRecord& record) {
  const std::string id = run_id(record.config, record.key);
  if (!starts_with(record.id, id)) return false;
  const std::string number = record.id.substr(id.size());
  return number.empty() || (number.size() > 1 && number[0] == '-' &&
                            std::all_of(number.begin() + 1, number.end(), [](char c) {
                              return c >= '0' && c <= '9';
                            }));
}

bool RunFolder::is_linked() const {
  std::error_code unreadable;
  return fs::is_symlink(path_, unreadable);
}

bool RunFolder::has_record() const {
  std::error_code problem;
  const bool there = fs::exists(record_file(), problem);
  if (!problem) return there;
  throw system_error("read the run folder '" + shown_path(path_) + "'",
                     problem.value(),
                     problem.value() == EACCES
                         ? "its owner can make it readable: chmod u+rwx, or g+rx for others"
                         : "remove what stands in the place of its run.json");
}

RunRecord RunFolder::record() const {
  try {
    RunRecord record = record_from_json(
        worker::object_from_line(read_file_within(record_file(), max_json_file_bytes)));
    if (record.key != run_key(record.identity))
      throw Error("its key " + record.key.substr(0, 40) +
                  " is not that of the identity in it: the file was changed");
    if (!is_config_name(record.config))
      throw Error("no config can have the name '" + tables::printable(record.config.substr(0, 40)) +
                  "'");
    return record;
  } catch (const Error& problem) {
    throw Error(record_file().string() + ": " + problem.message(),
                problem.cause() == 0 ? "restore the file, or remove the folder" : "",
                ExitCode::failed)
        .with_cause(problem.cause());
  }
}

Json RunFolder::config(const RunRecord& record) const {
  Json config = read_json_file(config_file());
  if (!config.is_object())
    throw Error("'" + config_file().string() + "' is not a JSON object", ExitCode::failed);
  try {
    require_config_of(record, config, config_file());
  } catch (const Json::exception& problem) {
    throw Error("'" + config_file().string() + "' is damaged: " + json_problem(problem),
                ExitCode::failed);
  }
  return config;
}

void require_identity(const RunRecord& found, const Identity& asked) {
  if (found.key != run_key(asked) || is_same_identity(found.identity, asked)) return;
  const IdentityDifference first = identity_differences(found.identity, asked).at(0);
  throw Error("run '" + found.id +
                  "' is another one than is asked for, and has the same key: its " + first.what +
                  " is " + first.left + " and would be " + first.right,
              "two runs in 281 billion pairs have one key, or somebody made it so; " +
                  quoted_command("forge runs rm " + shell_quoted(found.id)) +
                  " makes room and can be undone, or let FORGE_RUNS_DIR name another folder",
              ExitCode::failed);
}

void require_config_of(const RunRecord& record, const Json& config, const fs::path& file) {
  const Json identifying = identity_config(config);
  Json recorded = record.identity.experiment;
  drop_grammar(recorded);  // of a run that was made when its path counted
  if (identifying == recorded) return;
  const std::vector<IdentityDifference> found = config_differences(recorded, identifying);
  std::string text;
  if (!found.empty())
    text = ": " + found[0].what + " was " + found[0].left + " and is " + found[0].right;
  throw Error("'" + shown_path(file) + "' is not the config that run '" + record.id +
                  "' was begun with" + text,
              "restore the file; " +
                  quoted_command("forge run " + shell_quoted(record.config) + " --force") +
                  " makes a new run",
              ExitCode::failed);
}

config::Experiment RunFolder::experiment() const {
  try {
    return config::experiment_from_json(config());
  } catch (const Error& problem) {
    throw Error(
        "run '" + id() + "' cannot be used: " + problem.message(),
        quoted_command("forge run " + shell_quoted(record().config)) + " trains its config again",
        problem.exit_code())
        .with_cause(problem.cause());
  }
}

weights::CheckpointState RunFolder::read_checkpoint(const fs::path& checkpoint) const {
  weights::CheckpointState state = weights::read_checkpoint_state(checkpoint);
  if (!state.identity.empty() && state.identity != record().key)
    throw Error(
        "checkpoint '" + shown_path(checkpoint) + "' is of another run, with key " + state.identity,
        "move it back to that run, or remove it",
        ExitCode::failed);
  return state;
}

FoundCheckpoint RunFolder::find_checkpoint() const {
  const std::map<int64_t, int> recorded = recorded_checkpoints(events_file());
  const std::vector<fs::path> folders = weights::list_checkpoints(checkpoints());
  FoundCheckpoint found;
  const auto find = [&](bool among_recorded) {
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
      const int64_t step = *weights::checkpoint_step(*folder);
      if ((recorded.count(step) != 0) != among_recorded) continue;
      try {
        read_checkpoint(*folder);
        found.folder = folder->string();
        return true;
      } catch (const Error& problem) {
        // Of one that cannot be read at the moment nobody knows whether it is whole.
        if (is_unreadable(problem)) throw;
        // An older checkpoint is better than none.
        found.damaged.push_back(problem.message());
      }
    }
    return false;
  };
  // Only surplus ones are removed, and the newest is none.
  const int64_t newest = recorded.empty() ? 0 : recorded.rbegin()->first;
  const fs::path newest_folder = checkpoints() / weights::checkpoint_name(newest);
  if (!recorded.empty() && !is_folder(newest_folder))
    found.damaged.push_back("the newest checkpoint, of step " + std::to_string(newest) +
                            ", is gone: there is no folder '" + shown_path(newest_folder) + "'");
  found.recorded = find(true);
  // Of a worker that got ahead of a supervisor which was killed, the log lacks what training again
  // brings back. Where a supervisor knew of the checkpoint, or the log of others, it was cut.
  if (!found.recorded && find(false))
    found.recorded = !recorded.empty() || weights::is_acknowledged(found.folder);
  return found;
}

std::optional<FileLock> RunFolder::try_lock(double patience_seconds) const {
  const double until = steady_seconds() + patience_seconds;
  while (!is_running()) {
    if (auto lock = try_lock_signed(lock_file(), 0.05)) return lock;
    if (steady_seconds() > until)
      throw Error("the file 'lock' of run '" + id() +
                      "' is locked by another process, which does not run it",
                  quoted_command("fuser -v " + shell_quoted(lock_file().string())) +
                      " tells which, if it is on this machine",
                  ExitCode::failed);
  }
  return std::nullopt;
}

RunStatus RunFolder::status(std::optional<int64_t> max_steps) const {
  return status_of(max_steps, false);
}

namespace {

RunStatus ask_patiently(const std::function<RunStatus()>& ask) {
  RunStatus status;
  const auto ask_once = [&] {
    status = ask();
    if (status.unreadable != 0) throw Error(status.reason).with_cause(status.unreadable);
  };
  try {
    call_patiently(moment, {}, ask_once);
  } catch (const Error&) {
    // The status says so.
  }
  return status;
}

}  // namespace

RunStatus RunFolder::patient_status() const {
  return ask_patiently([this] { return status_of({}, false); });
}

RunStatus RunFolder::status_before_lock() const {
  return ask_patiently([this] { return status_of({}, true); });
}

RunStatus RunFolder::status_of(std::optional<int64_t> max_steps, bool is_own_lock) const {
  try {
    return status_from_events(max_steps, is_own_lock);
  } catch (const Error& problem) {
    RunStatus status;  // one strange file must not end a listing of all runs
    status.state = RunState::failed;
    status.reason = problem.message();
    status.hint = problem.hint();
    if (is_unreadable(problem)) status.unreadable = problem.cause();
    return status;
  }
}

RunStatus RunFolder::status_from_events(std::optional<int64_t> max_steps, bool is_own_lock) const {
  std::vector<std::string> lines = last_whole_lines(events_file(), lines_of_end);
  while (true) {
    if (is_own_lock) break;
    if (is_running()) {
      RunStatus status;
      status.state = RunState::running;
      return status;
    }
    // Only if nothing was written while the lock was looked at do the two belong together.
    std::vector<std::string> again = last_whole_lines(events_file(), lines_of_end);
    if (again == lines) break;
    lines = std::move(again);
  }
  RunStatus status = status_after(lines.empty() ? "" : lines.back(), *this);
  if (status.state != RunState::completed && !path_exists(done_file())) return status;
  try {
    require_completion(*this, lines, max_steps);
    status.state = RunState::completed;
  } catch (const Error& problem) {
    if (is_unreadable(problem)) throw;
    status.state = RunState::failed;
    status.damaged = true;
    status.interrupted = false;
    status.reason = problem.message();
    status.hint = damage_hint(*this);
  }
  return status;
}

void RunFolder::require_undamaged(const RunStatus& status) const {
  if (status.unreadable != 0)
    throw Error(
        "run '" + id() + "' cannot be read: " + status.reason, status.hint, ExitCode::failed)
        .with_cause(status.unreadable);
  if (!status.damaged) return;
  throw Error("the record of run '" + id() + "' is damaged: " + status.reason,
              status.hint,
              ExitCode::failed);
}

std::vector<fs::path> RunFolder::stderr_files() const {
  std::vector<fs::path> files = {stderr_file()};
  std::error_code missing;
  for (int rank = 1; fs::exists(fs::symlink_status(stderr_file(rank), missing)); ++rank)
    files.push_back(stderr_file(rank));
  return files;
}

int64_t StderrSizes::of(int rank) const {
  if (rank == 0) return first.value_or(0);
  const auto other = static_cast<size_t>(rank - 1);
  return others && other < others->size() ? (*others)[other] : 0;
}

StderrSizes RunFolder::stderr_sizes() const {
  StderrSizes sizes;
  std::vector<int64_t> others;
  for (const fs::path& file : stderr_files()) {
    std::error_code missing;
    const auto bytes = static_cast<int64_t>(fs::file_size(file, missing));
    if (file != stderr_file()) {
      others.push_back(missing ? 0 : bytes);
    } else if (!missing) {
      sizes.first = bytes;
    }
  }
  if (!others.empty()) sizes.others = std::move(others);
  return sizes;
}

void RunFolder::require_own_files() const {
  require_own_folder(path_);
  require_own_folder(checkpoints());
  // All other files are replaced as a whole, and so is a link that stands in their place.
  for (const fs::path& file : {lock_file(), events_file(), supervisor_log()})
    require_own_file(file);
  for (const fs::path& file : stderr_files()) require_own_file(file);
}

StoppedProcesses RunFolder::stopped_processes() const {
  StoppedProcesses stopped;
  const int supervisor = local_holder(lock_file());
  if (supervisor == 0) return stopped;
  for (const int pid : process_tree(supervisor)) {
    if (!is_stopped(process_state(pid))) continue;
    if (pid == supervisor) {
      stopped.supervisor = pid;
    } else {
      stopped.workers.push_back(pid);
    }
  }
  return stopped;
}

std::string StoppedProcesses::text() const {
  if (!any()) return "";
  std::vector<std::string> pids = texts_of(workers, [](int pid) { return std::to_string(pid); });
  std::string text;
  if (!pids.empty())
    text = pids.size() == 1 ? "the worker (process " + pids[0] + ")"
                            : "the worker's processes " + join(pids, ", ");
  if (supervisor != 0) {
    pids.insert(pids.begin(), std::to_string(supervisor));
    text = "the supervisor (process " + pids[0] + ")" + (text.empty() ? "" : " and " + text);
  }
  const bool one = pids.size() == 1;
  return text + (one ? " is" : " are") + " stopped: 'kill -CONT " + join(pids, " ") +
         "' continues " + (one ? "it" : "them");
}

bool is_stopped_with_all(const std::string& reason) { return ends_with(reason, with_all_text); }

void RunFolder::request_stop(StopRequest stop, bool with_all) const {
  require_own_folder(path_);
  const std::string word = stop == StopRequest::immediately ? "now" : "save";
  write_file_atomic(stop_file(), word + (with_all ? with_all_text : "") + "\n");
  if (const int supervisor = stopped_processes().supervisor; supervisor != 0)
    ::kill(supervisor, SIGCONT);
}

void RunFolder::request_save() const {
  require_own_folder(path_);
  write_file_atomic(save_file(), "");
}

}  // namespace forge::run
