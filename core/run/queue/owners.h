#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/run/run_folder.h"

/// Users who share a runs folder. Each one's forge starts the runs alone that this user has queued:
/// a run's files name paths, which others may change, and what these lead to would be read with the
/// rights of whoever starts the run. Where its files' rights keep others from a run, nobody but its
/// owner can say whether it runs, has ended or was removed: others leave its entry in the queue as
/// it is.
namespace forge::queue {

/// Whether what stands at a path, a plain file or folder and no link, is this user's, and nobody
/// else may write to it. Where a file system gives all files another owner or other rights, as a
/// network's or Windows' does, that is what counts which a new file of this user's gets there.
bool is_only_own(const std::filesystem::path& path);

/// Replaces files of a folder, by their names, as write_files_atomic does. Nobody else may write to
/// them, whatever this user's umask is; who has the rights of `readers` may read them.
void write_own_files(const std::filesystem::path& folder,
                     const std::vector<std::pair<std::string, std::string>>& contents,
                     std::filesystem::perms readers = std::filesystem::perms::none);

/// Whether another user owns what stands at a path.
bool is_of_other_user(const std::filesystem::path& path);

/// Whether the rights of a path keep this user from it, of which `wanted` are those of access(2).
/// Nobody is kept from what is not there.
bool is_closed(const std::filesystem::path& path, int wanted);

/// What keeps this user from a run: the first of its folders and files that they may not read or
/// write as its supervisor does.
struct ClosedPath {
  std::filesystem::path path;
  std::string owner;        ///< owner_name
  bool is_own = false;      ///< this user owns it, and can open it
  std::string what;         ///< "read", "write to"
  bool hides_lock = false;  ///< nobody but others can tell whether the run is active
};

/// None where nothing stands in the way, and where there is no such folder.
std::optional<ClosedPath> closed_path(const run::RunFolder& folder);

/// "you may not write to 'RUN/events.jsonl': it belongs to alice", with what to do about it.
Error closed_error(const ClosedPath& closed);

/// What such a run waits for in the queue: "alice, to whom 'RUN/events.jsonl' belongs: …".
std::string closed_text(const ClosedPath& closed, const run::RunFolder& folder);

/// What a run waits for that this user's forge does not start, as somebody else has queued it or
/// may have changed its entry: "its owner, alice, who queued it". "" where it does.
std::string foreign_entry_text(const std::filesystem::path& runs_dir, const std::string& run);

/// Whether this user wrote the run's entry in the queue last. It may be withdrawn then, whoever
/// owns the run's files.
bool is_own_entry(const std::filesystem::path& runs_dir, const std::string& run);

/// Whether the run is in the queue by another user's word.
bool is_queued_by_other_user(const std::filesystem::path& runs_dir, const std::string& run);

}  // namespace forge::queue
