#include "core/run/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/worker/json_fields.h"
#include "core/worker/plausible.h"

namespace forge::run {

using Json = nlohmann::json;

LineReader::LineReader(const std::filesystem::path& path, int64_t offset)
    : path_(path),
      file_(open_if_exists(path)),
      read_offset_(offset),
      line_offset_(offset),
      next_offset_(offset) {}

bool LineReader::fill() {
  if (!file_) return false;
  buffer_.resize(32 << 10);  // most logs are short, and resize fills it with zeros
  ssize_t got = 0;
  do {
    got = ::pread(file_.get(), buffer_.data(), buffer_.size(), read_offset_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw system_error("read '" + path_.string() + "'", errno);
  buffer_.resize(static_cast<size_t>(got));
  read_offset_ += got;
  position_ = 0;
  return got > 0;
}

/// A line of more than this does not end within any time: the file is full of something else.
static constexpr int64_t hopeless_line_bytes = int64_t{64} << 20;

bool LineReader::next() {
  line_.clear();
  too_long_ = false;
  line_offset_ = next_offset_;
  while (true) {
    if (position_ == buffer_.size() && !fill()) return false;
    const size_t newline = buffer_.find('\n', position_);
    const size_t end = newline == std::string::npos ? buffer_.size() : newline;
    if (read_offset_ - line_offset_ > hopeless_line_bytes)
      throw Error("'" + path_.string() + "' is no log: it has a line of more than " +
                      human_bytes(double(hopeless_line_bytes)),
                  "restore the file, or remove the run",
                  ExitCode::failed);
    if (line_.size() + (end - position_) > max_line_bytes) {
      too_long_ = true;
      line_.clear();
    }
    if (!too_long_) line_.append(buffer_, position_, end - position_);
    position_ = end;
    if (newline == std::string::npos) continue;
    ++position_;
    next_offset_ = read_offset_ - static_cast<int64_t>(buffer_.size() - position_);
    return true;
  }
}

template <class Visitor>
void fields(Visitor& visit, StderrSizes& sizes) {
  visit.optional("stderr_bytes", sizes.first);
  visit.optional("other_stderr_bytes", sizes.others);
}

template <class Visitor>
void fields(Visitor& visit, AttemptStarted& started) {
  visit.optional("pid", started.pid);
  visit.optional("host", started.host);
  visit.optional("resume_from", started.resume_from);
  visit.optional("damaged", started.damaged);
  fields(visit, started.stderr_sizes);
  visit.optional("stop_after", started.stop_after);
  visit.optional("recompute", started.recompute);
  visit.optional("variables", started.variables);
  visit.optional("inputs", started.inputs);
  visit.optional("changed_inputs", started.changed_inputs);
  visit.optional("devices", started.devices);
}

template <class Visitor>
void fields(Visitor& visit, AttemptEnded& ended) {
  visit.field("status", ended.status);
  visit.optional("exit_status", ended.exit_status);
  visit.optional("signal", ended.signal);
  visit.optional("reason", ended.reason);
  visit.optional("hint", ended.hint);
  visit.optional("rank", ended.rank);
  visit.optional("stderr", ended.stderr_lines);
  visit.optional("retry", ended.retry);
  visit.optional("wait_seconds", ended.wait_seconds);
  visit.optional("storage", ended.storage);
  visit.optional("diverged", ended.diverged);
  visit.optional("busy_elsewhere", ended.busy_elsewhere);
  visit.optional("stopped_seconds", ended.stopped_seconds);
  visit.optional("changed_inputs", ended.changed_inputs);
  fields(visit, ended.stderr_sizes);
  visit.optional("stop_after", ended.stop_after);
}

namespace {

constexpr const char* taken_over_name = "taken_over";

StoredEvent stored_event_from_json(Json json) {
  StoredEvent stored;
  stored.json = std::move(json);
  worker::JsonReader reader(stored.json, "stored event");
  reader.field("time", stored.time);
  reader.field("attempt", stored.attempt);
  reader.field("event", stored.name);
  if (stored.name == "attempt") {
    stored.started = worker::read_fields<AttemptStarted>(stored.json, "event 'attempt'");
  } else if (stored.name == "ended") {
    stored.ended = worker::read_fields<AttemptEnded>(stored.json, "event 'ended'");
  } else if (stored.name == taken_over_name) {
    Json taken;
    reader.field("taken_over", taken);
    stored.taken_over = std::make_shared<StoredEvent>(stored_event_from_json(std::move(taken)));
  } else {
    try {
      stored.event = worker::event_from_json(stored.json);
    } catch (const Error&) {
      // Of another version: `json` is all that can be said about it.
    }
  }
  return stored;
}

/// Throws Error for a number that cannot be.
void require_plausible(const StoredEvent& stored) {
  if (stored.event) worker::require_plausible(*stored.event);
  if (stored.taken_over) require_plausible(*stored.taken_over);
}

}  // namespace

StoredEvent stored_event_from_line(const std::string& line) {
  return stored_event_from_json(worker::object_from_line(line));
}

const worker::Started* started_of(const StoredEvent& stored) {
  const StoredEvent& said = stored.taken_over ? *stored.taken_over : stored;
  return said.event ? std::get_if<worker::Started>(&*said.event) : nullptr;
}

std::string taken_over_line(const StoredEvent& stored) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), stored.name) != names.end();
  };
  Json line = stored.json;
  if (is_one_of({"attempt",
                 "hello",
                 "environment",
                 "started",
                 "micro_batch",
                 "checkpoint",
                 "finished",
                 "ended"}))
    line = {{"time", stored.time}, {"event", taken_over_name}, {taken_over_name, stored.json}};
  else if (!is_one_of({"train", "evaluation", taken_over_name}))
    return "";
  line["attempt"] = 0;
  return worker::to_line(line) + "\n";
}

namespace {

StoredEvent event_of(const LineReader& lines) {
  if (lines.too_long()) throw Error("the line is too long");
  StoredEvent stored = stored_event_from_line(lines.line());
  require_plausible(stored);
  return stored;
}

/// Throws Error naming file and line.
StoredEvent event_of(const LineReader& lines, const fs::path& events_file, int64_t number) {
  try {
    return event_of(lines);
  } catch (const Error& problem) {
    throw Error(events_file.string() + ":" + std::to_string(number) + ": " + problem.message(),
                "the file was changed by something other than forge",
                ExitCode::failed);
  }
}

}  // namespace

std::vector<std::string> changed_inputs_of(const StoredEvent& stored) {
  if (stored.taken_over) return changed_inputs_of(*stored.taken_over);
  if (stored.started && !stored.started->resume_from.empty()) return stored.started->changed_inputs;
  return stored.ended ? stored.ended->changed_inputs : std::vector<std::string>();
}

namespace {

/// What a checkpoint's event says of the attempt so far.
std::optional<double> number_of_checkpoint(const StoredEvent& stored, const char* name) {
  if (stored.name != "checkpoint" || !stored.json.contains(name)) return std::nullopt;
  const Json& number = stored.json.at(name);
  return number.is_number() ? std::optional(number.get<double>()) : std::nullopt;
}

}  // namespace

std::optional<double> load_of(const StoredEvent& stored) {
  return stored.ended ? stored.ended->busy_elsewhere
                      : number_of_checkpoint(stored, "busy_elsewhere");
}

std::optional<double> stopped_seconds_of(const StoredEvent& stored) {
  return stored.ended ? stored.ended->stopped_seconds
                      : number_of_checkpoint(stored, "stopped_seconds");
}

void for_each_event(const fs::path& events_file,
                    const std::function<void(const StoredEvent&)>& take) {
  LineReader lines(events_file, 0);
  for (int64_t number = 1; lines.next(); ++number) take(event_of(lines, events_file, number));
}

std::vector<StoredEvent> read_events(const fs::path& events_file) {
  std::vector<StoredEvent> events;
  for_each_event(events_file, [&](const StoredEvent& event) { events.push_back(event); });
  return events;
}

namespace {

ReadLine read_line(const std::string& line, int64_t offset) {
  ReadLine read;
  read.offset = offset;
  try {
    if (const auto train = worker::train_from_line(line)) {
      worker::require_plausible(train->metrics);
      read.event = StoredEvent{train->time, train->attempt, "train", {}, train->metrics};
      return read;
    }
    StoredEvent stored = stored_event_from_line(line);
    // A worker's event that could not be read: parsed again for the reason.
    if (!stored.event && !stored.started && !stored.ended && !stored.taken_over)
      worker::event_from_json(stored.json);
    require_plausible(stored);
    read.event = std::move(stored);
  } catch (const Error& problem) {
    read.problem = problem.message();
  }
  return read;
}

}  // namespace

std::optional<ReadLine> EventReader::next() {
  if (!lines_.next()) return std::nullopt;
  if (lines_.too_long()) return ReadLine{lines_.line_offset(), {}, "the line is too long"};
  return read_line(lines_.line(), lines_.line_offset());
}

EventBatch read_event_lines(const std::filesystem::path& events_file,
                            int64_t offset,
                            int64_t most_bytes) {
  EventBatch batch;
  batch.begin = offset;
  constexpr int64_t usual_line_bytes = 200;
  std::error_code missing;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(events_file, missing));
  if (!missing && size > offset) {
    const int64_t bytes = std::min(size - offset, most_bytes);
    batch.lines.reserve(static_cast<size_t>(bytes / usual_line_bytes + 1));
  }
  EventReader lines(events_file, offset);
  batch.whole = false;
  while (!batch.whole && lines.next_offset() - offset < most_bytes) {
    std::optional<ReadLine> line = lines.next();
    batch.whole = !line;
    if (line) batch.lines.push_back(std::move(*line));
  }
  batch.end = lines.next_offset();
  return batch;
}

std::map<int64_t, int> recorded_checkpoints(const fs::path& events_file) {
  std::map<int64_t, int> steps;
  // As to_line writes it; within a string it would have a backslash before each quotation mark.
  constexpr std::string_view name = "\"event\":\"checkpoint\"";
  LineReader lines(events_file, 0);
  while (lines.next()) {
    if (lines.line().find(name) == std::string::npos) continue;
    try {
      const StoredEvent stored = stored_event_from_line(lines.line());
      if (!stored.event) continue;
      const auto* saved = std::get_if<worker::CheckpointSaved>(&*stored.event);
      if (saved) steps[saved->step] = stored.attempt;
    } catch (const Error&) {
      // Not a line of forge's; whoever reads all events says so.
    }
  }
  return steps;
}

std::optional<AttemptStarted> unended_attempt(const fs::path& events_file) {
  std::optional<AttemptStarted> unended;
  // As in recorded_checkpoints.
  constexpr std::string_view started = "\"event\":\"attempt\"", ended = "\"event\":\"ended\"";
  if (last_line(events_file).find(ended) != std::string::npos) return unended;
  LineReader lines(events_file, 0);
  while (lines.next()) {
    const bool concerns = lines.line().find(started) != std::string::npos ||
                          lines.line().find(ended) != std::string::npos;
    if (!concerns) continue;
    try {
      const StoredEvent stored = stored_event_from_line(lines.line());
      // One that the run took over saw the run's files before this run did.
      const StoredEvent& said = stored.taken_over ? *stored.taken_over : stored;
      if (said.started || said.ended) unended = said.started;
    } catch (const Error&) {
      // Not a line of forge's; whoever reads all events says so.
    }
  }
  return unended;
}

namespace {

Json without_nulls(Json object) {
  for (auto entry = object.begin(); entry != object.end();)
    entry = entry->is_null() ? object.erase(entry) : std::next(entry);
  return object;
}

}  // namespace

Json to_json(const StderrSizes& sizes) { return without_nulls(worker::write_fields(sizes)); }

StderrSizes stderr_sizes_from(const Json& event) {
  return worker::read_fields<StderrSizes>(event, "stored event");
}

Json stamped(Json event, int attempt) {
  event["time"] = std::round(unix_time() * 1000) / 1000;
  event["attempt"] = attempt;
  return event;
}

namespace {

/// Number of the newest attempt. A damaged last line must not end the run: then all lines are read.
int newest_attempt(const fs::path& events_file) {
  const std::string line = last_line(events_file);
  if (line.empty()) return 0;
  try {
    return stored_event_from_line(line).attempt;
  } catch (const Error&) {
    int newest = 0;
    EventReader lines(events_file, 0);
    while (const std::optional<ReadLine> read = lines.next())
      if (read->event) newest = std::max(newest, read->event->attempt);
    return newest;
  }
}

}  // namespace

EventLog::EventLog(const fs::path& events_file)
    : path_(events_file), file_(events_file), last_attempt_(newest_attempt(events_file)) {
  sync_path(events_file.parent_path());  // a new file's name has to outlive a power cut, too
}

void EventLog::append(Json event, int attempt) {
  const std::string line = worker::to_line(stamped(std::move(event), attempt)) + "\n";
  call_patiently(moment, {}, [&] { file_.append(line); });
  unsynced_ = true;
}

void EventLog::append(const AttemptStarted& event, int attempt) {
  Json json = without_nulls(worker::write_fields(event));
  if (event.inputs.empty()) json.erase("inputs");
  if (event.changed_inputs.empty()) json.erase("changed_inputs");
  json["event"] = "attempt";
  append(std::move(json), attempt);
}

void EventLog::append(const AttemptEnded& event, int attempt) {
  Json json = without_nulls(worker::write_fields(event));
  if (!event.storage) json.erase("storage");
  if (event.changed_inputs.empty()) json.erase("changed_inputs");
  if (event.rank == 0) json.erase("rank");
  json["event"] = "ended";
  append(std::move(json), attempt);
}

void EventLog::sync() {
  if (unsynced_) file_.sync();
  unsynced_ = false;
}

void EventLog::require_in_place() const {
  if (file_.is_in_place()) return;
  throw Error("'" + path_.string() + "' was removed while the run went on", ExitCode::failed);
}

void EventLog::sync_if_due(double now) {
  if (now - synced_at_ < sync_every_seconds) return;
  sync();
  synced_at_ = now;
}

void Pace::take(const worker::Event& event, double time) {
  if (const auto* started = std::get_if<worker::Started>(&event)) {
    max_steps_ = started->max_steps;
    step_ = started->first_step;
    is_timed_ = false;
  } else if (const auto* progress = std::get_if<worker::Progress>(&event)) {
    advance(progress->step, time);
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    advance(metrics->step, time);
  }
}

void Pace::advance(int64_t step, double time) {
  if (step <= step_) return;
  step_ = step;
  stepped_at_ = time;
  if (is_timed_) return;
  is_timed_ = true;
  timed_step_ = step;
  timed_from_ = time;
}

std::optional<double> Pace::seconds_left(double now) const {
  if (!is_timed_ || step_ <= timed_step_) return std::nullopt;
  const double per_step = (stepped_at_ - timed_from_) / double(step_ - timed_step_);
  return std::max(0.0, per_step * double(max_steps_ - step_) - (now - stepped_at_));
}

void Follower::skip_to_end() {
  LineReader lines(folder_.events_file(), offset_);
  while (lines.next()) offset_ = lines.next_offset();
  new_progress();
}

Update Follower::poll() {
  Update update;
  // Asked first: what is written until the lock is let go is then seen below.
  update.over = !folder_.is_running();
  EventBatch batch = read_event_lines(folder_.events_file(), offset_, max_poll_bytes);
  offset_ = batch.end;
  update.over = update.over && batch.whole;
  for (ReadLine& line : batch.lines) {
    // A line that something else wrote must not end who only looks; the store says where it is.
    if (line.event) update.events.push_back(std::move(*line.event));
  }
  update.progress = new_progress();
  return update;
}

std::optional<worker::Progress> Follower::new_progress() {
  LineReader lines(folder_.progress_file(), 0);
  if (!lines.next() || lines.line() == progress_line_) return std::nullopt;
  progress_line_ = lines.line();
  const ReadLine read = read_line(progress_line_, 0);
  const auto* progress = read.event && read.event->event
                             ? std::get_if<worker::Progress>(&*read.event->event)
                             : nullptr;
  return progress ? std::optional(*progress) : std::nullopt;
}

}  // namespace forge::run
