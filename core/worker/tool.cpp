#include "core/worker/tool.h"

#include <algorithm>
#include <memory>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"

namespace forge::worker {

namespace {

/// None where it cannot be started: what is asked of it is worth recording, not worth failing for.
std::unique_ptr<RunningWorker> start_tool(Launcher& launcher,
                                          const WorkerCommand& command,
                                          const fs::path& errors) {
  try {
    return launcher.start({command, "", "", errors});
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::optional<ToolAnswer> run_tool(Launcher& launcher,
                                   const WorkerCommand& command,
                                   const ToolPatience& patience) {
  const TemporaryFile errors;
  const auto tool = start_tool(launcher, command, errors.path());
  if (!tool) return std::nullopt;
  const int interrupts = interrupts_so_far();
  const double began = steady_seconds();
  bool has_said = false;
  ToolAnswer answer;
  while (true) {
    require_uninterrupted(interrupts);
    const double waited = steady_seconds() - began;
    if (waited >= patience.silent_seconds && !has_said) {
      say_waiting("waiting for " + patience.what + ", for " +
                  human_duration(patience.longest_seconds) + " at most");
      has_said = true;
    }
    if (waited >= patience.longest_seconds) break;
    Output output = tool->next(std::min(0.5, patience.silent_seconds));
    if (auto* said = std::get_if<OutputLine>(&output)) {
      answer.lines.push_back(std::move(said->text));
    }
    if (const auto* exit = std::get_if<ExitStatus>(&output)) {
      if (exit->signal != 0) return std::nullopt;
      answer.code = exit->code;
      return answer;
    }
  }
  say_waiting("gave up waiting for " + patience.what);
  return std::nullopt;
}

namespace {

/// What tells git of a repository other than that of its folder, as a hook or an alias has it set:
/// those of `git rev-parse --local-env-vars` but for settings, which may say that a folder is safe.
constexpr const char* repository_variables[] = {"GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                                "GIT_COMMON_DIR",
                                                "GIT_DIR",
                                                "GIT_GRAFT_FILE",
                                                "GIT_IMPLICIT_WORK_TREE",
                                                "GIT_INDEX_FILE",
                                                "GIT_INTERNAL_SUPER_PREFIX",
                                                "GIT_NAMESPACE",
                                                "GIT_NO_REPLACE_OBJECTS",
                                                "GIT_OBJECT_DIRECTORY",
                                                "GIT_PREFIX",
                                                "GIT_REPLACE_REF_BASE",
                                                "GIT_SHALLOW_FILE",
                                                "GIT_WORK_TREE"};

/// Git that starts no program of the repository's choice, as far as options can say that.
WorkerCommand guarded_git(const fs::path& folder) {
  WorkerCommand git;
  git.arguments = {"env"};
  for (const char* name : repository_variables)
    git.arguments.insert(git.arguments.end(), {"-u", name});
  git.arguments.insert(git.arguments.end(),
                       {"git",
                        "--no-pager",
                        "-C",
                        folder.string(),
                        "-c",
                        "safe.bareRepository=explicit",
                        "-c",
                        "core.fsmonitor=false",
                        "-c",
                        "core.hooksPath=/dev/null"});
  // Of a partial clone, git would fetch what is missing, by whatever helper the config names.
  git.environment = {{"GIT_OPTIONAL_LOCKS", "0"},
                     {"GIT_NO_LAZY_FETCH", "1"},
                     {"GIT_ALLOW_PROTOCOL", "none"},
                     {"GIT_TERMINAL_PROMPT", "0"}};
  return git;
}

std::optional<ToolAnswer> ask(Launcher& launcher,
                              WorkerCommand git,
                              const fs::path& folder,
                              const std::vector<std::string>& arguments) {
  git.arguments.insert(git.arguments.end(), arguments.begin(), arguments.end());
  return run_tool(launcher,
                  git,
                  {"git, which looks for the commit and for changed files in '" +
                   shown_path(folder) + "', to record them"});
}

/// Whether a name in git's config has printable ASCII characters alone. Of others nobody knows how
/// options, the locale and git itself read them.
bool is_plain(const std::string& name) {
  constexpr size_t longest = 1000;
  return name.size() <= longest && std::all_of(name.begin(), name.end(), [](char byte) {
           return byte >= ' ' && byte <= '~';
         });
}

/// Whether a name is that of a section which is called by branches, addresses and paths. No command
/// used here runs anything that these name.
bool may_have_any_characters(const std::string& name) {
  constexpr const char* sections[] = {
      "branch.", "credential.", "http.", "includeif.", "remote.", "submodule.", "url."};
  return std::any_of(std::begin(sections), std::end(sections), [&](const char* section) {
    return starts_with(name, section);
  });
}

/// Turns the content filters of the repository off. False where that cannot be: git cuts what
/// follows -c at its first "=", and a name may have one.
bool turn_filters_off(Launcher& launcher, WorkerCommand& git, const fs::path& folder) {
  // All names, of included files, too: a regular expression of git's finds none that has bytes
  // which the locale does not know. No name has a line break.
  const auto names = ask(launcher, git, folder, {"config", "--list", "--name-only"});
  if (!names || names->code != 0) return false;
  for (const std::string& name : names->lines) {
    if (!is_plain(name) && !may_have_any_characters(name)) return false;
    const bool is_required = ends_with(name, ".required");
    const bool is_run = ends_with(name, ".clean") || ends_with(name, ".process");
    if (!starts_with(name, "filter.") || !(is_run || is_required)) continue;
    if (name.find('=') != std::string::npos) return false;
    git.arguments.insert(git.arguments.end(), {"-c", name + (is_required ? "=false" : "=")});
  }
  return true;
}

}  // namespace

std::string git_revision(Launcher& launcher, const fs::path& folder) {
  WorkerCommand git = guarded_git(folder);
  const auto head = ask(launcher, git, folder, {"rev-parse", "--verify", "--short=12", "HEAD"});
  if (!head || head->code != 0 || head->lines.empty()) return "";
  if (!turn_filters_off(launcher, git, folder)) return "";
  // A submodule is a repository with a config of its own: only its commit is compared.
  const auto changes = ask(launcher,
                           git,
                           folder,
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
