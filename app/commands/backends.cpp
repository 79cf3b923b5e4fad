#include <algorithm>
#include <iostream>

#include "app/command_line.h"
#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/run/backend_support.h"
#include "core/worker/conformance/check_backend.h"

namespace forge::app {
namespace {

using Json = nlohmann::ordered_json;
using backends::ListedBackend;

Json to_json(const ListedBackend& backend) {
  Json json = {{"name", backend.name},
               {"description", backend.description},
               {"declared_in", backend.declaration.string()},
               {"was_asked", backend.was_asked},
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

/// A library's version, or the names of its files.
std::string library_text(const nlohmann::json& library) {
  if (library.is_string()) return library.get<std::string>();
  if (!library.is_array()) return json_text(library);
  std::vector<std::string> names;
  for (const auto& file : library) {
    if (file.is_string()) names.push_back(fs::path(file.get<std::string>()).filename().string());
  }
  return join(names, " + ");
}

/// "model.family: llama_canon" for each key that is limited to some values.
std::vector<std::string> supported_values(const worker::Supports& supports) {
  std::vector<std::string> lines;
  for (const auto& [key, values] : supports.config.items()) {
    if (key == run::parallel_key) continue;  // it limits nothing
    std::vector<std::string> words;
    for (const auto& value : values) {
      const std::string text = plain_text(value);
      words.push_back(text.empty() ? "\"\"" : text);
    }
    lines.push_back(key + ": " + join(words, ", "));
  }
  return lines;
}

std::string backend_text(const ListedBackend& backend) {
  std::string text = styled(tables::printable(backend.name), Style::bold);
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
      libraries.push_back(name + " " + library_text(value));
    add("libraries", join(libraries, ", "));
    if (info.supports) {
      add("jobs", join(info.supports->jobs, ", "));
      add("processes",
          run::trains_by_several_processes(info) ? "one or several of one machine" : "one");
      const char* name = "only";
      for (const std::string& line : supported_values(*info.supports)) {
        add(name, line);
        name = "";
      }
    }
  } else if (!backend.problem.empty()) {
    add("unavailable", split(backend.problem, '\n').front());
  } else {
    add("not started", quoted_command("forge backends " + backend.name) + " asks it what it is");
  }
  if (!backend.declaration.empty()) add("declared", shown_path(backend.declaration));
  return text + aligned(lines);
}

struct ListOptions {
  std::vector<std::string> names;  ///< none: all
  bool json = false;
};

int list_backends(const Context& context, const ListOptions& options) {
  const auto is_named = [&](const std::string& name) {
    return std::find(options.names.begin(), options.names.end(), name) != options.names.end();
  };
  std::vector<ListedBackend> found = backends::list_backends(
      context.backend_folders(),
      context.program(),
      context.launcher(),
      [&](const config::DeclaredBackend& declared) {
        return is_named(declared.name) ||
               (options.names.empty() && context.is_forges_own(declared.external));
      });
  for (const std::string& name : options.names) {
    const auto is_it = [&](const ListedBackend& backend) { return backend.name == name; };
    if (std::none_of(found.begin(), found.end(), is_it))
      throw Error("there is no backend '" + name + "'", "'forge backends' lists them");
  }
  if (!options.names.empty()) {
    found.erase(
        std::remove_if(found.begin(),
                       found.end(),
                       [&](const ListedBackend& backend) { return !is_named(backend.name); }),
        found.end());
  }
  if (options.json)
    return print_json(
        json_list(found, [](const ListedBackend& backend) { return to_json(backend); }));
  for (const ListedBackend& backend : found) {
    if (&backend != &found[0]) std::cout << "\n";
    std::cout << backend_text(backend);
  }
  return 0;
}

using conformance::Verdict;

struct BackendTestOptions {
  std::vector<std::string> command;
  conformance::CheckOptions check;
  bool keep = false;
  bool json = false;
};

/// What a single word names: a declared backend, else a program.
worker::WorkerCommand program_command(const Context& context,
                                      const std::vector<std::string>& words) {
  config::Experiment experiment;
  experiment.backend = config::external_backend;
  experiment.external.command = words;
  experiment.external.working_directory = context.here().string();
  if (words.size() == 1) {
    for (const config::DeclaredBackend& declared :
         config::declared_backends(context.backend_folders())) {
      if (declared.name != words[0]) continue;
      if (!declared.problem.empty()) throw Error(declared.problem);
      experiment.backend = declared.name;
      experiment.external = declared.external;
    }
  }
  return context.backend(experiment)->command({});
}

std::string findings_text(const std::vector<conformance::Finding>& findings) {
  std::vector<std::vector<std::string>> lines;
  for (const conformance::Finding& finding : findings) {
    const Style style = finding.verdict == Verdict::passed   ? Style::green
                        : finding.verdict == Verdict::failed ? Style::red
                                                             : Style::yellow;
    lines.push_back({finding.check, styled(name_of(finding.verdict), style), finding.text});
    if (!finding.hint.empty()) lines.push_back({"", "", "hint: " + finding.hint});
  }
  return aligned(lines, {}, 1);
}

Json to_json(const conformance::Finding& finding) {
  return {{"check", finding.check},
          {"verdict", name_of(finding.verdict)},
          {"text", finding.text},
          {"hint", finding.hint}};
}

int test(const Context& context, const BackendTestOptions& options) {
  const PrivateFolder folder("backend-test", options.keep);
  conformance::CheckOptions check_options = options.check;
  if (is_terminal(STDERR_FILENO)) {
    check_options.on_check = [](const std::string& name) {
      std::cerr << tables::printable(name) << " …\n";
    };
  }
  const std::vector<conformance::Finding> findings = conformance::check_backend(
      context.launcher(), program_command(context, options.command), folder.path(), check_options);
  const bool passed =
      std::none_of(findings.begin(), findings.end(), [](const conformance::Finding& finding) {
        return finding.verdict == Verdict::failed;
      });
  if (options.json) {
    const auto list = json_list(findings, [](const auto& finding) { return to_json(finding); });
    print_json(Json{{"passed", passed}, {"checks", list}});
  } else {
    std::cout << findings_text(findings);
  }
  if (options.keep) std::cerr << "files kept in " << folder.path().string() << "\n";
  return static_cast<int>(passed ? ExitCode::done : ExitCode::failed);
}

}  // namespace

void add_backends(const Command& app) {
  const auto [command, options] = app.add_command(
      "backends", "List training backends, their devices and what they support", list_backends);
  command
      .details(
          "A backend is a program that trains. A project or workspace declares its own in "
          "backends/NAME/backend.yaml:\n"
          "\n"
          "  command: [/usr/bin/python3, worker.py]\n"
          "\n"
          "docs/PROTOCOL.md specifies what such a program reads and writes. It is started to be "
          "asked where it is named here, or comes with forge.")
      .examples(
          "forge backends\n"
          "forge backends bigram\n"
          "forge run train_canon_ac --backend pytorch")
      .see_also("forge backend-test, forge doctor");
  command.add_option("NAME", options.names, "Backends to start and show [default: all]");
  add_project_option(command);
  add_json_option(command, options.json);
}

void add_backend_test(const Command& app) {
  const auto [command, options] =
      app.add_command("backend-test", "Test a backend program against the protocol", test);
  command
      .details(
          "The test asks the program to describe itself, to train a model of a few thousand "
          "weights twice, to resume from a checkpoint, to stop and to evaluate. It also sends "
          "invalid requests. Exit code 1 when a check fails. docs/PROTOCOL.md specifies what is "
          "expected.")
      .examples(
          "forge backend-test bigram\n"
          "forge backend-test -- /usr/bin/python3 worker.py\n"
          "forge backend-test --json -- ./my-worker --verbose")
      .see_also("forge backends");
  command.add_option("COMMAND", options.command, "A declared backend, or a program with arguments")
      .required();
  command
      .add_option("--timeout <SECONDS>",
                  options.check.patience_seconds,
                  "Fail a check after this many seconds without a new message")
      .positive()
      .show_default();
  command.add_option("--patience", options.check.patience_seconds, "Old name of --timeout")
      .positive()
      .hidden();
  command.add_flag("--keep", options.keep, "Keep the test's files: checkpoints and stderr.log");
  add_json_option(command, options.json);
}

}  // namespace forge::app
