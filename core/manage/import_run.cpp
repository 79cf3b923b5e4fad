#include "core/manage/pack.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/archive.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/pinned_folder.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/manage/run_edits.h"
#include "core/model/weights/checkpoint.h"
#include "core/project/workspace.h"
#include "core/project/workspace_id.h"
#include "core/run/annotations.h"
#include "core/run/event_log.h"
#include "core/run/moved_files.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/numbered_runs.h"
#include "core/run/open_model.h"
#include "core/run/plan.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

namespace forge::manage {
namespace {

using Json = nlohmann::json;
using OnBytes = std::function<void(int64_t)>;

/// It has a line for each file of a run.
constexpr uintmax_t max_manifest_bytes = uintmax_t{32} << 20;

Error refused(const std::string& what, const std::string& hint = "") {
  return Error(what, hint, ExitCode::failed);
}

bool is_plain_file(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(fs::symlink_status(path, unreadable));
}

Json json_of(const fs::path& file) {
  const Json json = read_json_file(file, max_manifest_bytes);
  if (!json.is_object()) throw refused("'" + shown_path(file) + "' is no JSON object");
  return json;
}

/// Every file below a folder, by its path from there.
void list_files(const fs::path& folder, const std::string& below, std::vector<std::string>& names) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = below + entry.path().filename().string();
    if (fs::is_directory(entry.symlink_status())) {
      list_files(entry.path(), name + "/", names);
    } else {
      names.push_back(name);
    }
  }
}

double listed_bytes(const Json& files) {
  double sum = 0;
  for (const auto& [name, entry] : files.items()) {
    const Json bytes = entry.is_object() ? entry.value("bytes", Json()) : Json();
    if (bytes.is_number()) sum += bytes.get<double>();
  }
  return sum;
}

/// The same for a progress: a pack may say anything.
int64_t progress_bytes(double listed) {
  return static_cast<int64_t>(std::clamp(listed, 0.0, double(ExtractLimits().bytes)));
}

/// Throws where a file of an unpacked pack is not what pack.json says.
void check_pack(const fs::path& folder, const CountProgress& progress) {
  const Json manifest = json_of(folder / pack_manifest);
  if (manifest.value("pack", Json()) != pack_version)
    throw refused("the pack is of another version of forge",
                  "this one reads version " + std::to_string(pack_version));
  const Json files = manifest.value("files", Json::object());
  if (!files.is_object()) throw refused("'files' of pack.json is no object");
  std::vector<std::string> there;
  list_files(folder, "", there);
  for (const std::string& name : there) {
    if (name != pack_manifest && !files.contains(name))
      throw refused("the pack holds '" + name + "', of which pack.json does not know");
  }
  const OnBytes on_bytes = count_bytes(progress, progress_bytes(listed_bytes(files)));
  for (const auto& [name, entry] : files.items()) {
    require_inner_path(name);
    const fs::path file = folder / name;
    if (!is_plain_file(file)) throw refused("the pack lacks '" + name + "'");
    const bool same = entry.is_object() && entry.value("bytes", Json()) == fs::file_size(file) &&
                      entry.value("hash", Json()) == hash_file(file, on_bytes);
    if (!same) throw refused("'" + name + "' of the pack is not what was packed");
  }
}

/// Throws Error where `what`, of so many bytes, has no room on the disk of the folder.
void require_space(const std::string& what, double needed, const fs::path& folder) {
  const auto available = double(fs::space(folder).available);
  if (needed <= available) return;
  throw Error("the disk is full: " + what + " needs " + human_bytes(needed) + ", and " +
                  human_bytes(available) + " are free in " + shown_path(folder),
              "make room, or let FORGE_RUNS_DIR name a folder on another disk",
              ExitCode::storage);
}

/// Unpacks only what pack.json lists, at the length that it says: what is refused was not written.
void unpack(const fs::path& pack, const fs::path& folder, const CountProgress& progress) {
  const std::string text =
      read_first_file(pack, pack_manifest, static_cast<int64_t>(max_manifest_bytes));
  if (text.empty()) throw refused("'" + shown_path(pack) + "' is no pack: it has no pack.json");
  const Json manifest = read_json_text(text);
  const Json files = manifest.is_object() ? manifest.value("files", Json()) : Json();
  if (!files.is_object()) throw refused("'files' of pack.json is no object");
  ExtractLimits limits;
  const double needed = listed_bytes(files);
  // More than the limit is no pack, which the extraction says.
  if (needed <= double(limits.bytes)) require_space("the pack", needed, folder.parent_path());
  limits.on_bytes = count_bytes(progress, progress_bytes(needed));
  limits.check = [&](const std::string& name, int64_t bytes) {
    if (name == pack_manifest) return;
    const auto entry = files.find(name);
    if (entry == files.end())
      throw Error("the pack holds '" + tables::printable(name) +
                  "', of which pack.json does not know");
    if (!entry->is_object() || entry->value("bytes", Json()) != bytes)
      throw Error("'" + tables::printable(name) + "' of the pack is not what was packed");
  };
  extract_archive(pack, folder, limits);
}

/// The run folder at the origin; a pack's is unpacked aside.
fs::path find_run_folder(const fs::path& origin,
                         const fs::path& aside,
                         const CountProgress& progress) {
  if (is_file(origin)) {
    if (!is_archive(origin))
      throw refused("'" + shown_path(origin) + "' is no pack", "'forge pack RUN' makes one");
    unpack(origin, aside, progress);
    check_pack(aside, progress);
    return aside / "run";
  }
  if (path_exists(origin / pack_manifest)) {
    check_pack(origin, progress);
    return origin / "run";
  }
  if (path_exists(origin / "run.json")) return origin;
  const bool model = path_exists(origin / "config.json");
  throw refused("'" + shown_path(origin) + "' is no run folder: it has no run.json",
                model ? "'forge import-hf' reads model folders of Hugging Face"
                      : "give the folder of one run, or a pack");
}

/// Throws where the files do not belong together.
run::RunRecord checked_record(const run::RunFolder& folder) {
  for (const auto& file : {folder.record_file(), folder.config_file()}) {
    if (!is_plain_file(file)) throw refused("'" + shown_path(file) + "' is missing");
  }
  run::RunRecord record = folder.record();
  if (!run::is_run_name(record.id))
    throw refused("'" + tables::printable(record.id.substr(0, 120)) + "' is no name for a run");
  if (!run::names_its_config(record))
    throw refused("'" + shown_path(folder.record_file()) + "' was changed: run '" + record.id +
                      "' is none of config '" + record.config + "'",
                  "ask for the run as it was packed");
  config::experiment_from_json(folder.config(record));
  // An imported model has none, and a run without one can still be looked at.
  if (fs::exists(fs::symlink_status(folder.request_file()))) run::read_request(folder);
  run::for_each_event(folder.events_file(), [](const run::StoredEvent&) {});
  if (!record.identity.tokenizer_fingerprint.empty() && is_plain_file(folder.tokenizer_file()))
    run::require_recorded_tokenizer(folder);
  folder.require_undamaged(folder.status());
  return record;
}

void copy_plain_file(const fs::path& from, const fs::path& to, const OnBytes& on_bytes) {
  constexpr size_t piece_bytes = size_t{4} << 20;
  const FileDescriptor source = open_regular_file(from);
  OutputFile copy(to, false);
  std::string piece(piece_bytes, '\0');
  while (true) {
    const ssize_t got = ::read(source.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read '" + from.string() + "'", errno);
    if (got == 0) return copy.finish();
    copy.write({piece.data(), static_cast<size_t>(got)});
    if (on_bytes) on_bytes(got);
  }
}

void copy_checkpoint(const fs::path& from, const fs::path& to, const OnBytes& on_bytes) {
  make_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (is_plain_file(entry.path()))
      copy_plain_file(entry.path(), to / entry.path().filename(), on_bytes);
  }
}

/// Of what copy_run copies. Holes of a file count: they are written.
double run_bytes(const run::RunFolder& run) {
  double sum = 0;
  const auto add = [&](const fs::path& file) {
    if (is_plain_file(file)) sum += double(fs::file_size(file));
  };
  for (const std::string& name : files_of_run(run)) add(run.path() / name);
  for (const fs::path& checkpoint : weights::list_checkpoints(run.checkpoints()))
    for (const auto& entry : fs::directory_iterator(checkpoint)) add(entry.path());
  return sum;
}

/// What somebody else hid is shown here, with their note and tags.
void restore_archived(const run::RunFolder& copy, std::vector<std::string>& notes) {
  try {
    run::Annotations remarks = run::read_annotations(copy);
    if (!remarks.archived) return;
    remarks.archived = false;
    run::write_annotations(copy, remarks);
    notes.push_back("the run was archived where it comes from; here it is listed");
  } catch (const Error&) {
    // Whoever reads the run is told of a damaged file.
  }
}

/// The run is to stand in the tables of the workspace that it comes to, as one that is known there
/// from now on. Where that has not its project, in those of any that has.
run::RunRecord arriving(run::RunRecord record, const fs::path& workspace) {
  const bool has_project =
      !workspace.empty() && project::is_project_folder(workspace / record.project);
  record.workspace = has_project ? workspace.string() : "";
  record.workspace_id = has_project ? project::made_workspace_id(workspace) : "";
  record.imported = utc_timestamp();
  return record;
}

/// Where it is to be: under the id that it has, or under another number of it where that is a run
/// of another config's, project's or workspace's, which no table shows as this one.
run::RunFolder place_of(const run::RunRecord& record, const fs::path& runs_dir) {
  const run::RunFolder named(runs_dir / record.id);
  const auto is_own = [&] {
    if (!named.has_record()) return true;
    const run::RunRecord here = named.record();
    return here.config == record.config &&
           run::is_of_project(named, here, record.workspace, record.project);
  };
  const bool is_anothers =
      !record.workspace.empty() && (run::is_closed_to_this_user(named) || !is_own());
  return is_anothers ? run::arriving_folder(record, runs_dir) : named;
}

void copy_run(const run::RunFolder& from,
              const run::RunFolder& to,
              std::vector<std::string>& notes,
              const CountProgress& progress) {
  const double needed = run_bytes(from);
  require_space("the run", needed, to.path().parent_path());
  const OnBytes on_bytes = count_bytes(progress, static_cast<int64_t>(needed));
  make_directories(to.path());
  for (const std::string& name : files_of_run(from))
    copy_plain_file(from.path() / name, to.path() / name, on_bytes);
  for (const fs::path& checkpoint : weights::list_checkpoints(from.checkpoints())) {
    const fs::path copy = to.checkpoints() / checkpoint.filename();
    copy_checkpoint(checkpoint, copy, on_bytes);
    try {
      weights::read_checkpoint_state(copy);
    } catch (const Error& problem) {
      notes.push_back("left out: " + problem.message());
      remove_tree(copy);
    }
  }
  restore_archived(to, notes);
  sync_tree(to.path());
}

/// Whether the run that is here is the one that is to come.
bool is_same(const run::RunRecord& here, const run::RunRecord& coming) {
  return run::is_same_identity(here.identity, coming.identity) && here.created == coming.created;
}

/// Files that say what a run is and what it found; the others may differ between copies of one run.
constexpr const char* result_files[] = {"config.json", "tokenizer.json", "events.jsonl"};

/// The first of these files that is not the same in both; "" for none.
std::string differing_file(const run::RunFolder& here, const run::RunFolder& coming) {
  const auto content_of = [](const fs::path& file) {
    return is_plain_file(file) ? hash_file(file) : std::string();
  };
  for (const char* name : result_files) {
    if (content_of(here.path() / name) != content_of(coming.path() / name)) return name;
  }
  return "";
}

/// Throws where the run that is here is not the one that is to come.
void require_same_run(const run::RunFolder& here,
                      const run::RunFolder& coming,
                      const run::RunRecord& record) {
  const std::string room =
      quoted_command("forge runs rm " + shell_quoted(here.id())) + " makes room, and can be undone";
  if (!fs::exists(here.record_file()) || !is_same(here.record(), record))
    throw refused(
        "there is another run '" + here.id() + "' in " + shown_path(here.path().parent_path()),
        room);
  const std::string file = differing_file(here, coming);
  if (file.empty()) return;
  throw refused(
      "run '" + here.id() + "' is here already and differs in " + file + ": nothing was imported",
      "to keep the run that is here, do nothing; for the other one, " + room);
}

/// Throws where nothing stands there that could be imported, before anything is made.
void require_origin(const fs::path& origin) {
  if (path_exists(origin)) return;
  throw Error("there is no '" + shown_path(origin) + "'",
              "give the file of a pack, or the folder of a run");
}

/// Removes the folders that were made for a runs folder, unless something is in them.
class MadeFolders {
 public:
  explicit MadeFolders(const fs::path& runs_dir)
      : runs_dir_(runs_dir), before_(existing_ancestor(runs_dir)) {}
  ~MadeFolders() {
    std::error_code in_use;
    for (fs::path folder = runs_dir_; !kept_ && !in_use && folder != before_;
         folder = folder.parent_path())
      fs::remove(folder, in_use);
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  void keep() { kept_ = true; }

 private:
  fs::path runs_dir_, before_;
  bool kept_ = false;
};

/// The text with another path for one that it names, and for all below.
std::string renamed(std::string text, const fs::path& path, const fs::path& instead) {
  const std::string shown = shown_path(instead);
  for (const std::string& name : {without_pins(path.string()), shown_path(path)}) {
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + shown.size()))
      text.replace(at, name.size(), shown);
  }
  return text;
}

/// Where a pack is unpacked. It is gone when somebody reads of it.
fs::path unpacked_in(const fs::path& aside) { return aside / "pack"; }

/// Imports by way of the folder `aside`, which errors and notes may name.
ImportResult import_through(const fs::path& aside,
                            const fs::path& origin,
                            const fs::path& runs_dir,
                            const fs::path& workspace,
                            MadeFolders& made,
                            const CountProgress& progress) {
  const fs::path unpacked = unpacked_in(aside);
  make_directories(unpacked);
  const run::RunFolder source(find_run_folder(fs::absolute(origin), unpacked, progress));
  if (source.is_running())
    throw refused("run '" + source.id() + "' is running: its files still change",
                  "'forge runs stop' stops it");
  ImportResult imported{run::RunFolder(""), false, {}, {}};
  run::RunRecord record = arriving(checked_record(source), workspace);
  imported.folder = place_of(record, runs_dir);
  for (RequiredData& need : required_data(config::experiment_from_json(source.config()))) {
    if (!need.is_here) imported.missing.push_back(std::move(need));
  }
  const run::RunFolder copy(aside / record.id);
  if (!fs::exists(imported.folder.path())) copy_run(source, copy, imported.notes, progress);
  for (std::string& note : imported.notes)
    note = renamed(renamed(note, copy.path(), source.path()), unpacked, origin);
  const queue::Queue one_at_a_time(runs_dir);
  imported.folder = place_of(record, runs_dir);  // another command may have taken it meanwhile
  if (fs::exists(imported.folder.path())) {
    require_same_run(imported.folder, source, record);
    return imported;
  }
  if (imported.folder.id() != record.id)
    imported.notes.push_back("run '" + record.id +
                             "' is here already, of another workspace, project " +
                             "or config: this one is '" + imported.folder.id() + "'");
  record.id = imported.folder.id();
  write_file_atomic(copy.record_file(), json_text(run::to_json(record), 2) + "\n");
  run::remember_run_dir(copy, imported.folder.path());
  rename_path(copy.path(), imported.folder.path());
  made.keep();
  sync_path(runs_dir);
  imported.created = true;
  if (const std::string needed = run::needed_text(imported.folder, true); !needed.empty())
    imported.notes.push_back(needed);
  return imported;
}

}  // namespace

ImportResult import_packed_run(const fs::path& origin,
                               const fs::path& runs_dir,
                               const CountProgress& progress,
                               const fs::path& workspace) {
  require_origin(fs::absolute(origin));
  MadeFolders made(runs_dir);
  run::make_runs_dir(runs_dir);
  // Nobody else can make a link in it, nor lead what is written there elsewhere by another one in
  // its place.
  const ScratchFolder scratch(runs_dir / (std::string(aside_prefix) + "import-" + process_digits()),
                              ScratchFolder::Access::own);
  const PinnedFolder aside(runs_dir, scratch.path().filename());
  try {
    return import_through(aside.path(), origin, runs_dir, workspace, made, progress);
  } catch (const Error& problem) {
    const auto of_origin = [&](const std::string& text) {
      return renamed(renamed(text, unpacked_in(aside.path()), origin), aside.path(), runs_dir);
    };
    throw Error(of_origin(problem.message()),
                problem.where(),
                of_origin(problem.hint()),
                problem.exit_code());
  }
}

}  // namespace forge::manage
