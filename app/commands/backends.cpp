#include <unistd.h>
#include <iostream>

#include "app/command_line.h"
#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/worker/conformance/check_backend.h"
#include "core/worker/launcher.h"

namespace forge::app {
namespace {

using Json = nlohmann::ordered_json;
using backends::ListedBackend;

Json to_json(const ListedBackend& backend) {
  Json json = {{"name", backend.name},
               {"description", backend.description},
               {"declared_in", backend.declaration.string()},
               {"available", backend.info.has_value()},
               {"problem", backend.problem}};
  if (!backend.info) return json;
  const worker::BackendInfo& info = *backend.info;
  json["version"] = info.hello.backend_version;
  json["numerics_version"] = info.hello.numerics_version;
  json["device"] = info.environment.device_type;
  json["device_name"] = info.environment.device_name;
  json["devices"] = info.environment.devices;
  json["libraries"] = info.environment.libraries;
  json["jobs"] = info.supports ? Json(info.supports->jobs) : Json();
  json["config"] = info.supports ? Json(info.supports->config) : Json();
  return json;
}

/// A version, or the names of the files that a library was found in.
std::string text_of(const nlohmann::json& library) {
  if (library.is_string()) return library.get<std::string>();
  if (!library.is_array()) return json_text(library);
  std::vector<std::string> names;
  for (const auto& file : library) {
    if (file.is_string()) names.push_back(fs::path(file.get<std::string>()).filename().string());
  }
  return join(names, " + ");
}

/// "model.family: llama_canon" for each key of which only some values will do.
std::vector<std::string> limits_of(const worker::Supports& supports) {
  std::vector<std::string> lines;
  for (const auto& [key, values] : supports.config.items()) {
    std::vector<std::string> words;
    for (const auto& value : values) {
      const std::string text = plain_text(value);
      words.push_back(text.empty() ? "\"\"" : text);
    }
    lines.push_back(key + ": " + join(words, ", "));
  }
  return lines;
}

std::string text_of(const ListedBackend& backend, bool colour) {
  std::string text = styled(backend.name, Style::bold, colour);
  if (backend.info) text += " " + backend.info->hello.backend_version;
  if (!backend.description.empty()) text += " — " + backend.description;
  text += "\n";
  std::vector<std::vector<std::string>> lines;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) lines.push_back({"  " + name, value});
  };
  if (backend.info) {
    const worker::BackendInfo& info = *backend.info;
    add("devices", join(info.environment.devices, ", "));
    add("uses", info.environment.device_name);
    std::vector<std::string> libraries;
    for (const auto& [name, value] : info.environment.libraries.items())
      libraries.push_back(name + " " + text_of(value));
    add("libraries", join(libraries, ", "));
    if (info.supports) {
      add("jobs", join(info.supports->jobs, ", "));
      const char* name = "only";
      for (const std::string& line : limits_of(*info.supports)) {
        add(name, line);
        name = "";
      }
    }
  } else {
    add("not here", split(backend.problem, '\n').front());
  }
  if (!backend.declaration.empty()) add("declared", shown_path(backend.declaration));
  return text + aligned(lines);
}

int list_backends(const Context& context, bool json) {
  const auto project = context.project_folder();
  worker::LocalLauncher launcher;
  const auto found =
      backends::list_backends(config::backend_folders(project.value_or(fs::path()),
                                                      context.workspace().root,
                                                      context.surroundings().library_dir),
                              context.program(),
                              launcher);
  if (json) {
    Json list = Json::array();
    for (const ListedBackend& backend : found) list.push_back(to_json(backend));
    print_json(list);
    return 0;
  }
  for (const ListedBackend& backend : found) {
    if (&backend != &found[0]) std::cout << "\n";
    std::cout << text_of(backend, use_colour(STDOUT_FILENO));
  }
  return 0;
}

}  // namespace

void add_backends(const Command& app, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command = app.add_subcommand(
      "backends", "List the programs that can train, their devices and what they can do");
  command.footer(
      "Examples:\n"
      "  forge backends\n"
      "  forge run train_canon_ac --backend pytorch\n"
      "\n"
      "A backend is declared in backends/NAME/backend.yaml of a project or of the workspace:\n"
      "  command: [/usr/bin/python3, worker.py]\n"
      "docs/PROTOCOL.md says what such a program reads and writes; 'forge backend-test' tries it.");
  add_project_option(command, program);
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, json] {
    program.action = [json](const Context& context) { return list_backends(context, *json); };
  });
}

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
worker::WorkerCommand command_of(const Context& context, const std::vector<std::string>& words) {
  worker::WorkerCommand command;
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
  worker::LocalLauncher launcher;
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
