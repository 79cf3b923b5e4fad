#include "core/run/checkpoint_space.h"

#include <sys/statvfs.h>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/model/cost.h"
#include "core/model/weights/checkpoint.h"

namespace forge::run {
namespace {

constexpr const char* remedy =
    "'forge gc' says what can be freed, FORGE_RUNS_DIR names another folder, "
    "train.keep_checkpoints keeps fewer";

}  // namespace

std::string check_checkpoint_space(const fs::path& folder, const config::Experiment& experiment) {
  if (experiment.backend != config::own_backend) return "";  // whose files only it knows
  const int64_t each = model::checkpoint_bytes(experiment.model, experiment.training_shape());
  struct statvfs disk {};
  if (::statvfs(existing_ancestor(fs::absolute(folder)).c_str(), &disk) != 0) return "";
  const auto free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const std::string room = "a checkpoint takes " + human_bytes(double(each)) +
                           ", and the disk of " + shown_path(folder.parent_path()) + " has " +
                           human_bytes(free) + " free";
  if (free < double(each)) throw Error(room, remedy, ExitCode::storage);
  const config::TrainConfig& train = experiment.train;
  const auto saved = static_cast<int64_t>(weights::list_checkpoints(folder / "checkpoints").size());
  // The new one is whole before the oldest goes.
  const int64_t wanted = train.keep_checkpoints + (train.keep_best ? 1 : 0) + 1 - saved;
  if (free >= double(each) * double(std::max<int64_t>(wanted, 1))) return "";
  return room + ": it may fill up before the run has saved the " +
         std::to_string(train.keep_checkpoints) +
         (train.keep_best ? " newest and the best" : " newest") + " that it keeps";
}

}  // namespace forge::run
