#include "core/run/folder_id.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/base/text.h"

namespace forge::run {
namespace {

fs::path id_file(const fs::path& runs_dir) { return runs_dir / ".queue" / "id"; }

}  // namespace

std::string folder_id(const fs::path& runs_dir) try {
  constexpr int64_t most_bytes = 100;
  const std::string text = read_file_within(id_file(runs_dir), most_bytes);
  return text.substr(0, text.find('\n'));
} catch (const Error&) {
  return "";
}

std::string made_folder_id(const fs::path& runs_dir) {
  const std::string known = folder_id(runs_dir);
  if (!known.empty()) return known;
  try {
    make_own_folders(runs_dir, ".queue");
    write_file_atomic(id_file(runs_dir), random_digits() + "\n");
  } catch (const Error&) {
    // It is full, or another user's.
  }
  return folder_id(runs_dir);
}

}  // namespace forge::run
