#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/backend.h"
#include "core/run/local_launcher.h"
#include "core/upkeep/doctor.h"

namespace forge::app {
namespace {

using upkeep::Finding;
using upkeep::Health;

std::vector<upkeep::BackendReport> ask_backends(const Context& context) {
  run::LocalLauncher launcher;
  const auto project = context.project_folder();
  std::vector<upkeep::BackendReport> reports;
  for (backends::ListedBackend& backend :
       backends::list_backends(config::backend_folders(project.value_or(fs::path()),
                                                       context.workspace().root,
                                                       context.surroundings().library_dir),
                               context.program(),
                               launcher))
    reports.push_back({backend.name, std::move(backend.info), backend.problem});
  return reports;
}

std::vector<Finding> examine(const Context& context) {
  std::vector<Finding> findings = upkeep::examine_machine();
  const auto add = [&](const std::vector<Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  const std::vector<upkeep::BackendReport> backends = ask_backends(context);
  add({upkeep::examine_gpu(backends)});
  for (const upkeep::BackendReport& report : backends)
    add(upkeep::examine_backend(report, report.name == "libtorch"));
  add(upkeep::examine_runs_folder(context.runs_dir()));
  add({upkeep::examine_store(context.runs_dir()), upkeep::examine_cache(user_cache_dir())});
  const char* path = std::getenv("PATH");
  add({upkeep::examine_build_tools(path ? path : "")});
  return findings;
}

Style style_of(Health health) {
  switch (health) {
    case Health::ok: return Style::green;
    case Health::warning: return Style::yellow;
    case Health::problem: return Style::red;
  }
  return Style::plain;
}

void print(const std::vector<Finding>& findings) {
  const bool colour = use_colour(STDOUT_FILENO);
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.what.size());
  const std::string indent(9 + width + 2, ' ');
  for (const Finding& finding : findings) {
    const std::string& health = name_of(finding.health);
    std::cout << styled(health, style_of(finding.health), colour)
              << std::string(9 - health.size(), ' ') << finding.what
              << std::string(width - finding.what.size() + 2, ' ') << finding.text << "\n";
    if (!finding.hint.empty()) std::cout << indent << "hint: " << finding.hint << "\n";
  }
}

int doctor(const Context& context, bool json) {
  const std::vector<Finding> findings = examine(context);
  const auto count = [&](Health health) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.health == health;
    });
  };
  const auto problems = count(Health::problem), warnings = count(Health::warning);
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings) list.push_back(to_json(finding));
    print_json(nlohmann::json{{"findings", list}, {"problems", problems}, {"warnings", warnings}});
  } else {
    print(findings);
    std::cout << "\n"
              << problems << (problems == 1 ? " problem, " : " problems, ") << warnings
              << (warnings == 1 ? " warning\n" : " warnings\n");
  }
  return problems > 0 ? 1 : 0;
}

}  // namespace

void add_doctor(const Command& app, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command = app.add_subcommand(
      "doctor", "Look whether machine, backends and folders are as forge needs them");
  command.footer(
      "Exit code 1 where there is a problem: something that hinders runs, or makes them unsafe. A\n"
      "warning is something that is slow, or soon will be in the way.\n"
      "\n"
      "Examples:\n"
      "  forge doctor\n"
      "  forge doctor --json");
  command.add_flag("--json", *json, "As JSON");
  command.callback(
      [&program, json] { program.action = [json](const Context& c) { return doctor(c, *json); }; });
}

}  // namespace forge::app
