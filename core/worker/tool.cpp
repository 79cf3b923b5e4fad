#include "core/worker/tool.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"

namespace forge::worker {

std::optional<ToolAnswer> run_tool(Launcher& launcher, const WorkerCommand& command) {
  try {
    const TemporaryFile errors;
    const auto tool = launcher.start({command, "", "", errors.path()});
    ToolAnswer answer;
    const double deadline = steady_seconds() + 10;
    while (steady_seconds() < deadline) {
      Output output = tool->next(0.5);
      if (auto* said = std::get_if<OutputLine>(&output)) {
        answer.lines.push_back(std::move(said->text));
      }
      if (const auto* exit = std::get_if<ExitStatus>(&output)) {
        if (exit->signal != 0) return std::nullopt;
        answer.code = exit->code;
        return answer;
      }
    }
  } catch (const Error&) {
    // Not installed: what is asked here is worth recording, not worth failing for.
  }
  return std::nullopt;
}

namespace {

/// Git that starts no program of the repository's choice, as far as options can say that.
WorkerCommand guarded_git(const fs::path& folder) {
  WorkerCommand git;
  git.arguments = {"git",
                   "--no-pager",
                   "-C",
                   folder.string(),
                   "-c",
                   "safe.bareRepository=explicit",
                   "-c",
                   "core.fsmonitor=false",
                   "-c",
                   "core.hooksPath=/dev/null"};
  // Of a partial clone, git would fetch what is missing, by whatever helper the config names.
  git.environment = {{"GIT_OPTIONAL_LOCKS", "0"},
                     {"GIT_NO_LAZY_FETCH", "1"},
                     {"GIT_ALLOW_PROTOCOL", "none"},
                     {"GIT_TERMINAL_PROMPT", "0"}};
  return git;
}

std::optional<ToolAnswer> ask(Launcher& launcher,
                              WorkerCommand git,
                              const std::vector<std::string>& arguments) {
  git.arguments.insert(git.arguments.end(), arguments.begin(), arguments.end());
  return run_tool(launcher, git);
}

/// Turns the content filters of the repository off. False where that cannot be: git cuts what
/// follows -c at its first "=", and a name may have one.
bool turn_filters_off(Launcher& launcher, WorkerCommand& git) {
  const auto filters =
      ask(launcher,
          git,
          {"config", "--name-only", "--get-regexp", "^filter\\..*\\.(clean|process|required)$"});
  constexpr int nothing_found = 1;
  if (!filters || filters->code > nothing_found) return false;
  for (const std::string& name : filters->lines) {
    if (name.find('=') != std::string::npos) return false;
    git.arguments.insert(git.arguments.end(),
                         {"-c", name + (ends_with(name, ".required") ? "=false" : "=")});
  }
  return true;
}

}  // namespace

std::string git_revision(Launcher& launcher, const fs::path& folder) {
  WorkerCommand git = guarded_git(folder);
  const auto head = ask(launcher, git, {"rev-parse", "--verify", "--short=12", "HEAD"});
  if (!head || head->code != 0 || head->lines.empty()) return "";
  if (!turn_filters_off(launcher, git)) return "";
  // A submodule is a repository with a config of its own: only its commit is compared.
  const auto changes = ask(launcher,
                           git,
                           {"diff",
                            "--quiet",
                            "--no-ext-diff",
                            "--no-textconv",
                            "--ignore-submodules=dirty",
                            "HEAD",
                            "--"});
  constexpr int changed = 1;
  if (!changes || changes->code > changed) return "";
  return head->lines.back() + (changes->code == changed ? "-dirty" : "");
}

}  // namespace forge::worker
