#include "core/run/checkpoint_space.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/model/cost.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/request.h"

namespace forge::run {
namespace {

constexpr const char* remedy =
    "'forge gc' says what can be freed, FORGE_RUNS_DIR names another folder, "
    "train.keep_checkpoints keeps fewer";

/// What a run writes beside its checkpoints before the first of them is whole: some events and
/// messages.
constexpr int64_t first_files_bytes = 64 << 10;

/// That this user may use; none where the disk does not say.
std::optional<double> free_bytes(const fs::path& folder) {
  struct statvfs disk {};
  if (::statvfs(existing_ancestor(fs::absolute(folder)).c_str(), &disk) != 0) return std::nullopt;
  return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

/// 0 for another backend than forge's own: only it knows its files.
int64_t bytes_of_checkpoint(const config::Experiment& experiment) {
  if (experiment.backend != config::own_backend) return 0;
  return model::checkpoint_bytes(experiment.model, experiment.training_shape());
}

/// 0 also for a run that cannot be read: its supervisor says so.
int64_t bytes_of_checkpoint(const RunFolder& folder) {
  try {
    return bytes_of_checkpoint(config::experiment_from_json(read_request(folder).experiment));
  } catch (const Error&) {
    return 0;
  }
}

std::string room_text(const fs::path& folder, int64_t checkpoint, double free) {
  const std::string disk =
      "the disk of " + shown_path(folder.parent_path()) + " has " + human_bytes(free) + " free";
  return checkpoint == 0
             ? disk
             : "a checkpoint takes " + human_bytes(double(checkpoint)) + ", and " + disk;
}

}  // namespace

std::string check_checkpoint_space(const fs::path& folder, const config::Experiment& experiment) {
  const int64_t each = bytes_of_checkpoint(experiment);
  const std::optional<double> free = free_bytes(folder);
  if (each == 0 || !free) return "";
  const std::string room = room_text(folder, each, *free);
  if (*free < double(each)) throw Error(room, remedy, ExitCode::storage);
  const config::TrainConfig& train = experiment.train;
  const auto saved = static_cast<int64_t>(weights::list_checkpoints(folder / "checkpoints").size());
  // The new one is whole before the oldest goes.
  const int64_t wanted = train.keep_checkpoints + (train.keep_best ? 1 : 0) + 1 - saved;
  if (*free >= double(each) * double(std::max<int64_t>(wanted, 1))) return "";
  return room + ": it may fill up before the run has saved the " +
         std::to_string(train.keep_checkpoints) +
         (train.keep_best ? " newest and the best" : " newest") + " that it keeps";
}

std::string missing_room(const RunFolder& folder) {
  const std::optional<double> free = free_bytes(folder.path());
  const int64_t each = bytes_of_checkpoint(folder);
  if (!free || *free >= double(each + first_files_bytes)) return "";
  return room_text(folder.path(), each, *free);
}

void require_room(const RunFolder& folder) {
  if (const std::string missing = missing_room(folder); !missing.empty())
    throw Error(missing, remedy, ExitCode::storage);
  // The disk itself is asked, too: only it knows of quotas. Not for a whole checkpoint: what is
  // taken to be looked at is missing to whoever writes at that moment.
  const fs::path aside = aside_path(folder.path() / "room");
  const FileDescriptor file = open_own_file(aside, O_WRONLY | O_CREAT, "write");
  const int refused = ::posix_fallocate(file.get(), 0, first_files_bytes);
  std::error_code ignored;
  remove_tree(aside, ignored);
  if (refused != 0)
    throw system_error("write to '" + shown_path(folder.path()) + "'", refused, remedy);
}

}  // namespace forge::run
