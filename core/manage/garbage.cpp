#include "core/manage/garbage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/config/experiment.h"
#include "core/data/rows/token_cache.h"
#include "core/manage/run_edits.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/queue/owners.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/messages.h"

namespace forge::manage {
namespace {

constexpr double day = 86400;

/// Seconds since 1970 of the last change to a file, or to the names in a folder.
double changed(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 1e18;  // it is gone: never old enough
  return double(status.st_mtim.tv_sec);
}

std::string days_text(double seconds) {
  const long long days = std::llround(std::floor(seconds / day));
  return days == 1 ? "1 day" : std::to_string(days) + " days";
}

/// What is on its way in or out, or a store that is being rebuilt. Only files are named after what
/// they become: a folder "….tmp-1234" is a run of such a name, or the user's own.
bool is_aside(const fs::path& path) {
  const std::string name = path.filename().string();
  if (starts_with(name, aside_prefix) || starts_with(name, ".reindex-")) return true;
  return is_aside_name(name) && fs::is_regular_file(fs::symlink_status(path));
}

/// The number of what stands there, a link itself; 0 for nothing.
uint64_t inode_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

bool is_link(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_symlink(path, unreadable);
}

/// Whether this user is kept from something in a folder: then nobody knows whether it is whole.
bool holds_closed(const fs::path& folder) {
  if (queue::is_closed(folder, R_OK | X_OK)) return true;
  const std::vector<fs::path> entries = folder_entries(folder);
  return std::any_of(entries.begin(), entries.end(), [&](const fs::path& entry) {
    return queue::is_closed(entry, R_OK);
  });
}

class GarbageFinder {
 public:
  GarbageFinder(const fs::path& runs_dir, const GarbageOptions& options)
      : runs_dir_(runs_dir), options_(options) {}

  GarbageSearch run(const CountProgress& progress) {
    look_at_trash();
    add_leftovers(runs_dir_, "");
    const fs::path queue = runs_dir_ / ".queue";
    if (!is_link(queue) && !is_link(queue / "entries")) add_leftovers(queue / "entries", "");
    const std::vector<run::RunFolder> folders = run::list_runs(runs_dir_);
    for (size_t i = 0; i < folders.size(); ++i) {
      try {
        look_at_run(folders[i]);
      } catch (const Error& problem) {
        found_.left_out.push_back(folders[i].id() + ": " + problem.message());
      }
      if (progress) progress(i + 1, folders.size());
    }
    if (!options_.cache_dir.empty()) look_at_cache(folders);
    return std::move(found_);
  }

 private:
  void add(GarbageKind kind,
           const fs::path& path,
           const std::string& run,
           const std::string& reason) {
    found_.garbage.push_back({kind, path, tree_bytes(path), run, reason, inode_of(path)});
  }

  void look_at_trash() {
    require_own_folder(run::trash_folder(runs_dir_));
    for (const fs::path& removal : folder_entries(run::trash_folder(runs_dir_))) {
      if (is_link(removal)) continue;
      const fs::path record = removal / "removed.json";
      const double age = options_.now - changed(fs::exists(record) ? record : removal);
      if (age < options_.days * day) continue;
      // Another collector was killed here: the removal has lost its name already.
      if (is_aside(removal)) {
        add(GarbageKind::leftover, removal, "", days_text(age) + " old");
        continue;
      }
      for (const fs::path& run : folder_entries(removal)) {
        if (run.filename() != "removed.json")
          add(GarbageKind::removed_run, run, "", "removed " + days_text(age) + " ago");
      }
    }
  }

  void add_leftovers(const fs::path& folder, const std::string& run) {
    for (const fs::path& entry : folder_entries(folder)) {
      const double age = options_.now - changed(entry);
      if (is_aside(entry) && age >= day)
        add(GarbageKind::leftover, entry, run, "broken off " + days_text(age) + " ago");
    }
  }

  void look_at_run(const run::RunFolder& folder) {
    // What a link leads to lies elsewhere and is not the runs folder's to delete.
    if (is_link(folder.path()) || is_link(folder.checkpoints())) return;
    if (folder.is_running() || queue::is_queued(runs_dir_, folder.id())) return;
    add_leftovers(folder.path(), folder.id());
    add_leftovers(folder.checkpoints(), folder.id());
    bool is_sound = true;
    for (const fs::path& checkpoint : weights::list_checkpoints(folder.checkpoints())) {
      if (!is_link(checkpoint)) is_sound = look_at_checkpoint(checkpoint, folder.id()) && is_sound;
    }
    if (folder.state() != run::RunState::completed) return;
    const std::optional<weights::Retention> retention = retention_of(folder);
    if (!retention || !is_sound) return;  // one round for each
    for (const fs::path& checkpoint :
         weights::surplus_checkpoints(folder.checkpoints(), *retention)) {
      if (is_link(checkpoint)) continue;
      add(GarbageKind::surplus_checkpoint,
          checkpoint,
          folder.id(),
          "the run is asked to keep " + std::to_string(retention->newest) +
              (retention->best ? " and the best" : ""));
    }
  }

  /// Whether a run can resume from it.
  bool look_at_checkpoint(const fs::path& checkpoint, const std::string& run) {
    using weights::FileCheck;
    const FileCheck check = options_.read_all ? FileCheck::content : FileCheck::size;
    try {
      weights::read_checkpoint_state(checkpoint, check);
      return true;
    } catch (const Error& problem) {
      if (holds_closed(checkpoint)) return false;
      if (is_unreadable(problem)) {
        found_.left_out.push_back(run + ": " + problem.message());
        return false;
      }
      const std::optional<int64_t> step = weights::misnamed_step(checkpoint, check);
      if (step) {
        add(GarbageKind::misnamed_checkpoint,
            checkpoint,
            run,
            "whole, of step " + std::to_string(*step) + ": it is used under the name " +
                weights::checkpoint_name(*step));
      } else {
        add(GarbageKind::damaged_checkpoint, checkpoint, run, problem.message());
      }
      return false;
    }
  }

  /// What the run was asked to keep when it was last begun.
  std::optional<weights::Retention> retention_of(const run::RunFolder& folder) const {
    try {
      const bool requested = fs::exists(folder.request_file());
      const nlohmann::json experiment =
          requested ? run::read_request(folder).experiment : folder.config();
      const config::TrainConfig train = config::experiment_from_json(experiment).train;
      return weights::Retention{
          train.keep_checkpoints, train.keep_best, [this](const fs::path& checkpoint) {
            return run::is_needed(checkpoint, runs_dir_);
          }};
    } catch (const std::exception&) {
      return std::nullopt;  // an unreadable request keeps all checkpoints
    }
  }

  /// "text-0c6e…/byte_level_bpe-2000-v1" of a folder of prepared data, wherever the cache is: it
  /// may have been moved, or be named through a link.
  static fs::path names_in_cache(const fs::path& folder) {
    return folder.parent_path().filename() / folder.filename();
  }

  /// Prepared data that no run here still has to be trained with, and that is not new.
  void look_at_cache(const std::vector<run::RunFolder>& folders) {
    std::set<fs::path> needed;  // the two last names, which tell a text and a tokenizer
    for (const run::RunFolder& folder : folders) {
      if (folder.state() == run::RunState::completed) continue;
      try {
        const worker::Request request = run::read_request(folder);
        for (const auto* sources :
             {&request.train_tokens, &request.evaluation_tokens, &request.validation_tokens}) {
          for (const worker::TokenSource& source : *sources)
            needed.insert(names_in_cache(fs::path(source.path).parent_path()));
        }
      } catch (const Error&) {
        // It is prepared anew when that run is begun.
      }
    }
    const std::vector<data::PreparedFolder> all = data::list_prepared(options_.cache_dir);
    std::set<std::string> needed_names;
    for (const data::PreparedFolder& prepared : all)
      if (needed.count(names_in_cache(prepared.folder)) > 0) needed_names.insert(prepared.name);
    // A mixture's folder has the tokenizer of its parts.
    const auto is_needed = [&](const data::PreparedFolder& prepared) {
      return needed_names.count(prepared.name) > 0 ||
             std::any_of(prepared.parts.begin(), prepared.parts.end(), [&](const auto& part) {
               return needed_names.count(part.name) > 0;
             });
    };
    for (const data::PreparedFolder& prepared : all) {
      const double age = options_.now - double(prepared.modified);
      if (age < options_.days * day || is_needed(prepared)) continue;
      if (prepared.has_other_files) continue;  // somebody else's
      found_.garbage.push_back({GarbageKind::prepared_data,
                                prepared.folder,
                                prepared.bytes,
                                "",
                                "not changed for " + days_text(age),
                                inode_of(prepared.folder)});
    }
  }

  const fs::path& runs_dir_;
  const GarbageOptions& options_;
  GarbageSearch found_;
};

/// Takes its name away first: what is half removed must not look like something whole. Returns the
/// name to remove, "" where it is gone already.
fs::path move_aside(const fs::path& path) {
  if (is_aside(path)) return path;
  const fs::path aside = aside_path(path, "gc");
  rename_path(path, aside);
  return aside;
}

/// The folder that it lies in, held open. Throws Error where a link has come into its place, or in
/// that of one above it in the runs folder, since it was found.
PinnedFolder pinned_parent(const fs::path& runs_dir, const Garbage& garbage) {
  const fs::path parent = garbage.path.parent_path();
  const fs::path inner = parent.lexically_relative(runs_dir);
  const bool is_inner = garbage.kind != GarbageKind::prepared_data && inner != ".";
  return is_inner ? PinnedFolder(runs_dir, inner) : PinnedFolder(parent, "");
}

/// Throws Error where it is in use, or is not any more what was found.
/// A disk may have failed when it was looked at.
void require_damaged(const fs::path& checkpoint) {
  try {
    weights::read_checkpoint_state(checkpoint);
  } catch (const Error& problem) {
    if (!is_unreadable(problem)) return;
    throw Error("it cannot be read by now: " + problem.message(), problem.exit_code());
  }
  throw Error("it can be read by now, and is whole", ExitCode::failed);
}

void free_one(const fs::path& runs_dir, const Garbage& garbage) {
  const PinnedFolder parent = pinned_parent(runs_dir, garbage);
  const fs::path path = parent.path() / garbage.path.filename();
  fs::path aside;
  const auto take_name_away = [&] {
    if (inode_of(path) != garbage.inode) throw Error("something else is there by now");
    aside = move_aside(path);
  };
  if (garbage.kind == GarbageKind::prepared_data) {
    // A process that prepares it holds the lock; one that reads it has mapped it.
    const auto lock = try_lock_signed(path / "lock");
    if (!lock || !lock->is_at(path / "lock")) throw Error("is being prepared");
    take_name_away();
  } else {
    const queue::Queue queue(runs_dir);
    std::optional<FileLock> lock;
    if (!garbage.run.empty())
      lock = lock_idle_run(queue, run::RunFolder(runs_dir / garbage.run), "nothing is freed");
    if (garbage.kind == GarbageKind::surplus_checkpoint && run::is_needed(path, runs_dir))
      throw Error("an unfinished run begins from it");
    if (garbage.kind == GarbageKind::damaged_checkpoint) require_damaged(path);
    take_name_away();
  }
  remove_tree(aside);
}

}  // namespace

const std::string& name_of(GarbageKind kind) {
  static const std::string names[] = {"removed_run",
                                      "surplus_checkpoint",
                                      "damaged_checkpoint",
                                      "misnamed_checkpoint",
                                      "leftover",
                                      "prepared_data"};
  return names[static_cast<size_t>(kind)];
}

nlohmann::json to_json(const Garbage& garbage) {
  return {{"kind", name_of(garbage.kind)},
          {"path", garbage.path.string()},
          {"bytes", garbage.bytes},
          {"run", garbage.run},
          {"reason", garbage.reason}};
}

GarbageSearch find_garbage(const fs::path& runs_dir,
                           const GarbageOptions& options,
                           const CountProgress& progress) {
  return GarbageFinder(runs_dir, options).run(progress);
}

Freed free_garbage(const fs::path& runs_dir,
                   const std::vector<Garbage>& garbage,
                   const CountProgress& progress) {
  Freed freed;
  for (size_t i = 0; i < garbage.size(); ++i) {
    const Garbage& item = garbage[i];
    if (progress) progress(i, garbage.size());
    try {
      std::error_code gone;
      if (!fs::exists(fs::symlink_status(item.path, gone))) continue;
      free_one(runs_dir, item);
    } catch (const Error& problem) {
      std::error_code gone;
      if (!fs::exists(fs::symlink_status(item.path, gone))) continue;  // 'forge runs undo' took it
      freed.kept.push_back(item.path.string() + ": " + problem.message());
      continue;
    }
    ++freed.count;
    freed.bytes += item.bytes;
    if (item.kind != GarbageKind::removed_run) continue;
    // removed.json goes with the last run of its removal.
    const fs::path removal = item.path.parent_path();
    const std::vector<fs::path> rest = folder_entries(removal);
    std::error_code ignored;
    if (rest.empty() || (rest.size() == 1 && rest[0].filename() == "removed.json"))
      remove_tree(removal, ignored);
  }
  return freed;
}

}  // namespace forge::manage
