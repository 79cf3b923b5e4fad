#include "core/weights/checkpoint.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/weights/manifest.h"

namespace forge::weights {
namespace {

/// Folders get such a name when they are whole: one that lacks a file is damaged, not unfinished.
bool is_checkpoint(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const bool digits = name.size() >= 9 && name.find_first_not_of("0123456789") == std::string::npos;
  std::error_code unreadable;
  return digits && fs::is_directory(folder, unreadable);
}

CheckpointState state_of(const fs::path& folder, Content content) {
  try {
    return read_manifest(folder, content);
  } catch (const Error& error) {
    throw Error("checkpoint '" + shown_path(folder) + "' is damaged: " + error.message(),
                {},
                error.hint(),
                ExitCode::failed);
  }
}

int64_t step_of(const fs::path& folder) {
  try {
    return std::stoll(folder.filename().string());
  } catch (const std::out_of_range&) {
    return std::numeric_limits<int64_t>::max();  // a number that no run ever gave
  }
}

/// The folder with the lowest eval_loss, the later of two equal ones; "" where none has any.
fs::path best_of(const std::vector<fs::path>& folders) {
  fs::path best;
  double lowest = std::numeric_limits<double>::infinity();
  for (const fs::path& folder : folders) {
    try {
      const std::optional<double> loss = read_checkpoint_manifest(folder).eval_loss;
      if (!loss || !(*loss <= lowest)) continue;
      lowest = *loss;
      best = folder;
    } catch (const Error&) {
      // What cannot be read is not the best.
    }
  }
  return best;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw system_error("list '" + folder.string() + "'", error.value());
  }
  return entries;
}

/// The files directly in a folder, by name. Throws Error where there is anything else: a link might
/// lead anywhere.
std::vector<std::string> plain_files_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code unreadable;
    if (!fs::is_regular_file(fs::symlink_status(entry, unreadable)))
      throw Error("'" + shown_path(entry) + "' is no plain file", {}, "", ExitCode::failed);
    names.push_back(entry.filename().string());
  }
  return names;
}

/// Of checkpoints, oldest first, those that are not to be kept.
std::vector<fs::path> surplus_of(const std::vector<fs::path>& folders, const Retention& retention) {
  if (retention.newest < 0)
    throw Error("cannot keep " + std::to_string(retention.newest) + " checkpoints");
  const fs::path best = retention.best ? best_of(folders) : fs::path();
  const size_t kept = std::min(folders.size(), static_cast<size_t>(retention.newest));
  std::vector<fs::path> surplus;
  for (size_t i = 0; i + kept < folders.size(); ++i) {
    if (folders[i] != best) surplus.push_back(folders[i]);
  }
  return surplus;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  return digits;
}

void seal_checkpoint(const fs::path& folder, const CheckpointState& state) {
  std::error_code unreadable;
  if (fs::exists(folder / manifest_file, unreadable) || !fs::is_directory(folder, unreadable))
    return;
  const std::vector<std::string> files = plain_files_of(folder);
  write_file_atomic(folder / manifest_file, manifest_text(state, folder, files));
}

fs::path write_checkpoint(const fs::path& checkpoints,
                          const CheckpointState& state,
                          const std::map<std::string, TensorView>& weights,
                          const std::map<std::string, TensorView>& optimizer,
                          int64_t* bytes,
                          const OnBytes& on_bytes) {
  if (state.step < 0) throw Error("a checkpoint cannot be of step " + std::to_string(state.step));
  if (!fs::exists(checkpoints)) {
    make_directories(checkpoints);
    if (checkpoints.has_parent_path()) sync_path(checkpoints.parent_path());
  }
  fs::path folder = checkpoints / checkpoint_name(state.step);
  const fs::path aside = aside_path(folder);
  try {
    remove_tree(aside);
    make_directories(aside);
    int64_t total = write_safetensors(aside / weights_file, weights, {}, {}, on_bytes);
    total += write_safetensors(aside / optimizer_file, optimizer, {}, {}, on_bytes);
    const std::string manifest =
        manifest_text(state, aside, {weights_file, optimizer_file}, on_bytes);
    total += static_cast<int64_t>(manifest.size());
    write_file_atomic(aside / manifest_file, manifest);
    replace_folder(aside, folder);
    if (bytes) *bytes = total;
  } catch (...) {
    std::error_code ignored;  // the first error is the one to tell
    remove_tree(aside, ignored);
    throw;
  }
  return folder;
}

CheckpointState read_checkpoint_state(const fs::path& folder) {
  return state_of(folder, Content::checked);
}

CheckpointState read_checkpoint_manifest(const fs::path& folder) {
  return state_of(folder, Content::as_it_is);
}

std::vector<fs::path> list_checkpoints(const fs::path& checkpoints) {
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries_of(checkpoints)) {
    if (is_checkpoint(entry)) folders.push_back(entry);
  }
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return folders;
}

CheckpointState check_checkpoint_sizes(const fs::path& folder) {
  return state_of(folder, Content::sizes);
}

std::vector<fs::path> surplus_checkpoints(const fs::path& checkpoints, const Retention& retention) {
  return surplus_of(list_checkpoints(checkpoints), retention);
}

void prune_checkpoints(const fs::path& checkpoints, const Retention& retention, int64_t last_step) {
  std::vector<fs::path> folders = list_checkpoints(checkpoints);
  std::vector<fs::path> removed;
  while (!folders.empty() && step_of(folders.back()) > last_step) {
    removed.push_back(folders.back());
    folders.pop_back();
  }
  const std::vector<fs::path> surplus = surplus_of(folders, retention);
  removed.insert(removed.end(), surplus.begin(), surplus.end());
  for (const fs::path& folder : removed) {
    // Renamed first: a folder that is half removed must not look like a checkpoint.
    rename_path(folder, aside_path(folder, "old"));
  }
  for (const fs::path& entry : entries_of(checkpoints)) {
    if (starts_with(entry.filename().string(), aside_prefix)) remove_tree(entry);
  }
}

}  // namespace forge::weights
