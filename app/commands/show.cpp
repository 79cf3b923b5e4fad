#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/resolve.h"

namespace forge::app {
namespace {

struct ShowOptions {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

int show(const Context& context, const ShowOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.surroundings = context.surroundings();
  resolve_options.variables = chosen.variables;
  const config::ResolvedConfig resolved =
      config::resolve(chosen.project, chosen.config.name, resolve_options);
  if (options.json) {
    print_json(resolved.json);
    return 0;
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& [path, origin] : resolved.origins) {
    const std::string pointer = "/" + join(split(path, '.'), "/");
    const nlohmann::json::json_pointer where(pointer);
    if (!resolved.json.contains(where)) continue;
    const std::string place = origin.set_by.origin.describe();
    lines.push_back({path,
                     json_text(resolved.json.at(where)),
                     place.empty() ? origin.set_by.layer : origin.set_by.layer + ", " + place});
  }
  std::cout << aligned(lines);
  return 0;
}

}  // namespace

void add_show(const Command& app, Program& program) {
  auto options = std::make_shared<ShowOptions>();
  const Command command =
      app.add_subcommand("show", "Print a config as it resolves, and who set each value");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_flag("--json", options->json, "The resolved config as JSON, as a run stores it");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return show(c, *options); };
  });
}

}  // namespace forge::app
