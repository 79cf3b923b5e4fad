#include "core/run/numbered_runs.h"

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/identity.h"
#include "core/run/moved_files.h"
#include "core/run/queue/owners.h"

namespace forge::run {
namespace {

std::string with_suffix(const std::string& id, int number) {
  return number == 1 ? id : id + "-" + std::to_string(number);
}

/// The record of a folder; none of a damaged one, which is said where it is planned. Throws Error
/// where it may be read the next moment.
std::optional<RunRecord> readable_record(const RunFolder& folder) {
  try {
    return folder.record();
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    return std::nullopt;
  }
}

/// Whether somebody put it beside the run that it is a copy of.
bool is_copy(const RunFolder& folder, const RunRecord& record) {
  return record.id != folder.id() && is_run_name(record.id) &&
         RunFolder(folder.path().parent_path() / record.id).has_record();
}

/// Whether it is another user's, and not completed.
bool is_unfinished_of_other_user(const RunFolder& folder) {
  if (!queue::is_of_other_user(folder.path())) return false;
  try {
    return folder.state() != RunState::completed;
  } catch (const Error& problem) {
    if (may_pass(problem)) throw;
    return true;  // it is damaged
  }
}

}  // namespace

int number_of(const std::string& id, const std::string& name) {
  if (name == id) return 1;
  if (!starts_with(name, id + "-")) return 0;
  constexpr int highest = 1'000'000'000;  // the next one is a number, too
  int number = 0;
  std::from_chars(name.data() + id.size() + 1, name.data() + name.size(), number);
  return number > 1 && number <= highest && name == with_suffix(id, number) ? number : 0;
}

std::string NumberedRuns::name_of(int number) const { return with_suffix(id, number); }

bool may_be_run(const RunFolder& folder) {
  try {
    return folder.is_linked() || folder.has_record();
  } catch (const Error&) {
    return true;
  }
}

NumberedRuns numbered_runs(const std::string& id, const fs::path& runs_dir) {
  NumberedRuns runs{id, runs_dir, {}};
  for (const fs::path& path : folder_entries(runs_dir)) {
    const int number = number_of(id, path.filename().string());
    if (number > 0 && may_be_run(RunFolder(path))) runs.numbers.push_back(number);
  }
  std::sort(runs.numbers.begin(), runs.numbers.end());
  return runs;
}

bool is_closed_to_this_user(const RunFolder& folder) {
  return queue::is_of_other_user(folder.path()) && queue::is_closed(folder.record_file(), R_OK);
}

bool is_another(const RunFolder& folder, const RunRecord& planned) {
  if (folder.is_linked() || is_closed_to_this_user(folder)) return true;
  const std::optional<RunRecord> record = readable_record(folder);
  if (!record) return false;
  if (is_copy(folder, *record)) return true;
  require_identity(*record, planned.identity);
  return record->config != planned.config || record->key != planned.key ||
         !is_of_project(folder, *record, planned.workspace, planned.project);
}

int own_number(const RunRecord& planned, const NumberedRuns& existing) {
  int unfinished = 0;
  for (auto number = existing.numbers.rbegin(); number != existing.numbers.rend(); ++number) {
    const RunFolder folder = existing.folder_of(*number);
    if (is_another(folder, planned)) continue;
    if (!is_unfinished_of_other_user(folder)) return *number;
    if (unfinished == 0) unfinished = *number;
  }
  return unfinished;
}

int new_number(const NumberedRuns& existing, const std::vector<std::string>& taken) {
  int highest = existing.numbers.empty() ? 0 : existing.numbers.back();
  for (const std::string& name : taken) highest = std::max(highest, number_of(existing.id, name));
  return highest + 1;
}

std::string orphan_of(const RunRecord& planned, const NumberedRuns& existing) {
  for (auto number = existing.numbers.rbegin(); number != existing.numbers.rend(); ++number) {
    const RunFolder folder = existing.folder_of(*number);
    if (folder.is_linked()) continue;
    try {
      const RunRecord record = folder.record();
      if (record.config == planned.config && record.project != planned.project &&
          record.workspace == planned.workspace &&
          !is_folder(fs::path(record.workspace) / record.project))
        return folder.id();
    } catch (const Error&) {
      continue;  // a damaged one is reported by lists
    }
  }
  return "";
}

std::string closed_of(const NumberedRuns& existing) {
  for (auto number = existing.numbers.rbegin(); number != existing.numbers.rend(); ++number) {
    const RunFolder folder = existing.folder_of(*number);
    if (is_closed_to_this_user(folder)) return folder.id();
  }
  return "";
}

RunFolder own_folder(const RunRecord& record, const fs::path& runs_dir) {
  const NumberedRuns existing = numbered_runs(run_id(record.config, record.key), runs_dir);
  const int own = own_number(record, existing);
  return existing.folder_of(own > 0 ? own : new_number(existing));
}

RunFolder arriving_folder(const RunRecord& record, const fs::path& runs_dir) {
  const NumberedRuns existing = numbered_runs(run_id(record.config, record.key), runs_dir);
  for (const int number : existing.numbers) {
    const RunFolder folder = existing.folder_of(number);
    if (is_another(folder, record)) continue;
    const std::optional<RunRecord> here = readable_record(folder);
    if (here && here->created == record.created) return folder;
  }
  return existing.folder_of(new_number(existing));
}

}  // namespace forge::run
