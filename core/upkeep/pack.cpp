#include "core/upkeep/pack.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/json_text.h"
#include "core/config/json.h"
#include "core/upkeep/archive.h"
#include "core/upkeep/data_needs.h"
#include "core/upkeep/idle_run.h"
#include "core/weights/checkpoint.h"
#include "core/weights/manifest.h"

namespace forge::upkeep {
namespace {

using Json = nlohmann::json;

/// What goes into the pack: a file of the disk, or a text.
struct Member {
  std::string name;
  fs::path file;  ///< "": it is the text
  std::string text;
};

/// Of a sound checkpoint all files, or all but the optimizer's state, with a manifest of their own.
void add_checkpoint(const fs::path& checkpoint, bool whole, std::vector<Member>& members) {
  const std::string below = "run/checkpoints/" + checkpoint.filename().string() + "/";
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const std::string name = entry.path().filename().string();
    if (name == weights::manifest_file || !entry.is_regular_file()) continue;
    const bool has_weights = fs::exists(checkpoint / weights::weights_file);
    if (!whole && has_weights && name == weights::optimizer_file) continue;
    files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  for (const std::string& name : files) members.push_back({below + name, checkpoint / name, ""});
  if (whole) {
    members.push_back({below + weights::manifest_file, checkpoint / weights::manifest_file, ""});
  } else {
    const weights::CheckpointState state = weights::read_checkpoint_manifest(checkpoint);
    members.push_back(
        {below + weights::manifest_file, "", weights::manifest_text(state, checkpoint, files)});
  }
}

void add_checkpoints(const run::RunFolder& folder,
                     bool all,
                     std::vector<Member>& members,
                     std::vector<std::string>& notes) {
  const std::vector<fs::path> folders = weights::list_checkpoints(folder.checkpoints());
  for (auto checkpoint = folders.rbegin(); checkpoint != folders.rend(); ++checkpoint) {
    try {
      weights::read_checkpoint_state(*checkpoint);
    } catch (const Error& problem) {
      notes.push_back("left out: " + problem.message());
      continue;
    }
    add_checkpoint(*checkpoint, all, members);
    if (!all) {
      notes.push_back(
          "of the checkpoints only the weights of the newest are in it; --checkpoints "
          "packs all, with the optimizer's state");
      return;
    }
  }
}

Json words_of(const run::RunFolder& folder, const PackOptions& options) {
  const run::RunRecord record = folder.record();
  Json needs = Json::array();
  for (const DataNeed& need :
       data_needs(config::experiment_from_json(parse_json(read_file(folder.config_file()))))) {
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

}  // namespace

const std::vector<std::string>& files_of_run() {
  static const std::vector<std::string> names = {"run.json",
                                                 "config.json",
                                                 "config.origin.json",
                                                 "request.json",
                                                 "tokenizer.json",
                                                 "events.jsonl",
                                                 "stderr.log",
                                                 "env.json",
                                                 "remarks.json",
                                                 "DONE"};
  return names;
}

Packed pack_run(const run::RunFolder& folder, const PackOptions& options) {
  Idle idle;
  {
    const queue::Queue queue(folder.path().parent_path());
    idle = hold_idle(queue, folder);
  }
  if (!idle.lock) {
    throw Error("run '" + folder.id() + "' " + idle.obstacle + ": its files still change",
                {},
                "'forge runs stop " + folder.id() + "' stops it",
                ExitCode::failed);
  }
  Packed packed;
  Json words = words_of(folder, options);
  words["status"] = fs::exists(folder.done_file()) ? "completed" : "unfinished";
  std::vector<Member> members;
  for (const std::string& name : files_of_run()) {
    if (fs::is_regular_file(fs::symlink_status(folder.path() / name)))
      members.push_back({"run/" + name, folder.path() / name, ""});
  }
  // A run that is to go on needs the optimizer's state.
  const bool all = options.checkpoints || !fs::exists(folder.done_file());
  add_checkpoints(folder, all, members, packed.notes);
  words["optimizer"] = all;
  for (const auto& [name, file] : options.templates)
    members.push_back({"templates/" + name, file, ""});
  for (const Member& member : members) {
    const bool is_text = member.file.empty();
    words["files"][member.name] = {
        {"bytes", is_text ? member.text.size() : fs::file_size(member.file)},
        {"hash", is_text ? hash_hex(member.text) : hash_file(member.file)}};
  }
  ArchiveWriter archive(options.file);
  archive.add_text(pack_words, json_text(words, 2) + "\n");
  for (const Member& member : members) {
    if (member.file.empty()) {
      archive.add_text(member.name, member.text);
    } else {
      archive.add_file(member.name, member.file);
    }
  }
  archive.finish();
  packed.files = static_cast<int64_t>(members.size()) + 1;
  packed.bytes = static_cast<int64_t>(fs::file_size(options.file));
  return packed;
}

}  // namespace forge::upkeep
