#include "core/run/needed_checkpoints.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json_file.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/run/folder_id.h"
#include "core/run/queue/owners.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

namespace forge::run {

RunFolder NeededCheckpoint::origin() const { return RunFolder(run_of_checkpoint(checkpoint)); }

bool NeededCheckpoint::is_needed() const {
  if (!mark.empty()) return true;  // nobody can say now
  try {
    return !run.find_checkpoint().recorded;
  } catch (const Error&) {
    return true;  // nobody can say now
  }
}

namespace {

constexpr uintmax_t max_mark_bytes = 8192;

/// In a runs folder: a file for each run that begins from one here and that others cannot always
/// look at. It holds the path of that run and a line "folder ID" of its runs folder (folder_id.h),
/// under whose hash it lies, and a line "RUN/STEP" for each checkpoint.
constexpr const char* marks_name = ".needed";

struct Mark {
  RunFolder run;
  std::string folder_id;  ///< "": not known
  std::vector<std::string> checkpoints;
};

constexpr const char* folder_line = "folder ";

/// As the mark names it.
std::string path_of(const RunFolder& run) {
  return fs::absolute(run.path()).lexically_normal().string();
}

/// How a mark of the run begins.
std::string mark_begin(const std::string& path, const std::string& folder_id) {
  return folder_id.empty() ? path : path + "\n" + folder_line + folder_id;
}

/// None where it is no mark that forge wrote, whatever else lies there.
std::optional<Mark> read_mark(const fs::path& file) {
  require_own_file(file);
  std::vector<std::string> lines = split(read_file_within(file, max_mark_bytes), '\n');
  const std::string path = lines[0];
  std::string folder_id;
  if (lines.size() > 1 && starts_with(lines[1], folder_line))
    folder_id = lines[1].substr(std::string(folder_line).size());
  if (!fs::path(path).is_absolute() || file.filename() != hash_hex(mark_begin(path, folder_id)))
    return std::nullopt;
  lines.erase(lines.begin(), lines.begin() + (folder_id.empty() ? 1 : 2));
  return Mark{RunFolder(path), folder_id, std::move(lines)};
}

/// Whether this host has another runs folder under the path of the marked run's.
bool is_of_another_folder(const Mark& mark) {
  return !mark.folder_id.empty() && folder_id(mark.run.path().parent_path()) != mark.folder_id;
}

/// Calls `visit(mark, file)` for each mark in a runs folder. The folder of the marks is opened
/// without following links: it may come from somebody else.
template <class Visit>
void for_each_mark(const PinnedFolder& marks, const Visit& visit) {
  for (const fs::path& file : folder_entries(marks.path())) {
    try {
      if (const auto mark = read_mark(file)) visit(*mark, file);
    } catch (const Error&) {
      // It is no mark, or of a folder that this user may not look into.
    }
  }
}

/// Whether nobody can tell this user now what the run names, nor that it is gone: its runs folder
/// is not mounted, or the run is closed to this user.
bool is_out_of_sight(const RunFolder& run) {
  try {
    if (path_exists(run.done_file())) return false;
    if (path_exists(run.record_file()))
      return queue::is_closed(run.record_file(), R_OK) ||
             queue::is_closed(run.request_file(), R_OK);
    if (queue::is_closed(run.path(), X_OK)) return true;
    std::error_code missing;
    return fs::is_empty(run.path().parent_path(), missing) || missing;
  } catch (const Error&) {
    return true;  // its disk does not answer
  }
}

/// What the runs name that are marked in this runs folder: by their requests, or by their marks
/// while they are out of sight.
std::vector<NeededCheckpoint> marked_checkpoints(const fs::path& runs_dir) {
  std::vector<NeededCheckpoint> all;
  std::error_code unknown;
  if (!fs::is_directory(fs::symlink_status(runs_dir / marks_name, unknown))) return all;
  try {
    for_each_mark(PinnedFolder(runs_dir, marks_name), [&](const Mark& mark, const fs::path& file) {
      if (!is_of_another_folder(mark) && !is_out_of_sight(mark.run)) {
        const std::vector<NeededCheckpoint> needed = needed_checkpoints(mark.run);
        all.insert(all.end(), needed.begin(), needed.end());
        return;
      }
      for (const std::string& checkpoint : mark.checkpoints) {
        const std::vector<std::string> names = split(checkpoint, '/');
        if (names.size() != 2 || !is_run_name(names[0])) continue;
        all.push_back({mark.run,
                       RunFolder(runs_dir / names[0]).checkpoints() / names[1],
                       runs_dir / marks_name / file.filename()});
      }
    });
  } catch (const Error&) {
    // It was moved away this moment.
  }
  return all;
}

/// What a run names, though it may be completed.
std::vector<NeededCheckpoint> named_checkpoints(const RunFolder& run) {
  std::vector<NeededCheckpoint> named;
  try {
    const worker::Request request = read_request(run);
    for (const std::string& checkpoint : {request.initial_weights, request.resume_from}) {
      if (!run_of_checkpoint(checkpoint).empty()) named.push_back({run, checkpoint});
    }
  } catch (const Error&) {
    // Said where the run is begun.
  }
  return named;
}

/// Whether the rights of its files keep some users from reading what the run names.
bool is_hidden(const RunFolder& run) {
  std::error_code unknown;
  const fs::perms folder = fs::status(run.path(), unknown).permissions();
  const fs::perms request = fs::status(run.request_file(), unknown).permissions();
  return (folder & fs::perms::others_exec) == fs::perms::none ||
         (request & fs::perms::others_read) == fs::perms::none;
}

/// Who may use the runs folder may use its marks, whatever this user's umask is.
void open_to_others(const fs::path& runs_dir, const PinnedFolder& marks, const fs::path& mark) {
  std::error_code not_mine;  // who made the folder of the marks did so
  fs::permissions(marks.path(), fs::status(runs_dir, not_mine).permissions(), not_mine);
  ::fchmod(open_own_file(mark, O_RDONLY).get(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

}  // namespace

std::vector<NeededCheckpoint> needed_checkpoints(const RunFolder& run) {
  if (path_exists(run.done_file())) return {};
  return named_checkpoints(run);
}

std::vector<NeededCheckpoint> needed_checkpoints(const fs::path& runs_dir) {
  std::vector<NeededCheckpoint> all = marked_checkpoints(runs_dir);
  for (const RunFolder& run : list_runs(runs_dir)) {
    const std::vector<NeededCheckpoint> needed = needed_checkpoints(run);
    all.insert(all.end(), needed.begin(), needed.end());
  }
  return all;
}

void mark_needed(const RunFolder& run) {
  std::map<fs::path, std::string> checkpoints;  // by the runs folder
  for (const NeededCheckpoint& needed : needed_checkpoints(run)) {
    // A run of others may name any place: only one with that checkpoint gets a mark.
    if (!needed.origin().has_record() || !path_exists(needed.checkpoint)) continue;
    const fs::path runs_dir = needed.origin().path().parent_path();
    const bool is_seen = is_same_path(runs_dir, run.path().parent_path()) && !is_hidden(run);
    if (is_seen || !can_write(runs_dir)) continue;
    checkpoints[runs_dir] +=
        "\n" + needed.origin().id() + "/" + needed.checkpoint.filename().string();
  }
  for (const auto& [runs_dir, lines] : checkpoints) {
    try {
      const std::string begin = mark_begin(path_of(run), made_folder_id(run.path().parent_path()));
      make_own_folders(runs_dir, marks_name);
      const PinnedFolder marks(runs_dir, marks_name);
      const fs::path own = marks.path() / hash_hex(begin);
      write_file_atomic(own, begin + lines);
      open_to_others(runs_dir, marks, own);
      for_each_mark(marks, [](const Mark& mark, const fs::path& file) {
        if (!is_of_another_folder(mark) && path_exists(mark.run.done_file())) remove_tree(file);
      });
    } catch (const Error&) {
      // It is full, or was moved away this moment.
    }
  }
}

void remove_marks(const RunFolder& run) {
  for (const NeededCheckpoint& named : named_checkpoints(run)) {
    try {
      const PinnedFolder marks(named.origin().path().parent_path(), marks_name);
      const std::string id = folder_id(run.path().parent_path());
      const fs::path own = marks.path() / hash_hex(mark_begin(path_of(run), id));
      if (read_mark(own)) remove_tree(own);
    } catch (const Error&) {
      // There is none, or it may not be removed here.
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
