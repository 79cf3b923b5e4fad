#include "core/queue/queue.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/protocol/messages.h"
#include "core/run/host.h"

namespace forge::queue {
namespace {

fs::path folder_of(const fs::path& runs_dir) { return runs_dir / ".queue"; }
fs::path entries_folder(const fs::path& folder) { return folder / "entries"; }

fs::path made(const fs::path& folder) {
  make_directories(entries_folder(folder));
  return folder;
}

void sort(std::vector<Entry>& entries) { std::sort(entries.begin(), entries.end(), before); }

}  // namespace

std::vector<Entry> read_entries(const fs::path& runs_dir, std::vector<std::string>* problems) {
  std::vector<Entry> entries;
  std::error_code missing;
  for (const auto& file : fs::directory_iterator(entries_folder(folder_of(runs_dir)), missing)) {
    const std::string name = file.path().filename().string();
    if (name.find(".tmp-") != std::string::npos) continue;  // on its way in
    try {
      Entry entry = entry_from_json(protocol::object_from_line(read_file(file.path())));
      if (entry.run != name) throw Error("it is of run '" + entry.run + "'");
      entries.push_back(std::move(entry));
    } catch (const Error& problem) {
      // It may have been removed since the folder was read.
      if (problems && fs::exists(file.path()))
        problems->push_back(file.path().string() + ": " + problem.message());
    }
  }
  sort(entries);
  return entries;
}

fs::path leases_folder(const fs::path& runs_dir) {
  return folder_of(runs_dir) / "leases" / run::host_name();
}

bool is_queued(const fs::path& runs_dir, const std::string& run) {
  return fs::exists(entries_folder(folder_of(runs_dir)) / run);
}

Queue::Queue(const fs::path& runs_dir)
    : folder_(made(folder_of(runs_dir))),
      lock_(FileLock::acquire(folder_ / "lock")),
      entries_(read_entries(runs_dir)) {}

const Entry* Queue::find(const std::string& run) const {
  for (const Entry& entry : entries_) {
    if (entry.run == run) return &entry;
  }
  return nullptr;
}

void Queue::add(const Entry& entry) {
  const Entry* waiting = find(entry.run);
  if (!waiting) return put(entry);
  Entry kept = *waiting;
  kept.priority = std::max(kept.priority, entry.priority);
  kept.starts = 0;
  put(kept);
}

void Queue::put(const Entry& entry) {
  const std::string run = entry.run;
  write_file_atomic(entries_folder(folder_) / run, json_text(to_json(entry), 2) + "\n");
  entries_.erase(
      std::remove_if(
          entries_.begin(), entries_.end(), [&](const Entry& other) { return other.run == run; }),
      entries_.end());
  entries_.push_back(entry);
  sort(entries_);
}

void Queue::remove(const std::string& run) {
  remove_tree(entries_folder(folder_) / run);
  entries_.erase(
      std::remove_if(
          entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.run == run; }),
      entries_.end());
}

}  // namespace forge::queue
