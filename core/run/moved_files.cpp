#include "core/run/moved_files.h"

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/project/workspace.h"
#include "core/run/identity.h"

namespace forge::run {

using Json = nlohmann::json;

namespace {

/// Where a config names a file or folder.
std::vector<Json::json_pointer> all_places(const Json& config) {
  std::vector<Json::json_pointer> places = places_of_data(config);
  places.emplace_back("/train/initial_weights");
  places.emplace_back("/external/working_directory");
  return places;
}

/// The path at that place, "" where there is none.
std::string path_at(const Json& config, const Json::json_pointer& place) {
  const bool is_path = config.contains(place) && config[place].is_string();
  return is_path ? config[place].get<std::string>() : "";
}

}  // namespace

fs::path find_moved(const fs::path& path, const std::vector<MovedFolder>& moved) {
  if (!path.is_absolute() || path_exists(path)) return path;
  for (const auto& [from, to] : moved) {
    if (from.empty() || to.empty() || !project::lies_below(path, from)) continue;
    const fs::path now = to / path.lexically_relative(from);
    if (path_exists(now)) return now;
  }
  return path;
}

Json find_moved_files(Json config, const std::vector<MovedFolder>& moved) {
  for (const Json::json_pointer& place : all_places(config)) {
    const std::string path = path_at(config, place);
    if (!path.empty()) config[place] = find_moved(path, moved).string();
  }
  return config;
}

void remember_places(const RunFolder& folder, const Json& config, const std::string& workspace) {
  if (!can_write(folder.path())) return;
  RunRecord record = folder.record();
  const Json recorded = folder.config(record);
  Json now = recorded;
  for (const Json::json_pointer& place : all_places(recorded)) {
    const std::string before = path_at(recorded, place), path = path_at(config, place);
    // What only this user may not look at stays.
    std::error_code unreadable;
    const bool is_gone = fs::path(before).is_absolute() &&
                         fs::status(before, unreadable).type() == fs::file_type::not_found;
    if (is_gone && path_exists(path)) now[place] = path;
  }
  if (now != recorded) write_file_atomic(folder.config_file(), json_text(now, 2) + "\n");
  const auto has_project = [&](const std::string& root) {
    return !root.empty() && project::is_project_folder(fs::path(root) / record.project);
  };
  if (record.workspace.empty() || has_project(record.workspace) || !has_project(workspace)) return;
  record.workspace = workspace;
  write_file_atomic(folder.record_file(), json_text(to_json(record), 2) + "\n");
}

}  // namespace forge::run
