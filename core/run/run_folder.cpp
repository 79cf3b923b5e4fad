#include "core/run/run_folder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/protocol/json_fields.h"
#include "core/run/event_log.h"
#include "core/run/tail.h"
#include "core/weights/checkpoint.h"

namespace forge::run {

using Json = nlohmann::json;

const std::vector<std::string>& names_of(RunState) {
  static const std::vector<std::string> names = {
      "queued", "running", "completed", "stopped", "failed"};
  return names;
}

const std::string& name_of(RunState state) { return names_of(state)[static_cast<size_t>(state)]; }

template <class Visitor>
void fields(Visitor& visit, RunRecord& record) {
  visit.field("id", record.id);
  visit.field("project", record.project);
  visit.field("config", record.config);
  visit.field("key", record.key);
  visit.field("created", record.created);
  visit.field("command", record.command);
  visit.optional("revision", record.revision);
  visit.optional("imported_from", record.imported_from);
}

Json to_json(const RunRecord& record) {
  Json json = protocol::write_fields(record);
  json["identity"] = to_json(record.identity);
  return json;
}

RunRecord record_from_json(const Json& json) {
  RunRecord record = protocol::read_fields<RunRecord>(json, "record of a run");
  protocol::JsonReader reader(json, "record of a run");
  Json identity;
  reader.field("identity", identity);
  record.identity = identity_from_json(identity);
  return record;
}

std::string reason_of_silence(const RunFolder& folder) {
  const std::vector<std::string> words = last_lines(folder.supervisor_log(), 0, 10, 400);
  if (words.empty()) return "its supervisor was killed";
  return "its supervisor gave up: " + words[0];
}

namespace {

/// The "ended" line as a status.
template <class Visitor>
void ended_fields(Visitor& visit, RunStatus& status) {
  visit.field("status", status.state);
  visit.field("attempt", status.attempt);
  visit.optional("reason", status.reason);
  visit.optional("hint", status.hint);
  visit.optional("exit_status", status.exit_status);
  visit.optional("signal", status.signal);
  visit.optional("stderr", status.stderr_lines);
  visit.optional("storage", status.storage);
}

/// Status of a run that nobody supervises, from the last line of its events.
RunStatus status_after(const std::string& line, const RunFolder& folder) {
  RunStatus status;
  if (line.empty()) return status;
  status.state = RunState::failed;
  try {
    const StoredEvent last = stored_event_from_line(line);
    status.attempt = last.attempt;
    if (last.name == "ended") {
      protocol::JsonReader reader(last.json, "event 'ended'");
      ended_fields(reader, status);
      reader.optional("retry", status.interrupted);  // the end of a worker, and not yet of the run
    } else {
      status.interrupted = true;
      status.reason = reason_of_silence(folder);
      status.hint = "start it again: it goes on from its newest checkpoint";
    }
  } catch (const Error& problem) {
    status.reason = folder.events_file().string() + " is damaged: " + problem.message();
  }
  return status;
}

}  // namespace

RunRecord RunFolder::record() const {
  try {
    return record_from_json(protocol::object_from_line(read_file(record_file())));
  } catch (const Error& problem) {
    throw Error(record_file().string() + ": " + problem.message(),
                {},
                "remove the folder, or restore the file",
                ExitCode::failed);
  }
}

FoundCheckpoint RunFolder::find_checkpoint() const {
  const std::set<int64_t> recorded = recorded_checkpoints(events_file());
  const std::vector<fs::path> folders = weights::list_checkpoints(checkpoints());
  FoundCheckpoint found;
  const auto find = [&](bool of_recorded) {
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
      const int64_t step = std::stoll(folder->filename().string());
      if ((recorded.count(step) != 0) != of_recorded) continue;
      try {
        const std::string identity = weights::read_checkpoint_state(*folder).identity;
        if (!identity.empty() && identity != record().key) {
          throw Error("checkpoint '" + shown_path(*folder) + "' is of another run, with key " +
                      identity);
        }
        found.folder = folder->string();
        return true;
      } catch (const Error& problem) {
        // The one before it loses less than no checkpoint at all.
        found.damaged.push_back(problem.message());
      }
    }
    return false;
  };
  // One that was written when its supervisor could no longer record it may have losses before it
  // that were not recorded, either: a gap in the curve, and yet better than to begin anew.
  if (!find(true)) find(false);
  return found;
}

RunStatus RunFolder::status() const {
  std::string line = last_line(events_file());
  while (true) {
    if (FileLock::is_held(lock_file())) {
      RunStatus status;
      status.state = RunState::running;
      return status;
    }
    // Only if nothing was written while the lock was looked at do the two belong together.
    std::string again = last_line(events_file());
    if (again == line) break;
    line = std::move(again);
  }
  RunStatus status = status_after(line, *this);
  if (fs::exists(done_file())) status.state = RunState::completed;
  return status;
}

void RunFolder::request_stop(Stop stop) const {
  write_file_atomic(stop_file(), stop == Stop::now ? "now\n" : "save\n");
}

void RunFolder::request_save() const { write_file_atomic(save_file(), ""); }

std::vector<RunFolder> list_runs(const fs::path& runs_dir) {
  std::vector<RunFolder> runs;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(runs_dir, unreadable)) {
    // A name with a dot in front is a folder that is being written.
    if (starts_with(entry.path().filename().string(), ".")) continue;
    RunFolder folder(entry.path());
    if (fs::exists(folder.record_file())) runs.push_back(std::move(folder));
  }
  std::sort(runs.begin(), runs.end(), [](const RunFolder& a, const RunFolder& b) {
    return a.path() < b.path();
  });
  return runs;
}

std::optional<RunFolder> find_run(const fs::path& runs_dir, const std::string& id) {
  std::vector<RunFolder> found;
  for (RunFolder& folder : list_runs(runs_dir)) {
    if (folder.id() == id) return folder;
    if (!id.empty() && starts_with(folder.id(), id)) found.push_back(std::move(folder));
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  std::vector<std::string> ids;
  for (const RunFolder& folder : found) ids.push_back(folder.id());
  throw Error("'" + id + "' may mean several runs: " + join(ids, ", "),
              {},
              "write enough of the id to tell them apart");
}

}  // namespace forge::run
