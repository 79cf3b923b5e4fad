#include <unistd.h>

#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/conformance/check_backend.h"
#include "core/run/local_launcher.h"

namespace forge::app {
namespace {

using conformance::Verdict;

struct BackendTestOptions {
  std::vector<std::string> command;
  double patience = 60;
  bool keep = false;
  bool json = false;
};

/// A folder for the time of a test.
class Scratch {
 public:
  explicit Scratch(bool keep) : keep_(keep) {
    std::string pattern = (fs::temp_directory_path() / "forge-backend-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw system_error("make a folder '" + pattern + "'", errno);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool keep_;
};

/// What a single word names: a declared backend, else a program.
run::WorkerCommand command_of(const Context& context, const std::vector<std::string>& words) {
  run::WorkerCommand command;
  command.working_folder = context.here();
  command.arguments = words;
  if (words.size() == 1) {
    const auto project = context.project_folder();
    for (const config::DeclaredBackend& declared :
         config::declared_backends(config::backend_folders(project.value_or(fs::path()),
                                                           context.workspace().root,
                                                           context.surroundings().library_dir))) {
      if (declared.name != words[0]) continue;
      config::Experiment experiment;
      experiment.backend = declared.name;
      experiment.external = declared.external;
      return context.backend(experiment)->command({});
    }
  }
  std::string& program = command.arguments[0];
  if (program.find('/') != std::string::npos)
    program = (context.here() / program).lexically_normal().string();
  return command;
}

std::string text_of(const std::vector<conformance::Finding>& findings, bool colour) {
  std::vector<std::vector<std::string>> lines;
  for (const conformance::Finding& finding : findings) {
    const Style style = finding.verdict == Verdict::passed   ? Style::green
                        : finding.verdict == Verdict::failed ? Style::red
                                                             : Style::yellow;
    lines.push_back({finding.check, styled(name_of(finding.verdict), style, colour), finding.text});
    if (!finding.hint.empty()) lines.push_back({"", "", "hint: " + finding.hint});
  }
  return aligned(lines);
}

nlohmann::ordered_json to_json(const std::vector<conformance::Finding>& findings, bool passed) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const conformance::Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"verdict", name_of(finding.verdict)},
                    {"text", finding.text},
                    {"hint", finding.hint}});
  }
  return {{"passed", passed}, {"checks", list}};
}

int test(const Context& context, const BackendTestOptions& options) {
  const Scratch scratch(options.keep);
  conformance::CheckOptions check_options;
  check_options.patience_seconds = options.patience;
  if (is_terminal(STDERR_FILENO)) {
    check_options.on_check = [](const std::string& name) { std::cerr << name << " …\n"; };
  }
  run::LocalLauncher launcher;
  const std::vector<conformance::Finding> findings = conformance::check_backend(
      launcher, command_of(context, options.command), scratch.path(), check_options);
  const bool passed =
      std::none_of(findings.begin(), findings.end(), [](const conformance::Finding& finding) {
        return finding.verdict == Verdict::failed;
      });
  if (options.json) {
    print_json(to_json(findings, passed));
  } else {
    std::cout << text_of(findings, use_colour(STDOUT_FILENO));
  }
  if (options.keep) std::cerr << "its files are in " << scratch.path().string() << "\n";
  return static_cast<int>(passed ? ExitCode::done : ExitCode::failed);
}

}  // namespace

void add_backend_test(const Command& app, Program& program) {
  auto options = std::make_shared<BackendTestOptions>();
  const Command command = app.add_subcommand(
      "backend-test", "Try a program out as a backend and say what it does wrong");
  command.footer(
      "Examples:\n"
      "  forge backend-test bigram\n"
      "  forge backend-test -- /usr/bin/python3 worker.py\n"
      "  forge backend-test --json -- ./my-worker --verbose\n"
      "\n"
      "It is asked to describe itself, to train a model of a few thousand weights twice, to go on\n"
      "from a checkpoint, to stop and to evaluate, and is given requests that are wrong. Exit "
      "status\n"
      "1 where something was. docs/PROTOCOL.md says what is expected.");
  command.add_option("command", options->command, "A declared backend, or a program and arguments")
      .required();
  command.add_option("--patience", options->patience, "Seconds in which it must say something new")
      .positive()
      .capture_default();
  command.add_flag("--keep", options->keep, "Keep its files: checkpoints and stderr.log");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& context) { return test(context, *options); };
  });
}

}  // namespace forge::app
