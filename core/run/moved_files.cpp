#include "core/run/moved_files.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/project/workspace.h"
#include "core/run/identity.h"
#include "core/run/queue/owners.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

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
  if (!path.is_absolute()) return path;
  const bool is_there = path_exists(path);
  for (const auto& [from, to, is_replaced] : moved) {
    if (from.empty() || to.empty() || !project::lies_below(path, from)) continue;
    const fs::path now = to / path.lexically_relative(from);
    if (is_replaced || (!is_there && path_exists(now))) return now;
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

namespace {

/// What is to become of a run's record where a workspace goes on with it.
enum class Keeping { theirs, as_it_is, moved };

/// Also where its disk, or host, does not answer.
bool may_be_there(const fs::path& path) try { return may_exist(path); } catch (const Error&) {
  return true;
}

/// `theirs`: it stays another workspace's, also that of this user's own one which is away and may
/// come back.
Keeping keeping_of(const RunRecord& record, const std::string& workspace) {
  using project::WorkspaceRelation;
  if (workspace.empty() || record.workspace.empty()) return Keeping::as_it_is;
  const std::string id = project::workspace_id(workspace);
  const bool is_older = record.workspace_id.empty();  // it was made by a forge that knew no ids
  if (record.workspace == workspace)
    return is_older && !id.empty() ? Keeping::moved : Keeping::as_it_is;
  const auto relation =
      project::relation_of({record.workspace, record.workspace_id}, workspace, record.project);
  if (relation == WorkspaceRelation::another) return Keeping::theirs;
  if (relation == WorkspaceRelation::away) return is_older ? Keeping::moved : Keeping::theirs;
  // It stays one of both: that one may only have been renamed, or seen elsewhere by a container.
  if (relation == WorkspaceRelation::copied) return Keeping::as_it_is;
  const bool is_it = !is_older && record.workspace_id == id;
  const bool is_gone = !may_be_there(fs::path(record.workspace) / record.project / "meta.yaml");
  return is_it || is_gone ? Keeping::moved : Keeping::as_it_is;
}

}  // namespace

void remember_places(const RunFolder& folder,
                     const Json& config,
                     const std::string& workspace,
                     bool is_replaced) {
  // Another user's run stays in their tables; where its files are for this one is found each time.
  if (!can_write(folder.path()) || queue::is_of_other_user(folder.path())) return;
  RunRecord record = folder.record();
  const Json recorded = folder.config(record);
  const Keeping keeping = is_replaced ? Keeping::moved : keeping_of(record, workspace);
  const bool has_moved = keeping == Keeping::moved && record.workspace != workspace;
  Json now = recorded;
  for (const Json::json_pointer& place : all_places(recorded)) {
    const std::string before = path_at(recorded, place), path = path_at(config, place);
    const bool is_in_workspace = project::lies_below(before, record.workspace);
    const bool is_gone = is_in_workspace
                             ? has_moved || (keeping != Keeping::theirs && !may_be_there(before))
                             : !may_be_there(before);
    if (fs::path(before).is_absolute() && is_gone && path_exists(path)) now[place] = path;
  }
  if (now != recorded) write_file_atomic(folder.config_file(), json_text(now, 2) + "\n");
  const bool has_project = !workspace.empty() && !record.workspace.empty() &&
                           project::is_project_folder(fs::path(workspace) / record.project);
  if (keeping == Keeping::moved && has_project) {
    record.workspace = workspace;
    record.workspace_id = project::workspace_id(workspace);
    write_file_atomic(folder.record_file(), json_text(to_json(record), 2) + "\n");
  }
  if (record.workspace == workspace) remember_run_dir(folder, folder.path());
}

std::string moved_workspace(const RunFolder& folder,
                            const RunRecord& record,
                            const std::string& run_dir) {
  const fs::path before = record.workspace, now = fs::absolute(folder.path()).lexically_normal();
  if (before.empty() || now == run_dir || !project::lies_below(run_dir, before)) return "";
  const fs::path inside = fs::path(run_dir).lexically_relative(before);  // "runs/train_canon_a-…"
  fs::path root = now;
  for ([[maybe_unused]] const fs::path& part : inside) root = root.parent_path();
  std::error_code unreadable;
  const bool is_moved = root / inside == now && project::is_project_folder(root / record.project) &&
                        !fs::equivalent(root, before, unreadable) &&
                        !is_same_path(now, run_dir);  // both are links to it
  return is_moved ? root.string() : "";
}

project::RecordedWorkspace workspace_of(const RunFolder& folder, const RunRecord& record) {
  std::string moved_to;
  try {
    moved_to = moved_workspace(folder, record, read_request(folder).run_dir);
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    // Without a request that can be read nothing tells that it was moved.
  }
  return {moved_to.empty() ? record.workspace : moved_to, record.workspace_id};
}

bool is_anothers_run(const RunFolder& folder,
                     project::WorkspaceRelation relation,
                     const std::string& workspace_id) {
  const bool is_away = relation == project::WorkspaceRelation::away && !workspace_id.empty();
  return relation == project::WorkspaceRelation::another ||
         (is_away && queue::is_of_other_user(folder.path()));
}

bool is_of_project(const RunFolder& folder,
                   const RunRecord& record,
                   const std::string& workspace_root,
                   const std::string& project) {
  if (record.project != project) return false;
  const project::RecordedWorkspace recorded = workspace_of(folder, record);
  return !is_anothers_run(
      folder, project::relation_of(recorded, workspace_root, project), recorded.id);
}

void require_own_workspace(const RunFolder& folder,
                           const RunRecord& record,
                           const std::string& run_dir,
                           const config::ExternalConfig& external) {
  const std::string root = moved_workspace(folder, record, run_dir);
  const fs::path starts_in = external.working_directory;
  if (root.empty() || external.command.empty()) return;
  if (!project::lies_below(starts_in, record.workspace) || !path_exists(starts_in)) return;
  throw Error("run '" + record.id + "' cannot begin: its workspace was moved to '" +
                  shown_path(root) + "', and its command would be started in '" +
                  shown_path(starts_in) + "', which is another workspace's now",
              quoted_command("forge runs resume " + shell_quoted(record.id)) + ", given in '" +
                  shown_path(root) + "', starts it from its own files",
              ExitCode::failed);
}

}  // namespace forge::run
