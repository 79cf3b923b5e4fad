#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/json_text.h"
#include "core/config/keys.h"

namespace forge::app {
namespace {

int list_keys(bool json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> lines;
  for (const config::Key& key : config::all_keys()) {
    list.push_back({{"key", key.path},
                    {"type", key.type},
                    {"default", key.default_value},
                    {"required", key.required},
                    {"help", key.help}});
    lines.push_back({key.path, key.required ? "required" : key.default_value, key.help});
  }
  std::cout << (json ? json_text(list, 2) + "\n" : aligned(lines));
  return 0;
}

}  // namespace

void add_keys(const Command& app, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command =
      app.add_subcommand("keys", "List every key of a config with its default and meaning");
  command.add_flag("--json", *json, "As JSON");
  command.callback(
      [&program, json] { program.action = [json](const Context&) { return list_keys(*json); }; });
}

}  // namespace forge::app
