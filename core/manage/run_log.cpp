#include "core/manage/run_log.h"

#include <cmath>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/run/host.h"
#include "core/run/input_files.h"

namespace forge::manage {
namespace {

using Json = nlohmann::json;

constexpr int64_t shown_parts = 20;  // of a run's training metrics

std::string attempt_text(const run::StoredEvent& stored) {
  const run::AttemptStarted& started = *stored.started;
  std::string text = "attempt " + std::to_string(stored.attempt);
  if (!started.host.empty()) text += " on " + started.host;
  text += ", process " + std::to_string(started.pid);
  if (!started.resume_from.empty())
    text += ", going on from checkpoint " + fs::path(started.resume_from).filename().string();
  for (const std::string& problem : started.damaged) text += "; " + problem;
  if (started.changed_inputs.empty()) return text;
  return text + "; " + run::changed_inputs_text(join(started.changed_inputs, ", "));
}

std::string ended_text(const run::AttemptEnded& ended) {
  std::string text = run::name_of(ended.status);
  if (starts_with(ended.reason, text)) {
    text = ended.reason;
  } else if (!ended.reason.empty()) {
    text += ": " + ended.reason;
  }
  if (ended.retry) text += "; trying again";
  if (ended.retry && ended.wait_seconds.value_or(0) > 0)
    text += " in " + human_duration(*ended.wait_seconds);
  if (!ended.hint.empty()) text += " (" + ended.hint + ")";
  if (ended.changed_inputs.empty()) return text;
  return text + "; " + run::changed_inputs_text(join(ended.changed_inputs, ", "));
}

struct Text {
  std::string operator()(const worker::Hello& hello) const {
    return "worker of backend " + hello.backend + " " + hello.backend_version + ", numerics " +
           std::to_string(hello.numerics_version);
  }
  std::string operator()(const worker::Environment& environment) const {
    return "on " +
           run::device_text(environment.device_type, environment.device_name, environment.threads);
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
    if (started.gradient_slots)
      text += ", " + with_thousands(*started.gradient_slots) + " gradient slots";
    if (started.processes) text += ", " + with_thousands(*started.processes) + " processes";
    return text;
  }
  std::string operator()(const worker::MicroBatch& halved) const {
    return "memory ran out after step " + std::to_string(halved.step) + ": " + halved.phase +
           " computes " + with_thousands(halved.rows) + " of " + with_thousands(halved.of) +
           " rows a micro-batch from now on";
  }
  std::string operator()(const worker::TrainMetrics& metrics) const {
    return "step " + std::to_string(metrics.step) + "  loss " + results::loss_text(metrics.loss) +
           "  " +
           (metrics.tokens_per_second ? with_thousands(std::llround(*metrics.tokens_per_second))
                                      : "-") +
           " tok/s";
  }
  std::string operator()(const worker::Evaluation& evaluation) const {
    std::string text = "evaluation at step " + std::to_string(evaluation.step) + ": loss " +
                       results::loss_text(evaluation.loss);
    for (const auto& [name, score] : evaluation.scores)
      text += "  " + name + " " + results::loss_text(score.value);
    return text;
  }
  std::string operator()(const worker::CheckpointSaved& saved) const {
    return "checkpoint of step " + std::to_string(saved.step) + ", " +
           human_bytes(double(saved.bytes)) + " in " + saved.path;
  }
  std::string operator()(const worker::Finished& finished) const {
    std::string text = finished.completed ? "all steps done" : "stopped on request";
    text += " at step " + std::to_string(finished.step);
    if (finished.eval_loss) text += ", eval loss " + results::loss_text(*finished.eval_loss);
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
  if (entry.rank) json["rank"] = *entry.rank;
  if (!entry.event.is_null()) json["event"] = entry.event;
  return json;
}

std::string event_text(const run::StoredEvent& stored) {
  if (stored.started) return attempt_text(stored);
  if (stored.ended) return ended_text(*stored.ended);
  if (!stored.event) return "";
  return std::visit(Text(), *stored.event);
}

void RunLog::Reader::lines(const fs::path& path,
                           const std::function<void(const std::string&)>& take,
                           int64_t end) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  if (!missing && static_cast<int64_t>(size) < offset) offset = 0;  // written anew
  run::LineReader lines(path, offset);
  while (lines.next() && lines.next_offset() <= end) {
    offset = lines.next_offset();
    take(lines.too_long() ? "(a line of more than 2 MiB)" : lines.line());
  }
}

void RunLog::poll(const Take& take) {
  if (source_ == LogSource::supervisor) {
    events_.lines(folder_.supervisor_log(), [&](const std::string& line) {
      take({std::nullopt, 0, "supervisor", tables::printable_lines(line), {}, nullptr});
    });
    return;
  }
  if (source_ != LogSource::worker)
    events_.lines(folder_.events_file(), [&](const std::string& line) { tell_event(line, take); });
  if (source_ != LogSource::events) tell_worker_lines(take);
}

void RunLog::tell_event(const std::string& line, const Take& take) {
  LogLine told;
  try {
    run::StoredEvent stored = run::stored_event_from_line(line);
    if (source_ == LogSource::all) {
      tell_worker_lines(take, run::stderr_sizes_from(stored.json));
      attempt_ = stored.attempt;
      if (!should_show(stored)) return;
    }
    std::string text = tables::printable(event_text(stored));
    if (text.empty() && source_ == LogSource::all) return;
    told = {stored.time, stored.attempt, stored.name, std::move(text), {}, std::move(stored.json)};
  } catch (const Error& problem) {
    told = {std::nullopt,
            0,
            "damaged",
            "a line of events.jsonl cannot be read: " + tables::printable(problem.message()),
            {},
            nullptr};
  }
  take(told);
}

void RunLog::tell_worker_lines(const Take& take, const std::optional<run::StderrSizes>& sizes) {
  const std::vector<fs::path> files = folder_.stderr_files();
  worker_lines_.resize(std::max(files.size(), worker_lines_.size()));
  for (size_t rank = 0; rank < files.size(); ++rank) {
    LogLine told{std::nullopt, attempt_, "worker", "", {}, nullptr};
    if (files.size() > 1) told.rank = static_cast<int>(rank);
    worker_lines_[rank].lines(
        files[rank],
        [&](const std::string& line) {
          told.text = tables::printable_lines(line);
          take(told);
        },
        sizes ? sizes->of(static_cast<int>(rank)) : INT64_MAX);
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
