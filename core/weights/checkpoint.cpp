#include "core/weights/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/weights/manifest.h"

namespace forge::weights {
namespace {

/// Folders on their way in or out. No reader takes one for a checkpoint.
constexpr const char* aside_prefix = ".tmp-";

std::string folder_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  return digits;
}

bool is_checkpoint(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const bool digits = name.size() >= 9 && name.find_first_not_of("0123456789") == std::string::npos;
  std::error_code unreadable;
  return digits && fs::is_regular_file(folder / manifest_file, unreadable);
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

void rename_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw system_error("rename '" + from.string() + "' to '" + to.string() + "'", errno);
  }
}

fs::path aside_of(const fs::path& folder, const char* purpose) {
  const std::string name = aside_prefix + folder.filename().string() + purpose;
  return folder.parent_path() / (name + std::to_string(::getpid()));
}

/// Puts the finished folder `aside` in the place of `folder`; what stood there is removed.
void put_in_place(const fs::path& aside, const fs::path& folder) {
  if (!fs::exists(folder)) {
    rename_folder(aside, folder);
    sync_path(folder.parent_path());
    return;
  }
  // Exchanged in one step where the file system can, so that some whole checkpoint of this step
  // stands there at any moment.
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path old = aside_of(folder, "-old-");
    remove_tree(old);
    rename_folder(folder, old);
    rename_folder(aside, folder);
    remove_tree(old);
  }
  sync_path(folder.parent_path());
  remove_tree(aside);
}

}  // namespace

fs::path write_checkpoint(const fs::path& checkpoints,
                          const CheckpointState& state,
                          const std::map<std::string, TensorView>& weights,
                          const std::map<std::string, TensorView>& optimizer,
                          int64_t* bytes) {
  if (state.step < 0) throw Error("a checkpoint cannot be of step " + std::to_string(state.step));
  if (!fs::exists(checkpoints)) {
    make_directories(checkpoints);
    if (checkpoints.has_parent_path()) sync_path(checkpoints.parent_path());
  }
  fs::path folder = checkpoints / folder_name(state.step);
  const fs::path aside = aside_of(folder, "-");
  try {
    remove_tree(aside);
    make_directories(aside);
    int64_t total = write_safetensors(aside / weights_file, weights);
    total += write_safetensors(aside / optimizer_file, optimizer);
    const std::string manifest = manifest_text(state, aside, {weights_file, optimizer_file});
    total += static_cast<int64_t>(manifest.size());
    write_file_atomic(aside / manifest_file, manifest);
    put_in_place(aside, folder);
    if (bytes) *bytes = total;
  } catch (...) {
    std::error_code ignored;  // the first error is the one to tell
    fs::remove_all(aside, ignored);
    throw;
  }
  return folder;
}

CheckpointState read_checkpoint_state(const fs::path& folder) {
  try {
    return checked_manifest(folder, {weights_file, optimizer_file});
  } catch (const Error& error) {
    throw Error("checkpoint '" + shown_path(folder) + "' is damaged: " + error.message(),
                {},
                error.hint(),
                ExitCode::failed);
  }
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

void prune_checkpoints(const fs::path& checkpoints, int keep) {
  if (keep < 0) throw Error("cannot keep " + std::to_string(keep) + " checkpoints");
  const std::vector<fs::path> folders = list_checkpoints(checkpoints);
  const size_t kept = std::min(folders.size(), static_cast<size_t>(keep));
  for (size_t i = 0; i + kept < folders.size(); ++i) {
    // Renamed first: a folder that is half removed must not look like a checkpoint.
    rename_folder(folders[i], aside_of(folders[i], "-old-"));
  }
  for (const fs::path& entry : entries_of(checkpoints)) {
    if (starts_with(entry.filename().string(), aside_prefix)) remove_tree(entry);
  }
}

}  // namespace forge::weights
