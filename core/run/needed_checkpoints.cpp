#include "core/run/needed_checkpoints.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json_file.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/run/request.h"

namespace forge::run {

RunFolder NeededCheckpoint::origin() const { return RunFolder(run_of_checkpoint(checkpoint)); }

bool NeededCheckpoint::is_needed() const {
  try {
    return !run.find_checkpoint().recorded;
  } catch (const Error&) {
    return true;  // nobody can say now
  }
}

namespace {

constexpr uintmax_t max_path_bytes = 4096;

/// In a runs folder: a file for each run of another one, its path, under the hash of that.
constexpr const char* marks_name = ".needed";

/// The run that a mark names; none where it is no mark that forge wrote, whatever else lies there.
std::optional<RunFolder> marked_run(const fs::path& mark) {
  require_own_file(mark);
  const fs::path path = read_file_within(mark, max_path_bytes);
  if (!path.is_absolute() || mark.filename() != hash_hex(path.string())) return std::nullopt;
  return RunFolder(path);
}

/// Calls `visit(run, mark)` for each mark in a runs folder. The folder of the marks is opened
/// without following links: it may come from somebody else.
template <class Visit>
void for_each_mark(const PinnedFolder& marks, const Visit& visit) {
  for (const fs::path& mark : folder_entries(marks.path())) {
    try {
      if (const auto run = marked_run(mark)) visit(*run, mark);
    } catch (const Error&) {
      // It is no mark, or of a folder that this user may not look into.
    }
  }
}

/// The runs of other runs folders that are marked in this one and not completed.
std::vector<RunFolder> marked_runs(const fs::path& runs_dir) {
  std::vector<RunFolder> runs;
  std::error_code unknown;
  if (!fs::is_directory(fs::symlink_status(runs_dir / marks_name, unknown))) return runs;
  try {
    for_each_mark(PinnedFolder(runs_dir, marks_name), [&](const RunFolder& run, const fs::path&) {
      if (!path_exists(run.done_file()) && run.has_record()) runs.push_back(run);
    });
  } catch (const Error&) {
    // It was moved away this moment.
  }
  return runs;
}

}  // namespace

std::vector<NeededCheckpoint> needed_checkpoints(const RunFolder& run) {
  std::vector<NeededCheckpoint> needed;
  if (path_exists(run.done_file())) return needed;
  try {
    const worker::Request request = read_request(run);
    for (const std::string& checkpoint : {request.initial_weights, request.resume_from}) {
      if (!run_of_checkpoint(checkpoint).empty()) needed.push_back({run, checkpoint});
    }
  } catch (const Error&) {
    // Said where the run is begun.
  }
  return needed;
}

std::vector<NeededCheckpoint> needed_checkpoints(const fs::path& runs_dir) {
  std::vector<NeededCheckpoint> all;
  for (const auto& runs : {list_runs(runs_dir), marked_runs(runs_dir)}) {
    for (const RunFolder& run : runs) {
      std::vector<NeededCheckpoint> needed = needed_checkpoints(run);
      all.insert(all.end(), needed.begin(), needed.end());
    }
  }
  return all;
}

void mark_needed_elsewhere(const RunFolder& run) {
  const std::string path = fs::absolute(run.path()).lexically_normal().string();
  for (const NeededCheckpoint& needed : needed_checkpoints(run)) {
    // A run of others may name any place: only one with that checkpoint gets a mark.
    if (!needed.origin().has_record() || !path_exists(needed.checkpoint)) continue;
    const fs::path runs_dir = needed.origin().path().parent_path();
    if (is_same_path(runs_dir, run.path().parent_path()) || !can_write(runs_dir)) continue;
    try {
      make_own_folders(runs_dir, marks_name);
      const PinnedFolder marks(runs_dir, marks_name);
      write_file_atomic(marks.path() / hash_hex(path), path);
      for_each_mark(marks, [](const RunFolder& marked, const fs::path& mark) {
        if (path_exists(marked.done_file())) remove_tree(mark);
      });
    } catch (const Error&) {
      // It is full, or was moved away this moment.
    }
  }
}

std::string needed_text(const RunFolder& run, bool only_missing) {
  for (const NeededCheckpoint& needed : needed_checkpoints(run)) {
    if (!needed.is_needed() || (only_missing && path_exists(needed.checkpoint))) continue;
    const std::string id = needed.origin().id();
    return "it begins from checkpoint " + needed.checkpoint.filename().string() + " of run '" + id +
           "': " + quoted_command("forge pack " + shell_quoted(id) + " --checkpoints") +
           " packs that one, and who imports both can resume this one";
  }
  return "";
}

bool is_needed(const fs::path& checkpoint, const fs::path& runs_dir) {
  const std::vector<NeededCheckpoint> all = needed_checkpoints(runs_dir);
  return std::any_of(all.begin(), all.end(), [&](const NeededCheckpoint& needed) {
    return is_same_path(needed.checkpoint, checkpoint) && needed.is_needed();
  });
}

}  // namespace forge::run
