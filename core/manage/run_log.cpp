#include "core/manage/run_log.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::manage {
namespace {

using Json = nlohmann::json;

constexpr int64_t shown_parts = 20;                      // of a run's training metrics
constexpr int64_t most_bytes_a_poll = int64_t{8} << 20;  // a file larger than memory is read on

std::string loss_text(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4f", number);
  return digits;
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t number_at(const Json& json, const char* key, int64_t missing = 0) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : missing;
}

std::string attempt_text(const run::StoredEvent& stored) {
  std::string text = "attempt " + std::to_string(stored.attempt);
  const std::string host = text_at(stored.json, "host");
  if (!host.empty()) text += " on " + host;
  text += ", process " + std::to_string(number_at(stored.json, "pid"));
  const std::string from = text_at(stored.json, "resume_from");
  if (!from.empty()) text += ", going on from checkpoint " + fs::path(from).filename().string();
  const auto damaged = stored.json.find("damaged");
  if (damaged == stored.json.end() || !damaged->is_array()) return text;
  for (const Json& problem : *damaged) {
    if (problem.is_string()) text += "; " + problem.get<std::string>();
  }
  return text;
}

std::string ended_text(const run::StoredEvent& stored) {
  std::string text = text_at(stored.json, "status");
  const std::string reason = text_at(stored.json, "reason");
  if (starts_with(reason, text)) {
    text = reason;
  } else if (!reason.empty()) {
    text += ": " + reason;
  }
  if (stored.json.value("retry", Json()) == true) {
    text += "; trying again";
    const auto wait = stored.json.find("wait_seconds");
    if (wait != stored.json.end() && wait->is_number() && *wait > 0)
      text += " in " + human_duration(wait->get<double>());
  }
  const std::string hint = text_at(stored.json, "hint");
  return hint.empty() ? text : text + " (" + hint + ")";
}

struct Text {
  std::string operator()(const worker::Hello& hello) const {
    return "worker of backend " + hello.backend + " " + hello.backend_version + ", numerics " +
           std::to_string(hello.numerics_version);
  }
  std::string operator()(const worker::Environment& environment) const {
    std::string text = "on " + environment.device_name;
    if (environment.device_type == "cpu")
      text += ", " + std::to_string(environment.threads) +
              (environment.threads == 1 ? " thread" : " threads");
    return text;
  }
  std::string operator()(const worker::Started& started) const {
    std::string text = started.first_step > 0
                           ? "going on after step " + std::to_string(started.first_step)
                           : std::string("training begins");
    text += ": " + with_thousands(started.max_steps) + " steps of " +
            with_thousands(started.tokens_per_step) + " tokens, " +
            with_thousands(started.parameters) + " parameters";
    if (started.micro_batch_size)
      text += ", " + with_thousands(*started.micro_batch_size) +
              (*started.micro_batch_size == 1 ? " row a micro-batch" : " rows a micro-batch");
    return text;
  }
  std::string operator()(const worker::MicroBatch& halved) const {
    return "memory ran out after step " + std::to_string(halved.step) + ": " + halved.phase +
           " computes " + with_thousands(halved.rows) + " of " + with_thousands(halved.of) +
           " rows a micro-batch from now on";
  }
  std::string operator()(const worker::TrainMetrics& metrics) const {
    return "step " + std::to_string(metrics.step) + "  loss " + loss_text(metrics.loss) + "  " +
           with_thousands(std::llround(metrics.tokens_per_second)) + " tok/s";
  }
  std::string operator()(const worker::Evaluation& evaluation) const {
    std::string text = "evaluation at step " + std::to_string(evaluation.step) + ": loss " +
                       loss_text(evaluation.loss);
    for (const auto& [name, score] : evaluation.scores)
      text += "  " + name + " " + loss_text(score.value);
    return text;
  }
  std::string operator()(const worker::CheckpointSaved& saved) const {
    return "checkpoint of step " + std::to_string(saved.step) + ", " +
           human_bytes(double(saved.bytes)) + " in " + saved.path;
  }
  std::string operator()(const worker::Finished& finished) const {
    std::string text = finished.completed ? "all steps done" : "stopped on request";
    text += " at step " + std::to_string(finished.step);
    if (finished.eval_loss) text += ", eval loss " + loss_text(*finished.eval_loss);
    return text + ", " + human_duration(finished.wall_seconds) + " in all";
  }
  std::string operator()(const worker::Failed& failed) const {
    std::string text = "the worker failed: ";
    if (!failed.field.empty()) text += failed.field + ": ";
    return text + failed.message;
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

}  // namespace

Json to_json(const LogLine& entry) {
  Json json = {
      {"time", nullptr}, {"attempt", entry.attempt}, {"kind", entry.kind}, {"text", entry.text}};
  if (entry.time) json["time"] = *entry.time;
  if (!entry.event.is_null()) json["event"] = entry.event;
  return json;
}

std::string event_text(const run::StoredEvent& stored) {
  if (stored.name == "attempt") return attempt_text(stored);
  if (stored.name == "ended") return ended_text(stored);
  if (!stored.event) return "";
  return std::visit(Text(), *stored.event);
}

std::vector<std::string> RunLog::Reader::lines(const fs::path& path, int64_t end) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const int64_t size = file ? static_cast<int64_t>(file.tellg()) : 0;
  if (size < offset) offset = 0;  // written anew
  const int64_t stop = std::min({size, end, offset + most_bytes_a_poll});
  if (stop <= offset) return {};
  std::string bytes(static_cast<size_t>(stop - offset), '\0');
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  const size_t newline = bytes.rfind('\n');
  // A last line may still be being written; a line that fills the whole read is taken as it is.
  const bool overlong = newline == std::string::npos && stop - offset == most_bytes_a_poll;
  if (!overlong) bytes.resize(newline + 1);  // npos + 1 is 0
  offset += static_cast<int64_t>(bytes.size());
  if (bytes.empty()) return {};
  if (bytes.back() == '\n') bytes.pop_back();
  return split(bytes, '\n');
}

std::vector<LogLine> RunLog::poll() {
  std::vector<LogLine> entries;
  if (source_ == LogSource::supervisor) {
    for (const std::string& line : events_.lines(folder_.supervisor_log()))
      entries.push_back({std::nullopt, 0, "supervisor", tables::printable(line), nullptr});
    return entries;
  }
  if (source_ != LogSource::worker) {
    // All that was there at the first call, however large the file is.
    while (true) {
      const std::vector<std::string> lines = events_.lines(folder_.events_file());
      for (const std::string& line : lines) add_event(line, entries);
      if (lines.empty()) break;
    }
  }
  if (source_ != LogSource::events) add_worker_lines(INT64_MAX, entries);
  return entries;
}

void RunLog::add_event(const std::string& line, std::vector<LogLine>& entries) {
  try {
    const run::StoredEvent stored = run::stored_event_from_line(line);
    if (source_ == LogSource::all) {
      if (stored.json.contains("stderr_bytes"))
        add_worker_lines(number_at(stored.json, "stderr_bytes"), entries);
      attempt_ = stored.attempt;
      if (!should_show(stored)) return;
    }
    std::string text = tables::printable(event_text(stored));
    if (text.empty() && source_ == LogSource::all) return;
    entries.push_back({stored.time, stored.attempt, stored.name, std::move(text), stored.json});
  } catch (const Error& problem) {
    entries.push_back(
        {std::nullopt,
         0,
         "damaged",
         "a line of events.jsonl cannot be read: " + tables::printable(problem.message()),
         nullptr});
  }
}

void RunLog::add_worker_lines(int64_t end, std::vector<LogLine>& entries) {
  while (true) {
    const std::vector<std::string> lines = worker_lines_.lines(folder_.stderr_file(), end);
    for (const std::string& line : lines)
      entries.push_back({std::nullopt, attempt_, "worker", tables::printable(line), nullptr});
    if (lines.empty()) break;
  }
}

bool RunLog::should_show(const run::StoredEvent& stored) {
  if (!stored.event) return true;
  if (const auto* started = std::get_if<worker::Started>(&*stored.event)) {
    max_steps_ = started->max_steps;
    shown_fraction_ = -1;
  }
  const auto* metrics = std::get_if<worker::TrainMetrics>(&*stored.event);
  if (!metrics || max_steps_ <= 0) return true;
  const int64_t part = metrics->step * shown_parts / max_steps_;
  if (part == shown_fraction_ && metrics->step != max_steps_) return false;
  shown_fraction_ = part;
  return true;
}

}  // namespace forge::manage
