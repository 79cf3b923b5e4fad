#include "core/manage/run_edits.h"

#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/run/annotations.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/queue/queue.h"
#include "core/run/runs_dir.h"
#include "core/worker/json_fields.h"

namespace forge::manage {
namespace {

/// Throws Error for a run that has gone since it was found.
void require_there(const run::RunFolder& folder) {
  if (path_exists(folder.path())) return;
  throw Error("run '" + folder.id() + "' is gone: another command removed it meanwhile",
              "'forge runs undo --list' lists removed runs");
}

}  // namespace

FileLock lock_idle_run(const queue::Queue& queue,
                       const run::RunFolder& folder,
                       const std::string& consequence) {
  require_there(folder);
  require_own_folder(folder.path());
  std::string state = "is running";
  if (!folder.is_running() && queue.may_wait(folder.id()))
    state = "waits in the queue";
  else if (auto lock = folder.try_lock())
    return std::move(*lock);
  throw Error("run '" + folder.id() + "' " + state + ": " + consequence,
              quoted_command("forge runs stop " + shell_quoted(folder.id())) + " stops it",
              ExitCode::failed);
}

int64_t tree_bytes(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 0;
  if (!S_ISDIR(status.st_mode)) return status.st_size;
  int64_t bytes = 0;
  for (const fs::path& entry : folder_entries(path)) bytes += tree_bytes(entry);
  return bytes;
}

void require_not_removed(const run::RunFolder& folder) {
  if (folder.has_record()) return;
  throw Error("run '" + folder.id() + "' was removed meanwhile",
              "'forge runs undo' brings back what 'forge runs rm' removed",
              ExitCode::failed);
}

run::Annotations edit_annotations(const run::RunFolder& folder,
                                  const std::function<void(run::Annotations&)>& change) {
  const queue::Queue one_at_a_time(folder.path().parent_path());
  require_not_removed(folder);
  run::Annotations remarks = run::read_annotations(folder);
  change(remarks);
  run::write_annotations(folder, remarks);
  return run::read_annotations(folder);
}

template <class Visitor>
void fields(Visitor& visit, RemovedRun& run) {
  visit.field("run", run.run);
  visit.optional("config", run.config);
  visit.optional("status", run.status);
  visit.optional("bytes", run.bytes);
}

template <class Visitor>
void fields(Visitor& visit, Removal& removal) {
  visit.optional("name", removal.name);
  visit.optional("sequence", removal.sequence);
  visit.optional("removed", removal.removed);
  visit.optional("command", removal.command);
  visit.optional("runs", removal.runs);
}

nlohmann::json to_json(const Removal& removal) { return worker::write_fields(removal); }

namespace {

fs::path record_file(const fs::path& folder) { return folder / "removed.json"; }

/// The folder of a removal, held open: what is moved there, or back, is moved nowhere else.
PinnedFolder pinned_removal(const fs::path& runs_dir, const std::string& name) {
  return {runs_dir, run::trash_folder("") / name};
}

/// A folder of its own for a removal at this second.
fs::path new_folder(const fs::path& runs_dir) {
  const std::string time = compact_timestamp(utc_timestamp());
  const fs::path trash = run::trash_folder(runs_dir);
  std::string name = time;
  for (int number = 2; fs::exists(fs::symlink_status(trash / name)); ++number)
    name = time + "-" + std::to_string(number);
  make_own_folders(runs_dir, trash.filename() / name);
  return trash / name;
}

/// The sequence in the name of a removal without a record; 0 for none.
int64_t sequence_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  const std::string digits = dot == std::string::npos ? "" : name.substr(dot + 1);
  constexpr size_t most_digits = 18;
  const bool is_number = !digits.empty() && digits.size() <= most_digits &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(digits) : 0;
}

/// Moving runs to the trash takes no room but for the folder that they are moved to.
[[noreturn]] void refuse_without_room(const Error& problem) {
  if (problem.exit_code() != ExitCode::storage) throw problem;
  throw Error(problem.message() + ": nothing was removed",
              "'forge gc --older-than 0' frees runs that were removed before, and surplus "
              "checkpoints; removing runs takes almost no room, and then works",
              ExitCode::storage);
}

/// Leaves the record of a removal in its folder. On a full disk the name alone tells its place in
/// the order of removals: the runs can be brought back without a record. Returns the folder.
fs::path write_record(const fs::path& folder, const Removal& removal) {
  try {
    write_file_atomic(record_file(folder), json_text(to_json(removal), 2) + "\n");
    return folder;
  } catch (const Error& problem) {
    if (problem.exit_code() != ExitCode::storage) throw;
  }
  const fs::path named = folder.string() + "." + std::to_string(removal.sequence);
  rename_path(folder, named);
  return named;
}

/// Removes the folder of a removal that has moved nothing, or could not move everything back.
void remove_unused(const fs::path& folder) {
  const std::vector<fs::path> entries = folder_entries(folder);
  const bool holds_runs = std::any_of(entries.begin(), entries.end(), [&](const fs::path& entry) {
    return entry != record_file(folder);
  });
  if (!holds_runs) remove_tree(folder);
}

/// What was renamed is renamed, whether the disk has already taken it or not.
void sync_if_possible(const fs::path& folder) {
  try {
    sync_path(folder);
  } catch (const Error& problem) {
    if (problem.exit_code() != ExitCode::storage) throw;
  }
}

RemovedRun describe(const run::RunFolder& folder) {
  RemovedRun removed;
  removed.run = folder.id();
  removed.bytes = tree_bytes(folder.path());
  try {
    removed.status = run::name_of(folder.state());
    removed.config = folder.record().config;
  } catch (const Error&) {
    // A damaged run is as good as any other to be removed.
  }
  return removed;
}

void require_here(const fs::path& runs_dir, const run::RunFolder& folder) {
  std::error_code error;
  const bool here = is_same_path(folder.path().parent_path(), runs_dir) &&
                    run::is_run_name(folder.id()) && !fs::is_symlink(folder.path(), error);
  if (here) return;
  throw Error("'" + shown_path(folder.path()) + "' is no run of " + shown_path(runs_dir),
              "FORGE_RUNS_DIR names another folder of runs");
}

struct Move {
  fs::path from, to;
};

/// All folders, or none: where one cannot be moved, those before it are moved back. Throws Error,
/// which names those that could not be moved back either. `lock(i)` is held while one is moved: ten
/// thousand at once would be more than a process may open.
template <class Lock>
void move_all(const std::vector<Move>& moves, const Lock& lock) {
  for (size_t done = 0; done < moves.size(); ++done) {
    try {
      const std::optional<FileLock> held = lock(done);
      rename_path(moves[done].from, moves[done].to);
    } catch (const Error& problem) {
      std::vector<std::string> astray;
      for (size_t i = done; i-- > 0;) {
        std::error_code error;
        fs::rename(moves[i].to, moves[i].from, error);
        if (error) astray.push_back("'" + shown_path(moves[i].to) + "'");
      }
      if (astray.empty()) throw Error(problem.message(), "nothing was moved", ExitCode::failed);
      throw Error(
          problem.message() + "; " + join(astray, ", ") + " could not be moved back",
          "move what was not moved back to " + shown_path(moves[0].from.parent_path()) + " by hand",
          ExitCode::failed);
    }
  }
}

Removal read_removal(const fs::path& folder) {
  Removal removal;
  try {
    removal = worker::read_fields<Removal>(read_json_file(record_file(folder)), "a removal");
  } catch (const std::exception&) {
    // The runs can be brought back without the record.
  }
  removal.name = folder.filename().string();
  removal.sequence = std::max(removal.sequence, sequence_of(removal.name));
  std::map<std::string, RemovedRun> said;
  for (RemovedRun& run : removal.runs) said.emplace(run.run, run);
  std::vector<RemovedRun> there;
  for (const run::RunFolder& run : run::list_runs(folder)) {
    const auto known = said.find(run.id());
    there.push_back(known != said.end() ? known->second : describe(run));
  }
  removal.runs = std::move(there);
  return removal;
}

}  // namespace

namespace {

/// The id of a run, or the folder of one of another runs folder.
std::string named(const run::RunFolder& run, const fs::path& runs_dir) {
  const bool is_here = is_same_path(run.path().parent_path(), runs_dir);
  return is_here ? run.id() : shown_path(run.path());
}

/// Throws Error where a run that is none of these has still to begin from one of them.
void require_unneeded(const fs::path& runs_dir, const std::vector<run::RunFolder>& runs) {
  const auto is_removed = [&](const run::RunFolder& folder) {
    return std::any_of(runs.begin(), runs.end(), [&](const run::RunFolder& run) {
      return run.id() == folder.id() && is_same_path(run.path(), folder.path());
    });
  };
  for (const run::NeededCheckpoint& needed : run::needed_checkpoints(runs_dir)) {
    if (is_removed(needed.run) || !is_removed(needed.origin()) || !needed.is_needed()) continue;
    if (!needed.mark.empty())
      throw Error("run '" + named(needed.run, runs_dir) + "', which cannot be looked at now, may " +
                      "start from the weights of run '" + needed.origin().id() +
                      "': nothing was removed",
                  "'" + shown_path(needed.mark) + "' says so: remove that file if the run is " +
                      "gone, or let it be completed first; --force removes the run all the same",
                  ExitCode::failed);
    throw Error("run '" + named(needed.run, runs_dir) + "' (" + run::name_of(needed.run.state()) +
                    ") starts from the weights of run '" + needed.origin().id() +
                    "': nothing was removed",
                "remove both, or let it be completed first; --force removes the run all the same",
                ExitCode::failed);
  }
}

Removal move_to_trash(const fs::path& runs_dir,
                      const std::vector<run::RunFolder>& runs,
                      const std::string& command,
                      const CountProgress& progress,
                      bool even_if_needed) {
  const queue::Queue queue(runs_dir);
  for (const run::RunFolder& run : runs) {
    require_there(run);
    require_here(runs_dir, run);
    lock_idle_run(queue, run, "nothing was removed");
  }
  if (!even_if_needed) require_unneeded(runs_dir, runs);
  Removal removal;
  for (const Removal& before : list_removals(runs_dir))
    removal.sequence = std::max(removal.sequence, before.sequence);
  ++removal.sequence;
  removal.removed = utc_timestamp();
  removal.command = command;
  for (const run::RunFolder& run : runs) {
    removal.runs.push_back(describe(run));
    if (progress) progress(removal.runs.size(), runs.size());
  }
  fs::path folder = new_folder(runs_dir);
  removal.name = folder.filename().string();
  std::vector<Move> moves;
  try {
    folder = write_record(folder, removal);
    removal.name = folder.filename().string();
    const PinnedFolder held = pinned_removal(runs_dir, removal.name);
    for (const run::RunFolder& run : runs) {
      lock_idle_run(queue, run, "nothing was removed");  // before the first one is moved
      moves.push_back({run.path(), held.path() / run.id()});
    }
    move_all(moves, [&](size_t i) -> std::optional<FileLock> {
      if (progress) progress(i, runs.size());
      return lock_idle_run(queue, runs[i], "nothing was removed");
    });
  } catch (const Error&) {
    remove_unused(folder);
    throw;
  }
  sync_if_possible(folder);
  sync_if_possible(runs_dir);
  return removal;
}

}  // namespace

Removal remove_runs(const fs::path& runs_dir,
                    const std::vector<run::RunFolder>& runs,
                    const std::string& command,
                    const CountProgress& progress,
                    bool even_if_needed) {
  try {
    return move_to_trash(runs_dir, runs, command, progress, even_if_needed);
  } catch (const Error& problem) {
    refuse_without_room(problem);
  }
}

std::vector<Removal> list_removals(const fs::path& runs_dir) {
  std::vector<Removal> removals;
  require_own_folder(run::trash_folder(runs_dir));
  for (const fs::path& entry : folder_entries(run::trash_folder(runs_dir))) {
    if (!run::is_run_name(entry.filename().string()) || fs::is_symlink(entry)) continue;
    Removal removal = read_removal(entry);
    if (!removal.runs.empty()) removals.push_back(std::move(removal));
  }
  std::sort(removals.begin(), removals.end(), [](const Removal& a, const Removal& b) {
    return std::tie(a.sequence, a.removed, a.name) > std::tie(b.sequence, b.removed, b.name);
  });
  return removals;
}

Removal undo_removal(const fs::path& runs_dir,
                     const std::string& name,
                     const CountProgress& progress) {
  if (!is_folder(runs_dir))
    throw Error("there is no removed run to bring back: there is no runs folder '" +
                    shown_path(runs_dir) + "'",
                "FORGE_RUNS_DIR names another one",
                ExitCode::failed);
  const queue::Queue queue(runs_dir);  // one at a time
  std::vector<Removal> removals = list_removals(runs_dir);
  if (removals.empty())
    throw Error("there is no removed run to bring back in " + shown_path(runs_dir),
                "'forge gc' frees removed runs after some days",
                ExitCode::failed);
  const auto found = std::find_if(removals.begin(), removals.end(), [&](const Removal& removal) {
    return name.empty() || removal.name == name;
  });
  if (found == removals.end()) {
    throw Error("there is no removal '" + name + "'",
                "there are " + join(texts_of(removals, &Removal::name), ", "));
  }
  const fs::path folder = run::trash_folder(runs_dir) / found->name;
  for (const RemovedRun& run : found->runs) {
    if (fs::exists(runs_dir / run.run)) {
      throw Error("there is a run '" + run.run + "' again: nothing was brought back",
                  "remove that one, or look at the old one in " + shown_path(folder / run.run),
                  ExitCode::failed);
    }
  }
  const PinnedFolder held = pinned_removal(runs_dir, found->name);
  std::vector<Move> moves;
  for (const RemovedRun& run : found->runs)
    moves.push_back({held.path() / run.run, runs_dir / run.run});
  move_all(moves, [&](size_t i) -> std::optional<FileLock> {
    if (progress) progress(i, moves.size());
    return std::nullopt;
  });
  sync_if_possible(runs_dir);
  remove_tree(record_file(held.path()));
  std::error_code not_empty;
  fs::remove(folder, not_empty);
  return *found;
}

}  // namespace forge::manage
