#include "core/run/job.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/tail.h"

namespace forge::run {

/// A file for a job's stderr, removed with the object.
class ScratchFile {
 public:
  ScratchFile() {
    std::string pattern = (fs::temp_directory_path() / "forge-job-XXXXXX").string();
    const FileDescriptor made(::mkstemp(pattern.data()));
    if (!made) throw system_error("make a file in " + fs::temp_directory_path().string(), errno);
    path_ = pattern;
  }
  ~ScratchFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& hint, const fs::path& errors) {
  std::vector<std::string> lines = last_lines(errors, 0, 5, 400);
  if (!hint.empty()) lines.push_back(hint);
  throw Error(what, {}, join(lines, "\n"), ExitCode::failed);
}

/// The worker has said that it failed: `usage` where it leaves with the status of a wrong request.
ExitCode exit_code_after(RunningWorker& worker, double silence_seconds) {
  while (true) {
    const Output output = worker.next(silence_seconds);
    if (const auto* exit = std::get_if<ExitStatus>(&output)) {
      return exit->code == protocol::exit_wrong_request ? ExitCode::usage : ExitCode::failed;
    }
    if (std::holds_alternative<Quiet>(output)) return ExitCode::failed;
  }
}

}  // namespace

JobSession::JobSession(Launcher& launcher,
                       const WorkerCommand& command,
                       const protocol::Request& request,
                       double silence_seconds,
                       bool more_input)
    : silence_seconds_(silence_seconds),
      errors_(std::make_unique<ScratchFile>()),
      worker_(
          launcher.start({command, protocol::to_line(request), "", errors_->path(), more_input})) {}
JobSession::~JobSession() = default;
JobSession::JobSession(JobSession&&) noexcept = default;

std::optional<protocol::Event> JobSession::next() {
  const Output output = worker_->next(silence_seconds_);
  if (std::holds_alternative<Quiet>(output)) {
    refuse("the worker said nothing for " + human_duration(silence_seconds_), "", errors_->path());
  }
  if (const auto* exit = std::get_if<ExitStatus>(&output)) {
    if (exit->code == 0 && exit->signal == 0 && greeted_) return std::nullopt;
    refuse("the worker ended with " + exit->describe(), "", errors_->path());
  }
  protocol::Event event = protocol::event_from_line(std::get<OutputLine>(output).text);
  if (const auto* failed = std::get_if<protocol::Failed>(&event)) {
    // What the worker says of itself is better than its log, and its exit status tells a request
    // that cannot be from a job that went wrong.
    throw Error(failed->message, {}, failed->hint, exit_code_after(*worker_, silence_seconds_));
  }
  const auto* hello = std::get_if<protocol::Hello>(&event);
  greeted_ = greeted_ || (hello && hello->protocol == protocol::version);
  if (!greeted_) {
    refuse("the worker does not speak version " + std::to_string(protocol::version) +
               " of the protocol",
           "build forge and its worker from the same sources",
           errors_->path());
  }
  return event;
}

void run_job(Launcher& launcher,
             const WorkerCommand& command,
             const protocol::Request& request,
             double silence_seconds,
             const std::function<void(const protocol::Event&)>& on_event) {
  JobSession session(launcher, command, request, silence_seconds);
  while (const std::optional<protocol::Event> event = session.next()) on_event(*event);
}

std::string line_of_tool(Launcher& launcher, const std::vector<std::string>& arguments) {
  try {
    const auto tool = launcher.start({{arguments, {}}, "", "", "/dev/null"});
    std::string line;
    const double deadline = steady_seconds() + 2;
    while (steady_seconds() < deadline) {
      Output output = tool->next(0.5);
      if (auto* said = std::get_if<OutputLine>(&output)) line = std::move(said->text);
      if (const auto* exit = std::get_if<ExitStatus>(&output)) {
        return exit->code == 0 && exit->signal == 0 ? line : "";
      }
    }
  } catch (const Error&) {
    // Not installed: what is asked here is worth recording, not worth failing for.
  }
  return "";
}

std::string git_revision(Launcher& launcher, const fs::path& folder) {
  return line_of_tool(launcher,
                      {"git",
                       "-C",
                       folder.string(),
                       "describe",
                       "--always",
                       "--dirty",
                       "--abbrev=12",
                       "--exclude=*"});
}

}  // namespace forge::run
