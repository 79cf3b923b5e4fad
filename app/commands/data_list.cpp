#include <algorithm>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands/data.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << 100 * share << " %";
  return text.str();
}

Json tokens_json(const std::optional<data::PreparedTokens>& tokens) {
  if (!tokens) return nullptr;
  return {{"path", tokens->path.string()},
          {"tokens", tokens->tokens},
          {"documents", tokens->documents}};
}

Json parts_json(const data::PreparedFolder& folder) {
  Json json = Json::array();
  for (const data::PreparedPart& part : folder.parts) {
    json.push_back({{"source", part.source},
                    {"weight", part.weight},
                    {"name", part.name},
                    {"train", tokens_json(part.train)},
                    {"evaluation", tokens_json(part.evaluation)}});
  }
  return json;
}

/// A number of the training tokens, of all parts of a mixture together.
std::string count_of(const data::PreparedFolder& folder, int64_t data::PreparedTokens::*member) {
  if (folder.train) return with_thousands((*folder.train).*member);
  int64_t sum = 0;
  for (const data::PreparedPart& part : folder.parts) sum += part.train ? (*part.train).*member : 0;
  return sum > 0 ? with_thousands(sum) : "-";
}

std::string text_of(const data::PreparedFolder& folder) {
  if (!folder.parts.empty()) {
    std::vector<std::string> parts;
    for (const data::PreparedPart& part : folder.parts) {
      parts.push_back(part.source + " " + shortest(part.weight));
    }
    return join(parts, ", ");
  }
  if (folder.unfinished) return "unfinished";
  if (!folder.train) return "nothing, its preparation failed";
  return folder.text_path.empty() ? folder.source : shown_path(folder.text_path);
}

int list_data(bool as_json) {
  const auto prepared = data::list_prepared(user_cache_dir());
  const auto now = static_cast<double>(std::time(nullptr));
  if (as_json) {
    Json json = Json::array();
    for (const data::PreparedFolder& folder : prepared) {
      json.push_back({{"name", folder.name},
                      {"folder", folder.folder.string()},
                      {"source", folder.source},
                      {"path", folder.text_path},
                      {"train", tokens_json(folder.train)},
                      {"evaluation", tokens_json(folder.evaluation)},
                      {"bytes", folder.bytes},
                      {"modified", folder.modified},
                      {"unfinished", folder.unfinished},
                      {"parts", parts_json(folder)}});
    }
    print_json(json);
    return 0;
  }
  if (prepared.empty()) {
    std::cout << "nothing is prepared in " << shown_path(user_cache_dir() / "data") << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> lines = {
      {"name", "tokens", "documents", "size", "age", "text"}};
  double bytes = 0;
  for (const data::PreparedFolder& folder : prepared) {
    lines.push_back({folder.name,
                     count_of(folder, &data::PreparedTokens::tokens),
                     count_of(folder, &data::PreparedTokens::documents),
                     human_bytes(static_cast<double>(folder.bytes)),
                     human_duration(std::max(0.0, now - static_cast<double>(folder.modified))),
                     text_of(folder)});
    bytes += static_cast<double>(folder.bytes);
  }
  std::cout << aligned(lines, {1, 2, 3, 4}) << human_bytes(bytes) << " in "
            << shown_path(user_cache_dir() / "data") << "\n";
  return 0;
}

}  // namespace

int show_mixture(const data::PreparedFolder& folder, bool json) {
  if (json) {
    print_json(Json{{"name", folder.name}, {"parts", parts_json(folder)}});
    return 0;
  }
  double sum = 0;
  for (const data::PreparedPart& part : folder.parts) sum += part.weight;
  std::vector<std::vector<std::string>> lines = {
      {"source", "share of rows", "tokens", "documents", "name"}};
  for (const data::PreparedPart& part : folder.parts) {
    lines.push_back({part.source,
                     percent(part.weight / sum),
                     part.train ? with_thousands(part.train->tokens) : "-",
                     part.train ? with_thousands(part.train->documents) : "-",
                     part.name});
  }
  std::cout << folder.name << "\n\n" << aligned(lines, {1, 2, 3});
  return 0;
}

void add_data_ls(const Command& data, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command = data.add_subcommand("ls", "What is prepared, the newest first");
  command.add_flag("--json", *json, "As JSON");
  command.callback(
      [&program, json] { program.action = [json](const Context&) { return list_data(*json); }; });
  command.footer("Examples:\n  forge data ls\n  forge data ls --json");
}

}  // namespace forge::app
