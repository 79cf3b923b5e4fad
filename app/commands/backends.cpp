#include "backends/backends.h"

#include <unistd.h>

#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/run/local_launcher.h"

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
  const run::BackendInfo& info = *backend.info;
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
std::vector<std::string> limits_of(const protocol::Supports& supports) {
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
    const run::BackendInfo& info = *backend.info;
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
  run::LocalLauncher launcher;
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

}  // namespace forge::app
