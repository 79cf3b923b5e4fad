#include "core/worker/job.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/base/waiting.h"

namespace forge::worker {

namespace {

/// So long a wait for a worker needs no words.
constexpr double patience_seconds = 3;

[[noreturn]] void refuse(const std::string& what, const std::string& hint, const fs::path& errors) {
  std::vector<std::string> lines = last_lines(errors, 0, 5, 400);
  if (!hint.empty()) lines.push_back(hint);
  throw Error(what, join(lines, "\n"), ExitCode::failed);
}

/// The worker has said that it failed: `usage` where it leaves with the status of a wrong request.
ExitCode exit_code_after(RunningWorker& worker) {
  const double leaves_by = steady_seconds() + exit_grace_seconds;
  while (true) {
    const double left = leaves_by - steady_seconds();
    if (left <= 0) return ExitCode::failed;
    const Output output = worker.next(left);
    if (const auto* exit = std::get_if<ExitStatus>(&output)) {
      return exit->code == worker::exit_wrong_request ? ExitCode::usage : ExitCode::failed;
    }
    if (std::holds_alternative<Quiet>(output)) return ExitCode::failed;
  }
}

}  // namespace

JobSession::JobSession(Launcher& launcher,
                       const WorkerCommand& command,
                       const worker::Request& request,
                       double silence_seconds,
                       bool keep_stdin_open)
    : command_(shell_quoted(command.arguments)),
      silence_seconds_(silence_seconds),
      errors_(std::make_unique<TemporaryFile>()),
      worker_(launcher.start(
          {command, worker::to_line(request), "", errors_->path(), keep_stdin_open})) {}
JobSession::~JobSession() = default;
JobSession::JobSession(JobSession&&) noexcept = default;

std::optional<worker::Event> JobSession::next() {
  const double left = leaves_by_ ? *leaves_by_ - steady_seconds() : silence_seconds_;
  if (left <= 0) return std::nullopt;
  Output output = worker_->next(std::min(left, patience_seconds));
  if (std::holds_alternative<Quiet>(output) && left > patience_seconds) {
    // A first start from a cold network disk is slow.
    if (!leaves_by_ && !has_said_so_)
      say_waiting("waiting for a worker to answer, for " + human_duration(left) +
                  " at most: " + command_);
    has_said_so_ = true;
    output = worker_->next(left - patience_seconds);
  }
  if (leaves_by_ && std::holds_alternative<Quiet>(output)) return std::nullopt;
  if (std::holds_alternative<Quiet>(output)) {
    refuse("the worker said nothing for " + human_duration(silence_seconds_), "", errors_->path());
  }
  if (const auto* exit = std::get_if<ExitStatus>(&output)) {
    if (exit->code == 0 && exit->signal == 0 && hello_received_) return std::nullopt;
    refuse("the worker ended with " + exit->describe(), "", errors_->path());
  }
  worker::Event event = worker::event_from_line(std::get<OutputLine>(output).text);
  if (const auto* failed = std::get_if<worker::Failed>(&event)) {
    // What the worker says of itself is better than its log, and its exit status tells a request
    // that cannot be from a job that went wrong.
    throw Error(failed->message, failed->hint, exit_code_after(*worker_));
  }
  const auto* hello = std::get_if<worker::Hello>(&event);
  hello_received_ = hello_received_ || (hello && hello->protocol == worker::version);
  if (!hello_received_) {
    refuse(
        "the worker does not speak version " + std::to_string(worker::version) + " of the protocol",
        "build forge and its worker from the same sources",
        errors_->path());
  }
  return event;
}

void run_job(Launcher& launcher,
             const WorkerCommand& command,
             const worker::Request& request,
             double silence_seconds,
             const std::function<void(const worker::Event&)>& on_event) {
  JobSession session(launcher, command, request, silence_seconds);
  while (const std::optional<worker::Event> event = session.next()) on_event(*event);
}

nlohmann::json job_result(Launcher& launcher,
                          const WorkerCommand& command,
                          const worker::Request& request,
                          const std::function<void(const worker::Event&)>& on_event) {
  std::optional<nlohmann::json> values;
  JobSession session(launcher, command, request, job_silence_seconds);
  while (const std::optional<worker::Event> event = session.next()) {
    if (const auto* result = std::get_if<worker::Result>(&*event)) {
      values = result->values;
      session.expect_end();
    }
    if (on_event) on_event(*event);
  }
  if (!values) throw Error("the worker ended without a result", ExitCode::failed);
  return *values;
}

}  // namespace forge::worker
