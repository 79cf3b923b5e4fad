#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "core/run/run_folder.h"

namespace forge::run {

/// The id of an older run that `base`, of which a new run of this complete config takes over the
/// first `step` steps, repeats with other losses; "": of these steps `base` is the first run of its
/// seed, or has the losses of that one. Who continues such a repetition chooses among losses that
/// are known. Older is what told a loss first: a run may wait for long after it was planned. Older
/// runs of the same steps count whatever their config's name, project, budget and end, in
/// `runs_dir` and in the runs folder of `base`; so does one of which no loss compares. What `base`
/// itself took over from a repetition stays one.
std::string repeated_run(const RunFolder& base,
                         int64_t step,
                         const nlohmann::json& experiment,
                         const std::filesystem::path& runs_dir);

}  // namespace forge::run
