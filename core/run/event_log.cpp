#include "core/run/event_log.h"

#include <cmath>
#include <fstream>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/worker/json_fields.h"

namespace forge::run {

using Json = nlohmann::json;

StoredEvent stored_event_from_line(const std::string& line) {
  StoredEvent stored;
  stored.json = worker::object_from_line(line);
  worker::JsonReader reader(stored.json, "stored event");
  reader.field("time", stored.time);
  reader.field("attempt", stored.attempt);
  reader.field("event", stored.name);
  try {
    stored.event = worker::event_from_json(stored.json);
  } catch (const Error&) {
    // The supervisor's own, or of another version: `json` is all that can be said about it.
  }
  return stored;
}

std::vector<StoredEvent> read_events(const fs::path& events_file) {
  std::vector<StoredEvent> events;
  if (!fs::exists(events_file)) return events;
  std::vector<std::string> lines = split(read_file(events_file), '\n');
  lines.pop_back();  // "", or a torn line
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      events.push_back(stored_event_from_line(lines[i]));
    } catch (const Error& problem) {
      throw Error(events_file.string() + ":" + std::to_string(i + 1) + ": " + problem.message(),
                  {},
                  "the file was changed by something other than forge",
                  ExitCode::failed);
    }
  }
  return events;
}

std::set<int64_t> recorded_checkpoints(const fs::path& events_file) {
  std::set<int64_t> steps;
  if (!fs::exists(events_file)) return steps;
  const MappedFile file(events_file);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  // As to_line writes it; within a string it would have a backslash before each quotation mark.
  constexpr std::string_view name = "\"event\":\"checkpoint\"";
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t begin = text.rfind('\n', at) + 1;
    const size_t end = text.find('\n', at);
    if (end == text.npos) break;  // a torn line
    try {
      const StoredEvent stored = stored_event_from_line(std::string(text.substr(begin, end - begin)));
      if (!stored.event) continue;
      const auto* saved = std::get_if<worker::CheckpointSaved>(&*stored.event);
      if (saved) steps.insert(saved->step);
    } catch (const Error&) {
      // Not a line of forge's; whoever reads all events says so.
    }
  }
  return steps;
}

Json stamped(Json event, int attempt) {
  event["time"] = std::round(unix_time() * 1000) / 1000;
  event["attempt"] = attempt;
  return event;
}

EventLog::EventLog(const fs::path& events_file) : file_(events_file) {
  const std::string line = last_line(events_file);
  if (!line.empty()) last_attempt_ = stored_event_from_line(line).attempt;
  sync_path(events_file.parent_path());  // a new file's name has to outlive a power cut, too
}

void EventLog::append(Json event, int attempt) {
  file_.append(worker::to_line(stamped(std::move(event), attempt)) + "\n");
  unsynced_ = true;
}

void EventLog::sync() {
  if (unsynced_) file_.sync();
  unsynced_ = false;
}

void EventLog::sync_if_due(double now) {
  if (now - synced_at_ < sync_every_seconds) return;
  sync();
  synced_at_ = now;
}

namespace {

/// The whole lines of the file from byte `offset` on, with their newlines.
std::string whole_lines_from(const fs::path& path, int64_t offset) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const int64_t size = file ? static_cast<int64_t>(file.tellg()) : 0;
  if (size <= offset) return "";
  std::string bytes(static_cast<size_t>(size - offset), '\0');
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  bytes.resize(bytes.rfind('\n') + 1);  // npos + 1 is 0
  return bytes;
}

}  // namespace

void Follower::skip_to_end() {
  offset_ += static_cast<int64_t>(whole_lines_from(folder_.events_file(), offset_).size());
  new_progress();
}

Update Follower::poll() {
  Update update;
  // Asked first: what is written until the lock is let go is then seen below.
  update.over = !FileLock::is_held(folder_.lock_file());
  update.events = new_events();
  update.progress = new_progress();
  return update;
}

std::vector<StoredEvent> Follower::new_events() {
  std::vector<StoredEvent> events;
  const std::string bytes = whole_lines_from(folder_.events_file(), offset_);
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\n', begin);
    events.push_back(stored_event_from_line(bytes.substr(begin, end - begin)));
    offset_ += static_cast<int64_t>(end + 1 - begin);
    begin = end + 1;
  }
  return events;
}

std::optional<worker::Progress> Follower::new_progress() {
  std::string line = whole_lines_from(folder_.progress_file(), 0);
  if (line.empty() || line == progress_line_) return std::nullopt;
  progress_line_ = std::move(line);
  const StoredEvent stored = stored_event_from_line(progress_line_);
  const auto* progress = stored.event ? std::get_if<worker::Progress>(&*stored.event) : nullptr;
  return progress ? std::optional(*progress) : std::nullopt;
}

}  // namespace forge::run
