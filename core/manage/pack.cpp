#include "core/manage/pack.h"

#include <algorithm>
#include <optional>

#include "core/base/archive.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/data/fetch/public_texts.h"
#include "core/manage/run_edits.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/runs_dir.h"

namespace forge::manage {
namespace {

/// The public text that a path is of: that of a corpus under forge's own folder, wherever it lay.
std::string public_text_of(const fs::path& path) {
  for (const data::PublicText& text : data::public_texts()) {
    const std::string folder = "corpora/" + text.name;
    const std::string whole = path.string() + "/";
    if (whole.find("/" + folder + "/") != std::string::npos) return text.name;
  }
  return "";
}

void add_text(const std::string& source,
              const std::string& path,
              std::vector<RequiredData>& needs) {
  if (path.empty()) return;
  RequiredData need{source, path, "", path_exists(path)};
  const std::string known = public_text_of(path);
  need.how = known.empty()
                 ? "a text of the run's owner: bring it here and name it with --set data.path=…; "
                   "the data fingerprint tells whether it is the same"
                 : "forge data get " + shell_quoted(known);
  needs.push_back(std::move(need));
}

void add(const config::DataConfig& data,
         const std::string& name,
         std::vector<RequiredData>& needs) {
  if (data.source == "mixture") {
    for (const auto& [source, part] : data.sources) {
      if (part.weight > 0) add(config::data_of_source(data, part), source, needs);
    }
    return;
  }
  if (data.path.empty()) {
    needs.push_back(
        {name.empty() ? data.source : name, "", "forge makes it from the config", true});
    return;
  }
  add_text(name.empty() ? data.source : name, data.path, needs);
  add_text(name.empty() ? data.source : name, data.evaluation_path, needs);
}

}  // namespace

nlohmann::json to_json(const RequiredData& need) {
  return {{"source", need.source}, {"path", need.path}, {"how", need.how}, {"here", need.is_here}};
}

std::vector<RequiredData> required_data(const config::Experiment& experiment) {
  std::vector<RequiredData> needs;
  add(experiment.data, "", needs);
  add_text("tokenizer", experiment.tokenizer.path, needs);
  return needs;
}

namespace {

using Json = nlohmann::json;

/// What goes into the pack: a file of the disk, or a text.
struct PackEntry {
  std::string name;
  fs::path file;  ///< "": it is the text
  std::string text;
};

/// A file as it is now: somebody may edit it while larger ones are packed.
PackEntry entry_of_text(const std::string& name, const fs::path& file) {
  refuse_link(file);
  return {name, "", read_file(file)};
}

/// Of a sound checkpoint all files, or all but the optimizer's state, with a manifest of their own.
void add_checkpoint(const fs::path& checkpoint, bool whole, std::vector<PackEntry>& entries) {
  const std::string below = "run/checkpoints/" + checkpoint.filename().string() + "/";
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(checkpoint)) {
    const std::string name = file.path().filename().string();
    if (name == weights::manifest_file || !file.is_regular_file()) continue;
    const bool has_weights = fs::exists(checkpoint / weights::weights_file);
    if (!whole && has_weights && name == weights::optimizer_file) continue;
    files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  for (const std::string& name : files) entries.push_back({below + name, checkpoint / name, ""});
  if (whole) {
    entries.push_back({below + weights::manifest_file, checkpoint / weights::manifest_file, ""});
  } else {
    const weights::CheckpointState state =
        weights::read_checkpoint_state(checkpoint, weights::FileCheck::none);
    entries.push_back(
        {below + weights::manifest_file, "", weights::manifest_text(state, checkpoint, files)});
  }
}

void add_checkpoints(const run::RunFolder& folder,
                     bool all,
                     std::vector<PackEntry>& entries,
                     std::vector<std::string>& notes) {
  const std::vector<fs::path> folders = weights::list_checkpoints(folder.checkpoints());
  for (auto checkpoint = folders.rbegin(); checkpoint != folders.rend(); ++checkpoint) {
    try {
      weights::read_checkpoint_state(*checkpoint);
    } catch (const Error& problem) {
      if (is_unreadable(problem)) throw;
      notes.push_back("left out: " + problem.message());
      continue;
    }
    add_checkpoint(*checkpoint, all, entries);
    if (!all) {
      notes.push_back(
          "of the checkpoints only the weights of the newest are in it; --checkpoints "
          "packs all, with the optimizer's state");
      return;
    }
  }
}

Json manifest_of(const run::RunFolder& folder, const PackOptions& options) {
  const run::RunRecord record = folder.record();
  Json needs = Json::array();
  for (const RequiredData& need : required_data(folder.experiment())) {
    Json json = to_json(need);
    json.erase("here");
    needs.push_back(json);
  }
  return {{"pack", pack_version},
          {"forge", options.forge_version},
          {"run", record.id},
          {"config", record.config},
          {"project", record.project},
          {"created", record.created},
          {"command", record.command},
          {"revision", record.revision},
          {"key", record.key},
          {"data",
           {{"fingerprint", record.identity.data_fingerprint},
            {"tokenizer_fingerprint", record.identity.tokenizer_fingerprint},
            {"sources", needs}}},
          {"files", Json::object()}};
}

int64_t file_bytes(const std::vector<PackEntry>& entries) {
  int64_t bytes = 0;
  for (const PackEntry& entry : entries) {
    if (!entry.file.empty()) bytes += static_cast<int64_t>(fs::file_size(entry.file));
  }
  return bytes;
}

/// Keeps the run from being begun while it is packed. The lock is shared, so that nobody takes the
/// run for one that trains, and asks for it in vain. Where the runs folder is read-only nobody can
/// begin it, and no lock can be made.
std::optional<FileLock> lock_if_writable(const run::RunFolder& folder) {
  const fs::path runs_dir = folder.path().parent_path();
  if (!run::can_write(runs_dir) && !folder.is_running()) return std::nullopt;
  const queue::Queue queue(runs_dir);
  { const FileLock idle = lock_idle_run(queue, folder, "its files still change"); }
  return FileLock::try_share(folder.lock_file());
}

}  // namespace

std::vector<std::string> files_of_run(const run::RunFolder& folder) {
  std::vector<fs::path> files = {folder.record_file(),
                                 folder.config_file(),
                                 folder.origin_file(),
                                 folder.request_file(),
                                 folder.tokenizer_file(),
                                 folder.events_file(),
                                 folder.environment_file(),
                                 folder.annotations_file(),
                                 folder.done_file()};
  for (fs::path& file : folder.stderr_files()) files.push_back(std::move(file));
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    std::error_code gone;
    if (is_file(file) && !fs::is_symlink(file, gone)) names.push_back(file.filename().string());
  }
  return names;
}

Packed pack_run(const run::RunFolder& folder, const PackOptions& options) {
  const run::RunStatus status = folder.status();  // under the lock it runs
  folder.require_undamaged(status);
  const bool completed = status.state == run::RunState::completed;
  const std::optional<FileLock> lock = lock_if_writable(folder);
  Packed packed;
  Json manifest = manifest_of(folder, options);
  manifest["status"] = completed ? "completed" : "unfinished";
  std::vector<PackEntry> entries;
  for (const std::string& name : files_of_run(folder)) {
    const fs::path file = folder.path() / name;
    const bool is_edited = file == folder.annotations_file();  // whoever holds the run's lock
    entries.push_back(is_edited ? entry_of_text("run/" + name, file)
                                : PackEntry{"run/" + name, file, ""});
  }
  // A run that is to go on needs the optimizer's state.
  const bool all = options.checkpoints || !completed;
  add_checkpoints(folder, all, entries, packed.notes);
  manifest["optimizer"] = all;
  if (const std::string needed = run::needed_text(folder, false); !needed.empty())
    packed.notes.push_back(needed);
  for (const auto& [name, file] : options.templates)
    entries.push_back(entry_of_text("templates/" + name, file));
  const std::function<void(int64_t)> on_bytes =
      count_bytes(options.progress, 2 * file_bytes(entries));  // hashed, then packed
  for (const PackEntry& entry : entries) {
    const bool is_text = entry.file.empty();
    manifest["files"][entry.name] = {
        {"bytes", is_text ? entry.text.size() : fs::file_size(entry.file)},
        {"hash", is_text ? hash_hex(entry.text) : hash_file(entry.file, on_bytes)}};
  }
  ArchiveWriter archive(options.file);
  archive.add_text(pack_manifest, json_text(manifest, 2) + "\n");
  for (const PackEntry& entry : entries) {
    if (entry.file.empty()) {
      archive.add_text(entry.name, entry.text);
    } else {
      const std::string packed_hash = archive.add_file(entry.name, entry.file, on_bytes);
      if (packed_hash != manifest["files"][entry.name]["hash"])
        throw Error("'" + shown_path(entry.file) + "' changed while it was packed",
                    "nothing was packed: once nobody writes to it, pack again",
                    ExitCode::failed);
    }
  }
  archive.finish();
  packed.files = static_cast<int64_t>(entries.size()) + 1;
  packed.bytes = static_cast<int64_t>(fs::file_size(options.file));
  return packed;
}

}  // namespace forge::manage
