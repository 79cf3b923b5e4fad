#include "core/project/workspace_id.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/project/workspace.h"

namespace forge::project {

fs::path workspace_id_file(const fs::path& root) {
  return settings_folder_of(root).value_or(root / "forge_workspace") / ".local" / "id";
}

namespace {

/// What a folder keeps where it is moved or mounted elsewhere, and a copy of it does not have.
std::string place_of(const fs::path& folder) {
  struct stat found {};
  return ::stat(folder.c_str(), &found) == 0 ? std::to_string(found.st_ino) : "";
}

/// What an id's file says.
struct IdFile {
  /// The id, the place that it is for, and the ids of the workspaces that this one is a copy of.
  /// Who writes a word there alone chooses the id.
  std::vector<std::string> words = {};
  /// Of the workspace, and the number of the file's owner, when it was written; "": not said.
  std::string root = {}, owner = {};
};

IdFile read_id_file(const fs::path& root) try {
  constexpr uintmax_t most_bytes = 8000;
  const std::string text = read_file_within(workspace_id_file(root), most_bytes);
  const std::vector<std::string> lines = split(text, '\n');
  IdFile file;
  for (const std::string& word : split(trim(lines.front()), ' ')) {
    if (word.empty() || word.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
    file.words.push_back(word);
  }
  if (lines.size() > 1) file.root = lines[1];
  if (lines.size() > 2) file.owner = lines[2];
  return file;
} catch (const Error&) {
  return {};
}

bool is_for_here(const IdFile& file, const fs::path& root) {
  return file.words.size() == 1 ||
         (file.words.size() > 1 &&
          file.words[1] == place_of(workspace_id_file(root).parent_path()));
}

/// Its own one, and those of what it is a copy of.
std::vector<std::string> all_ids(const IdFile& file) {
  std::vector<std::string> ids = file.words;
  if (ids.size() > 1) ids.erase(ids.begin() + 1);  // the place
  return ids;
}

bool has_id(const IdFile& file, const std::string& id) {
  const std::vector<std::string> ids = all_ids(file);
  return !id.empty() && std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// Whether a copy is in the place of its original: that one, and a copy that has taken its place,
/// is gone from where it was, also for a user who may not look into it, and this one is its
/// owner's.
bool is_heir(const IdFile& copied, const fs::path& root) {
  const fs::path file = workspace_id_file(root);
  struct stat found {};
  const bool is_owners =
      ::stat(file.c_str(), &found) == 0 && copied.owner == std::to_string(found.st_uid);
  if (!is_owners || copied.root.empty()) return false;
  if (copied.root == root || is_same_path(copied.root, root)) return true;
  const IdFile original = read_id_file(copied.root);
  if (!original.words.empty()) return !has_id(original, copied.words.front());
  try {
    return !may_exist(workspace_id_file(copied.root));
  } catch (const Error&) {  // its disk, or host, does not answer
    return true;
  }
}

/// Whoever may read the workspace may read its id, whatever this user's umask is.
fs::perms readers_of(const fs::path& root) {
  constexpr auto reading = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  return fs::status(workspace_id_file(root).parent_path().parent_path()).permissions() & reading;
}

void write_id_file(const IdFile& file, const fs::path& path, const fs::path& root) {
  const std::string owner = std::to_string(::geteuid());
  write_file_atomic(
      path, join(file.words, " ") + "\n" + file.root + "\n" + owner + "\n", readers_of(root));
}

/// Lets these list and enter a new folder.
void open_folder(const fs::path& path, fs::perms readers) {
  constexpr unsigned from_reading_to_entering = 2;  // bits of a mode
  const auto reading = static_cast<mode_t>(readers);
  const FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  ::fchmod(folder.get(), S_IRWXU | reading | (reading >> from_reading_to_entering));
}

/// A new id for a workspace with its id in that folder. Where it is a copy that is in the place of
/// its original the ids of that one stay behind it.
IdFile new_id(const IdFile& before, const fs::path& folder, const fs::path& root) {
  IdFile file{{random_digits(), place_of(folder)}, root.string(), {}};
  if (before.words.empty() || !is_heir(before, root)) return file;
  constexpr size_t most_ids = 100;
  std::vector<std::string> ids = all_ids(before);
  ids.resize(std::min(ids.size(), most_ids));
  file.words.insert(file.words.end(), ids.begin(), ids.end());
  return file;
}

/// Gives the workspace a new id. `before`: what its file said, of another folder.
void make_workspace_id(const IdFile& before, const fs::path& root) {
  const fs::path path = workspace_id_file(root), folder = path.parent_path();
  const auto write = [&](const fs::path& place) {
    write_id_file(new_id(before, place, root), place / path.filename(), root);
    write_file_atomic(place / ".gitignore", "*\n");
  };
  const bool is_closed = ::access(path.c_str(), R_OK) != 0 && errno == EACCES;
  if (is_closed) return;
  if (path_exists(folder)) return write(folder);  // a copy's, or one whose file was removed
  FolderWriter writer(folder);
  write(writer.path());
  open_folder(writer.path(), readers_of(root));
  writer.create();
}

/// Whether that id is one of those of which the workspace has taken the place, or would with its
/// first run.
bool is_copy_of(const fs::path& root, const std::string& id) {
  const IdFile file = read_id_file(root);
  return has_id(file, id) && (is_for_here(file, root) || is_heir(file, root));
}

}  // namespace

std::string workspace_id(const fs::path& root) {
  const IdFile file = read_id_file(root);
  return is_for_here(file, root) ? file.words.front() : "";
}

std::string made_workspace_id(const fs::path& root) {
  if (!settings_folder_of(root)) return "";
  try {
    IdFile file = read_id_file(root);
    if (!is_for_here(file, root)) {
      make_workspace_id(file, root);
    } else if (file.words.size() == 1 || !is_same_path(file.root, root)) {
      // It was moved, or somebody wrote the word: a copy that is made later is to be told from it.
      file.words.resize(std::max<size_t>(file.words.size(), 2));
      file.words[1] = place_of(workspace_id_file(root).parent_path());
      file.root = root.string();
      write_id_file(file, workspace_id_file(root), root);
    }
  } catch (const Error&) {
    // It may not be written to, or another command was faster.
  }
  return workspace_id(root);
}

namespace {

/// What the workspace that was at `recorded` is, by what is there now.
WorkspaceRelation relation_by_place(const RecordedWorkspace& recorded,
                                    const fs::path& root,
                                    const std::string& project) try {
  const fs::path folder = fs::path(recorded.root) / project;
  const bool is_there = is_project_folder(folder);
  if (is_there && is_same_path(recorded.root, root)) return WorkspaceRelation::same;
  if (!is_there && may_be_project_folder(folder)) return WorkspaceRelation::another;
  // What is there now may be another one, which was made when that one was gone.
  const bool is_it = is_there && workspace_id(recorded.root) == recorded.id;
  if (is_copy_of(root, recorded.id) && !is_it) return WorkspaceRelation::copied;
  return is_there ? WorkspaceRelation::another : WorkspaceRelation::away;
} catch (const Error&) {  // it is on a disk, or a host, that does not answer
  return is_copy_of(root, recorded.id) ? WorkspaceRelation::copied : WorkspaceRelation::another;
}

/// Whether it is the workspace of an installed forge, PREFIX/share/forge. One that is not there any
/// more may have been.
bool is_installed(const fs::path& root) {
  const bool has_name = root.filename() == "forge" && root.parent_path().filename() == "share";
  std::error_code unreachable;
  const bool is_gone = !fs::exists(root, unreachable);
  return has_name &&
         (is_gone || fs::exists(root.parent_path().parent_path() / "bin" / "forge", unreachable));
}

}  // namespace

WorkspaceRelation relation_of(const RecordedWorkspace& recorded,
                              const fs::path& root,
                              const std::string& project) {
  if (recorded.root.empty() || recorded.root == root) return WorkspaceRelation::same;
  // Those of two versions are one: what runs of their projects computed, their identities say.
  if (is_installed(recorded.root) && is_installed(root)) return WorkspaceRelation::same;
  if (!recorded.id.empty() && recorded.id == workspace_id(root)) {
    // A snapshot of a disk has the ids and the places of what it was made of.
    const bool is_copy =
        workspace_id(recorded.root) == recorded.id && !is_same_path(recorded.root, root);
    return is_copy ? WorkspaceRelation::another : WorkspaceRelation::same;
  }
  return relation_by_place(recorded, root, project);
}

bool is_gone(WorkspaceRelation relation) {
  return relation == WorkspaceRelation::away || relation == WorkspaceRelation::copied;
}

}  // namespace forge::project
