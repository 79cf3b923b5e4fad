#include "core/manage/run_edits.h"

#include <sys/stat.h>
#include <algorithm>
#include <optional>
#include <tuple>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/run/queue/queue.h"
#include "core/worker/json_fields.h"

namespace forge::manage {

FileLock lock_idle_run(const queue::Queue& queue,
                       const run::RunFolder& folder,
                       const std::string& consequence) {
  std::string state = "is running";
  // Another process may hold the lock for a moment, only to see whether it is held.
  while (!folder.is_running()) {
    if (queue.find(folder.id())) {
      state = "waits in the queue";
      break;
    }
    if (auto lock = FileLock::try_acquire(folder.lock_file())) return std::move(*lock);
  }
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

run::Annotations edit_annotations(const run::RunFolder& folder,
                                  const std::function<void(run::Annotations&)>& change) {
  const queue::Queue one_at_a_time(folder.path().parent_path());
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

/// A folder of its own for a removal at this second.
fs::path new_folder(const fs::path& runs_dir) {
  const std::string time = compact_timestamp(utc_timestamp());
  const fs::path trash = trash_folder(runs_dir);
  std::string name = time;
  for (int number = 2; fs::exists(fs::symlink_status(trash / name)); ++number)
    name = time + "-" + std::to_string(number);
  make_own_folders(runs_dir, trash.filename() / name);
  return trash / name;
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
  const bool here = fs::equivalent(folder.path().parent_path(), runs_dir, error) && !error &&
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
  std::vector<RemovedRun> there;
  for (const run::RunFolder& run : run::list_runs(folder)) {
    const auto known = std::find_if(removal.runs.begin(),
                                    removal.runs.end(),
                                    [&](const RemovedRun& said) { return said.run == run.id(); });
    there.push_back(known != removal.runs.end() ? *known : RemovedRun{run.id(), "", "", 0});
  }
  removal.runs = std::move(there);
  return removal;
}

}  // namespace

fs::path trash_folder(const fs::path& runs_dir) { return runs_dir / ".trash"; }

Removal remove_runs(const fs::path& runs_dir,
                    const std::vector<run::RunFolder>& runs,
                    const std::string& command) {
  const queue::Queue queue(runs_dir);
  for (const run::RunFolder& run : runs) {
    require_here(runs_dir, run);
    lock_idle_run(queue, run, "nothing was removed");
  }
  Removal removal;
  for (const Removal& before : list_removals(runs_dir))
    removal.sequence = std::max(removal.sequence, before.sequence);
  ++removal.sequence;
  removal.removed = utc_timestamp();
  removal.command = command;
  for (const run::RunFolder& run : runs) removal.runs.push_back(describe(run));
  const fs::path folder = new_folder(runs_dir);
  removal.name = folder.filename().string();
  write_file_atomic(record_file(folder), json_text(to_json(removal), 2) + "\n");
  std::vector<Move> moves;
  try {
    for (const run::RunFolder& run : runs) {
      lock_idle_run(queue, run, "nothing was removed");  // before the first one is moved
      moves.push_back({run.path(), folder / run.id()});
    }
    move_all(moves, [&](size_t i) -> std::optional<FileLock> {
      return lock_idle_run(queue, runs[i], "nothing was removed");
    });
  } catch (const Error&) {
    if (folder_entries(folder).size() == 1) remove_tree(folder);  // only the record is in it
    throw;
  }
  sync_path(folder);
  sync_path(runs_dir);
  return removal;
}

std::vector<Removal> list_removals(const fs::path& runs_dir) {
  std::vector<Removal> removals;
  require_own_folder(trash_folder(runs_dir));
  for (const fs::path& entry : folder_entries(trash_folder(runs_dir))) {
    if (!run::is_run_name(entry.filename().string()) || fs::is_symlink(entry)) continue;
    Removal removal = read_removal(entry);
    if (!removal.runs.empty()) removals.push_back(std::move(removal));
  }
  std::sort(removals.begin(), removals.end(), [](const Removal& a, const Removal& b) {
    return std::tie(a.sequence, a.removed, a.name) > std::tie(b.sequence, b.removed, b.name);
  });
  return removals;
}

Removal undo_removal(const fs::path& runs_dir, const std::string& name) {
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
  const fs::path folder = trash_folder(runs_dir) / found->name;
  for (const RemovedRun& run : found->runs) {
    if (fs::exists(runs_dir / run.run)) {
      throw Error("there is a run '" + run.run + "' again: nothing was brought back",
                  "remove that one, or look at the old one in " + shown_path(folder / run.run),
                  ExitCode::failed);
    }
  }
  std::vector<Move> moves;
  for (const RemovedRun& run : found->runs) moves.push_back({folder / run.run, runs_dir / run.run});
  move_all(moves, [](size_t) { return std::nullopt; });
  sync_path(runs_dir);
  remove_tree(record_file(folder));
  std::error_code not_empty;
  fs::remove(folder, not_empty);
  return *found;
}

}  // namespace forge::manage
